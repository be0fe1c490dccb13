// Datasets: variants that say how the elements of an input pipeline are made. Iterators
// (iterator.h) read them.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/resource.h"
#include "core/variant.h"
#include "graph/op_def.h"
#include "kernels/cpu.h"

namespace leat {

// One element: nested structures are flat by now.
using Element = std::vector<Tensor>;

// What an iterator's user asked for one element with: a step, which may end while pipelines work.
class Reading {
 public:
  explicit Reading(Cancellation& cancellation);
  ~Reading();
  Reading(const Reading&) = delete;

  // Throws once the step has ended. To be asked at least once per element that is read or dropped.
  void check_goes_on() const;
  Cancellation& cancellation() { return cancellation_; }

 private:
  struct End {
    std::atomic<bool> has_come{false};
    Status status;
  };
  Cancellation& cancellation_;
  const std::shared_ptr<End> end_ = std::make_shared<End>();
  Cancellation::Token token_;
};

class ElementSource;

// One reading of a dataset from its beginning. Used by one thread at a time, which may wait for
// disks; it keeps what it reads of.
class DatasetIterator {
 public:
  virtual ~DatasetIterator() = default;
  // None at the end; then again none. After an error it goes on behind what failed. Throws once the
  // step of `reading` has ended. INVALID_ARGUMENT for an element that has not the types of the
  // dataset: they are what a client says.
  std::optional<Element> next(Reading& reading);

 private:
  friend class ElementSource;
  virtual std::optional<Element> advance(Reading& reading) = 0;
  std::shared_ptr<const ElementSource> of_;
};

// The components of one, then those of the other.
Element joined(const Element& a, const Element& b);

struct ElementTypes {
  std::vector<DType> dtypes;
  std::vector<Shape> shapes;  // partial
  // The attributes output_types and output_shapes, or Toutput_types for the first.
  static ElementTypes of(const NodeView& node);
  static ElementTypes of(const Element& element);
};
// INVALID_ARGUMENT "… at component 0: expected … but got …".
void check_same_types(const ElementTypes& expected, const ElementTypes& got);

// Numbers of elements that are none.
inline constexpr int64_t infinite = -1, unknown = -2;
// So many times n elements, of which there may be infinitely many, or who knows how many.
inline int64_t times(int64_t n, int64_t count) {
  int64_t out = 0;
  if (n < 0) return n;
  return __builtin_mul_overflow(n, count, &out) ? unknown : out;
}
// n elements, `size` at a time; the last may have fewer.
inline int64_t batches(int64_t n, int64_t size) {
  return n < 0 ? n : n / size + (n % size == 0 ? 0 : 1);
}

// Constant, but for what its iterators share (a cache, seeds). Thread-safe. Always in a shared_ptr.
class ElementSource : public std::enable_shared_from_this<ElementSource> {
 public:
  using Pointer = std::shared_ptr<const ElementSource>;
  // INVALID_ARGUMENT if it is made of others of others … more than 1,000 times, or if a reading of
  // it would have more than 100,000 parts.
  explicit ElementSource(ElementTypes types, const std::vector<Pointer>& inputs = {});
  virtual ~ElementSource() = default;

  const ElementTypes& types() const { return types_; }
  std::unique_ptr<DatasetIterator> make_iterator() const;
  // How many elements it has, as far as TensorFlow tells without reading any.
  virtual int64_t cardinality() const { return unknown; }
  // An element that fails takes the batch that it would be in with it: TensorFlow computes a map
  // and its batches together.
  virtual bool fails_by_batch() const { return false; }

 private:
  virtual std::unique_ptr<DatasetIterator> iterate() const = 0;

  const ElementTypes types_;
  int64_t depth_ = 1, parts_ = 1;
};

class DatasetVariant final : public Variant {
 public:
  static constexpr std::string_view kind_name = "a dataset";
  DatasetVariant(ElementSource::Pointer dataset, int depth)
      : dataset(std::move(dataset)), depth_(depth) {}
  std::string_view kind() const override { return kind_name; }
  std::unique_ptr<Variant> copy() const override { return std::make_unique<DatasetVariant>(*this); }
  int depth() const override { return depth_; }

  const ElementSource::Pointer dataset;

 private:
  const int depth_;
};

ElementSource::Pointer dataset_of(const Tensor& tensor);  // INVALID_ARGUMENT if it is none
// `depth`: that around what it is made of.
Tensor dataset_tensor(ElementSource::Pointer dataset, int depth);
inline ElementSource::Pointer input_dataset(const ExecuteContext& c) {
  return dataset_of(c.input(0));
}
// An input that must be a scalar.
template <class T>
T scalar_input(const ExecuteContext& c, int input, std::string_view name) {
  check(c.input(input).shape().rank() == 0, name, " must be a scalar");
  return c.input(input).value<T>();
}

// The shapes of an op's outputs that are an element: its output_shapes.
void element_shapes(ShapeContext& c);
// Sets the outputs of `c` to the element. INVALID_ARGUMENT unless it has these types.
void set_element(ExecuteContext& c, const ElementTypes& types, Element element);

// An iterator whose `advance` is a function object: int i = 0; [=](Reading&) mutable { … }
template <class Next>
std::unique_ptr<DatasetIterator> iterator(Next next) {
  class Iterator final : public DatasetIterator {
   public:
    explicit Iterator(Next next) : next_(std::move(next)) {}

   private:
    std::optional<Element> advance(Reading& reading) override { return next_(reading); }
    Next next_;
  };
  return std::make_unique<Iterator>(std::move(next));
}

// An op that makes a dataset. Schema and doc are `op`'s; the output and the kernel are added.
using MakeDataset = std::function<ElementSource::Pointer(ExecuteContext&)>;
OpDef dataset_op(OpDef op, MakeDataset make);
// Attributes that most of them have.
std::vector<std::string> dataset_attrs(std::vector<std::string> more = {});
inline const char* const input_dataset_arg = "input_dataset: variant";
inline const char* const metadata_attr = "metadata: string = ''";

// ---- Datasets that others are made of ----

// Each element of a batch must have the same shapes, or is filled up to `padded`.
struct BatchPadding {
  std::vector<Shape> shapes;   // -1: as the largest element
  std::vector<Tensor> values;  // scalars
};
ElementSource::Pointer batches_of(ElementSource::Pointer input, int64_t size, bool drops_remainder,
                                  ElementTypes types, std::optional<BatchPadding> padding = {});
// One batch of at least one element, which must have the same shapes.
Element stacked(const std::vector<Element>& elements);
ElementSource::Pointer repeated(ElementSource::Pointer input, int64_t count);

// Elements that are kept: RESOURCE_EXHAUSTED if they no longer fit into memory.
void check_memory_for_element(const Element& element);

}  // namespace leat
