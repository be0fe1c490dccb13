#include "kernels/control/tensor_array.h"

#include <limits>

#include "kernels/control/add_elements.h"
#include "kernels/moves/copy_elements.h"

namespace leat {
namespace {

Shape prefixed(const Shape& prefix, const Shape& shape) {
  if (prefix.rank() == 0 || !shape.has_rank()) return shape;
  Shape out = prefix;
  for (int d = 0; d < shape.rank(); ++d) out.push_back(shape[d]);
  return out;
}

}  // namespace

TensorArray::TensorArray(std::string name, Options options)
    : Resource(std::move(name)), options_(std::move(options)) {
  check(options_.size >= 0, "Size should be >= 0., got ", options_.size);
}

std::string TensorArray::state() const {
  const std::lock_guard lock(mutex_);
  return concat("TensorArray '", name(), "' has ", elements_.size(), " of ", options_.size,
                " elements");
}

int32_t TensorArray::size() const {
  const std::lock_guard lock(mutex_);
  check_open();
  return options_.size;
}

void TensorArray::write(int32_t index, Tensor value) {
  const std::lock_guard lock(mutex_);
  check_open();
  write_locked(index, std::move(value));
}

void TensorArray::write_all(std::span<const int32_t> indices, std::vector<Tensor> values) {
  const std::lock_guard lock(mutex_);
  check_open();
  for (size_t i = 0; i < values.size(); ++i) write_locked(indices[i], std::move(values[i]));
}

void TensorArray::check_room(int64_t count) const {
  const std::lock_guard lock(mutex_);
  check_open();
  if (options_.is_dynamic) {
    check(options_.size <= count, "TensorArray's size is ", options_.size, ", but there are only ",
          count, " lengths");
    return;
  }
  check(options_.size == count, "TensorArray's size is not equal to the size of lengths (",
        options_.size, " vs. ", count,
        "), and the TensorArray is not marked as dynamically resizeable");
}

Tensor TensorArray::read(int32_t index) {
  const std::lock_guard lock(mutex_);
  check_open();
  return read_locked(index);
}

std::vector<Tensor> TensorArray::read_all(std::span<const int32_t> indices) {
  const std::lock_guard lock(mutex_);
  check_open();
  std::vector<Tensor> out;
  out.reserve(indices.size());
  for (const int32_t index : indices) out.push_back(read_locked(index));
  return out;
}

Shape TensorArray::merge_element_shape(const Shape& wanted) {
  const std::lock_guard lock(mutex_);
  check_open();
  check(options_.element_shape.is_compatible(wanted), "TensorArray ", name(),
        ": the element shape ", wanted, " does not fit the element shape of the array, ",
        options_.element_shape);
  const Shape merged = options_.element_shape.merged(wanted);
  if (options_.has_one_shape) options_.element_shape = merged;
  return merged;
}

std::shared_ptr<TensorArray> TensorArray::gradient(const std::string& source, const Shape& prefix) {
  const std::lock_guard lock(mutex_);
  check_open();
  std::shared_ptr<TensorArray>& out = gradients_[source];
  if (out) return out;
  options_.is_dynamic = false;
  Options options = options_;
  options.element_shape = prefixed(prefix, options_.element_shape);
  options.clear_after_read = true;
  options.is_gradient = true;
  out = std::make_shared<TensorArray>(concat(name(), "@", source), std::move(options));
  for (const auto& [index, element] : elements_)
    out->elements_[index].shape = prefixed(prefix, element.shape);
  return out;
}

void TensorArray::close() {
  const std::lock_guard lock(mutex_);
  elements_.clear();
  is_closed_ = true;
}

void TensorArray::check_open() const {
  check(!is_closed_, "TensorArray ", name(), " has already been closed.");
}

void TensorArray::write_locked(int32_t index, Tensor value) {
  const auto refuse = [&](auto... why) {
    fail(Code::invalid_argument, "TensorArray ", name(), ": Could not write to TensorArray index ",
         index, " because ", why...);
  };
  if (index < 0 || index >= options_.size) {
    check(index >= 0 && options_.is_dynamic, "TensorArray ", name(), ": Tried to write to index ",
          index, " but array is not resizeable and size is: ", options_.size);
    if (index == std::numeric_limits<int32_t>::max())
      refuse("an array has at most ", index, " elements.");
    options_.size = index + 1;
  }
  if (value.dtype() != options_.dtype)
    refuse("the value dtype is ", value.dtype(), " but TensorArray dtype is ", options_.dtype);
  if (!options_.element_shape.is_compatible(value.shape()))
    refuse("the value shape is ", value.shape(),
           " which is incompatible with the TensorArray's inferred element shape: ",
           options_.element_shape, " (consider setting infer_shape=False).");
  Element& element = elements_[index];
  if (element.is_read) refuse("it has already been read.");
  if (element.is_written && !options_.is_gradient) refuse("it has already been written to.");
  if (options_.has_one_shape) options_.element_shape = value.shape();
  if (!element.is_written) {
    element = {.value = std::move(value), .is_written = true};
    element.shape = element.value.shape();
    return;
  }
  check(element.shape == value.shape(), "TensorArray ", name(),
        ": Could not aggregate to TensorArray index ", index, " because the existing shape is ",
        element.shape, " but the new input shape is ", value.shape(), ".");
  if (!element.is_own) element.value = element.value.clone();
  element.is_own = true;
  add_to(element.value, value);
}

Tensor TensorArray::read_locked(int32_t index) {
  check(index >= 0 && index < options_.size, "TensorArray ", name(), ": Tried to read from index ",
        index, " but array size is: ", options_.size);
  Element& element = elements_[index];
  check(!element.is_cleared, "TensorArray ", name(), ": Could not read index ", index,
        " twice because it was cleared after a previous read (perhaps try setting "
        "clear_after_read = false?).");
  if (!element.is_written) {
    const Shape& shape = element.shape.is_complete() ? element.shape : options_.element_shape;
    check(shape.is_complete(), "TensorArray ", name(), ": Could not read from TensorArray index ",
          index, ".  Furthermore, the element shape is not fully defined: ", shape,
          ".  It is possible you are working with a resizeable TensorArray and stop_gradients "
          "is not allowing the gradients to be written.  If you set the full element_shape "
          "property on the forward TensorArray, the proper all-zeros tensor will be returned "
          "instead of incurring this error.");
    element.value = zeros(options_.dtype, shape);
    element.shape = shape;
    element.is_written = true;
  }
  element.is_read = true;
  if (!options_.clear_after_read) return element.value;
  element.is_cleared = true;
  return std::move(element.value);
}

}  // namespace leat
