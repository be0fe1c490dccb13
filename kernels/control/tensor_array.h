// TensorArrays: numbered tensors, each written once, into which while loops split their inputs and
// from which they join their outputs. An array belongs to the step that made it.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/state/resource.h"
#include "core/tensor.h"

namespace leat {

// Thread-safe. Errors are TensorFlow's.
class TensorArray final : public Resource {
 public:
  struct Options {
    DType dtype;
    int32_t size;
    Shape element_shape;
    bool is_dynamic;        // grows when an element is written past its end
    bool clear_after_read;  // an element can be read once
    bool has_one_shape;     // all elements have the shape of the first
    bool is_gradient;       // repeated writes are added
  };
  TensorArray(std::string name, Options options);

  void check_fits(const NodeView&) const override {}
  std::string state() const override;

  DType dtype() const { return options_.dtype; }
  int32_t size() const;

  void write(int32_t index, Tensor value);
  void write_all(std::span<const int32_t> indices, std::vector<Tensor> values);
  // Checks that there is memory for `count` new elements, from number 0 on.
  void check_room(int64_t count) const;

  // An element that was not written is zeros, if the shape is known.
  Tensor read(int32_t index);
  std::vector<Tensor> read_all(std::span<const int32_t> indices);

  // Merges `wanted` into the elements' shape, which may become more precise; both must be
  // compatible.
  Shape merge_element_shape(const Shape& wanted);

  // The array of the gradients that `source` computes. `prefix` precedes the shape of its elements.
  // Created by the first call; from then on this array cannot grow.
  std::shared_ptr<TensorArray> gradient(const std::string& source, const Shape& prefix);

  void close();

 private:
  struct Element {
    Tensor value;
    Shape shape = Shape::unknown();
    bool is_written = false, is_read = false, is_cleared = false;
    bool is_own = false;  // a sum, whose memory is not shared
  };

  // Called with the lock held.
  void check_open() const;
  void write_locked(int32_t index, Tensor value);
  Tensor read_locked(int32_t index);

  mutable std::mutex mutex_;
  Options options_;
  std::unordered_map<int32_t, Element> elements_;                            // those in use
  std::unordered_map<std::string, std::shared_ptr<TensorArray>> gradients_;  // by source
  bool is_closed_ = false;
};

}  // namespace leat
