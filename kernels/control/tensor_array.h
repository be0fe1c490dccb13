// TensorArrays: tensors by number, written once each, by which while loops take their inputs apart
// and put their outputs together. An array belongs to the step that made it.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/resource.h"
#include "core/tensor.h"

namespace leat {

// Thread-safe. Errors are TensorFlow's.
class TensorArray final : public Resource {
 public:
  struct Options {
    DType dtype;
    int32_t size;
    Shape element_shape;
    bool is_dynamic;        // grows when something is written behind its end
    bool clear_after_read;  // an element can be read once
    bool has_one_shape;     // all elements have the shape of the first
    bool is_gradient;       // what is written again is added
  };
  TensorArray(std::string name, Options options);

  void check_fits(const NodeView&) const override {}
  std::string state() const override;

  DType dtype() const { return options_.dtype; }
  int32_t size() const;

  void write(int32_t index, Tensor value);
  void write_all(std::span<const int32_t> indices, std::vector<Tensor> values);
  // For `count` new elements, from number 0 on.
  void check_room(int64_t count) const;

  // What was not written is zeros, if the shape is known.
  Tensor read(int32_t index);
  std::vector<Tensor> read_all(std::span<const int32_t> indices);

  // What is wanted fits the elements' shape, which it may make more precise.
  Shape merge_element_shape(const Shape& wanted);

  // The array of the gradients that `source` computes, its elements with `prefix` before their
  // shape; made when it is first asked for. From then on this one cannot grow.
  std::shared_ptr<TensorArray> gradient(const std::string& source, const Shape& prefix);

  void close();

 private:
  struct Element {
    Tensor value;
    Shape shape = Shape::unknown();
    bool is_written = false, is_read = false, is_cleared = false;
    bool is_own = false;  // a sum, whose memory nobody else has
  };

  // With the lock held.
  void check_open() const;
  void write_locked(int32_t index, Tensor value);
  Tensor read_locked(int32_t index);

  mutable std::mutex mutex_;
  Options options_;
  std::unordered_map<int32_t, Element> elements_;  // those that were touched
  std::unordered_map<std::string, std::shared_ptr<TensorArray>> gradients_;  // by source
  bool is_closed_ = false;
};

}  // namespace leat
