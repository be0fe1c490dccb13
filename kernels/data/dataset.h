// Datasets: variants that describe how the elements of an input pipeline are made. Iterators
// (iterator.h) read them.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/state/resource.h"
#include "core/variant.h"
#include "graph/op_def.h"
#include "kernels/cpu.h"

namespace leat {

// One element: nested structures are already flattened.
using Element = std::vector<Tensor>;

// The context in which an iterator's user asks for one element: a step, which may end while
// pipelines are still working.
class Reading {
 public:
  explicit Reading(Cancellation& cancellation);
  ~Reading();
  Reading(const Reading&) = delete;

  // Throws once the step has ended. Call it at least once per element that is read or dropped.
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
// disks. It keeps alive the sources that it reads.
class DatasetIterator {
 public:
  virtual ~DatasetIterator() = default;
  // Returns none at the end, and again after it. After an error it continues after the failed
  // element. Throws once the step of `reading` has ended. INVALID_ARGUMENT for an element whose
  // types differ from the dataset's, which a client declares.
  std::optional<Element> next(Reading& reading);

 private:
  friend class ElementSource;
  virtual std::optional<Element> advance(Reading& reading) = 0;
  std::shared_ptr<const ElementSource> of_;
};

// The components of `a`, then those of `b`.
Element joined(const Element& a, const Element& b);

struct ElementTypes {
  std::vector<DType> dtypes;
  std::vector<Shape> shapes;  // partial
  // From the attributes output_types and output_shapes; Toutput_types instead of the first in some
  // ops.
  static ElementTypes of(const NodeView& node);
  static ElementTypes of(const Element& element);
};
// INVALID_ARGUMENT "… at component 0: expected … but got …".
void check_same_types(const ElementTypes& expected, const ElementTypes& got);

// Special values of a number of elements.
inline constexpr int64_t infinite = -1, unknown = -2;
// `count` times n elements; n may be infinite or unknown.
inline int64_t times(int64_t n, int64_t count) {
  int64_t out = 0;
  if (n < 0) return n;
  return __builtin_mul_overflow(n, count, &out) ? unknown : out;
}
// The batches of `size` elements in n; the last may be smaller.
inline int64_t batches(int64_t n, int64_t size) {
  return n < 0 ? n : n / size + (n % size == 0 ? 0 : 1);
}

// Immutable, except for state that its iterators share (a cache, seeds). Thread-safe. Always in a
// shared_ptr.
class ElementSource : public std::enable_shared_from_this<ElementSource> {
 public:
  using Pointer = std::shared_ptr<const ElementSource>;
  // INVALID_ARGUMENT if datasets are nested more than 1,000 deep, or if a reading of this one would
  // have more than 100,000 parts.
  explicit ElementSource(ElementTypes types, const std::vector<Pointer>& inputs = {});
  virtual ~ElementSource() = default;

  const ElementTypes& types() const { return types_; }
  std::unique_ptr<DatasetIterator> make_iterator() const;
  // The number of elements, as far as TensorFlow knows it without reading any.
  virtual int64_t cardinality() const { return unknown; }
  // Whether a failed element takes its whole batch with it: TensorFlow computes a map and its
  // batches together.
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

ElementSource::Pointer dataset_of(const Tensor& tensor);  // INVALID_ARGUMENT if it is not one
// `depth`: one more than the nesting depth of its input variants.
Tensor dataset_tensor(ElementSource::Pointer dataset, int depth);
inline ElementSource::Pointer input_dataset(const ExecuteContext& c) {
  return dataset_of(c.input(0));
}
// An input that must be a scalar.
template <class T>
T scalar_input(const ExecuteContext& c, int input, std::string_view name) {
  check(c.input(input).shape().rank() == 0, name, " must be a scalar");
  return c.input(input).item<T>();
}

// The shapes of an op's outputs that form an element: its output_shapes.
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

// An op that makes a dataset. Schema and doc come from `op`; the output and the kernel are added.
using MakeDataset = std::function<ElementSource::Pointer(ExecuteContext&)>;
OpDef dataset_op(OpDef op, MakeDataset make);
// The attributes that most dataset ops have.
std::vector<std::string> dataset_attrs(std::vector<std::string> more = {});
inline const char* const input_dataset_arg = "input_dataset: variant";
inline const char* const metadata_attr = "metadata: string = ''";

// ---- Datasets that others are made of ----

// All elements of a batch must have the same shapes, or are padded to `padded`.
struct BatchPadding {
  std::vector<Shape> shapes;   // -1: as the largest element
  std::vector<Tensor> values;  // scalars
};
ElementSource::Pointer batches_of(ElementSource::Pointer input, int64_t size, bool drops_remainder,
                                  ElementTypes types, std::optional<BatchPadding> padding = {});
// One batch of at least one element; all must have the same shapes.
Element stacked(const std::vector<Element>& elements);
ElementSource::Pointer repeated(ElementSource::Pointer input, int64_t count);

// For elements that are kept: RESOURCE_EXHAUSTED if one does not fit into memory.
void check_memory_for_element(const Element& element);

}  // namespace leat
