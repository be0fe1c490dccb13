// Tensor: dtype, shape and a shared handle on one buffer. Copying a Tensor copies the handle, never
// the elements.
#pragma once

#include <concepts>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/error.h"
#include "core/shape.h"
#include "core/sole_handle.h"

namespace leat {

class Device;

// One block of memory of one device. Freed with the last handle. Alignment: 64 bytes on hosts, 256
// on GPUs.
class Buffer {
 public:
  // `release` is called once with `data` when the buffer dies; it may be empty.
  Buffer(void* data, size_t bytes, std::function<void(void*)> release, Device* device = nullptr);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  // Uninitialised host memory, 64-byte aligned. RESOURCE_EXHAUSTED (with the size) if there is
  // none.
  static std::shared_ptr<Buffer> allocate(size_t bytes);

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  Device* device() const { return device_; }  // null: host memory

  // The `_ConcatInPlace` of a step's graph whose output this will be, by its number: its inputs are
  // received into their places here (graph/passes/receive_in_place.cc). 0: of none, or it is whole.
  int64_t joint() const { return joint_; }
  void set_joint(int64_t joint) { joint_ = joint; }

 private:
  int64_t joint_ = 0;
  void* data_;
  size_t bytes_;
  std::function<void(void*)> release_;
  Device* device_;
};

class Tensor {
 public:
  Tensor() = default;  // dtype invalid: "no tensor"
  // Uninitialised elements (strings are empty, variants null). The shape must be complete.
  Tensor(DType dtype, const Shape& shape);
  // Over existing memory: `offset` bytes into `buffer`, which must hold all elements. Not for
  // strings and variants.
  Tensor(DType dtype, const Shape& shape, std::shared_ptr<Buffer> buffer, size_t offset = 0);

  template <class T>
  static Tensor scalar(T value) {
    return of<T>({}, {std::move(value)});
  }
  static Tensor scalar(const char* value);
  // Tensor::of<float>({2, 2}, {1, 2, 3, 4}); the number of values must match the shape.
  template <class T>
  static Tensor of(const Shape& shape, std::initializer_list<T> values) {
    return of<T>(shape, std::span<const T>(values.begin(), values.size()));
  }
  template <class T>
  static Tensor of(const Shape& shape, std::span<const T> values) {
    return copied<T>(shape, values);
  }

  // The same from a vector; without a shape it is [values.size()].
  template <class T>
  static Tensor of(const Shape& shape, const std::vector<T>& values) {
    return copied<T>(shape, values);  // a vector of bools is no span
  }
  template <class T>
  static Tensor of(const std::vector<T>& values) {
    return of<T>(Shape{static_cast<int64_t>(values.size())}, values);
  }
  // Tensor::of({1, 2, 3}) is an int32 vector, Tensor::of({{1.0F, 2.0F}, {3.0F, 4.0F}}) a float32
  // matrix, and so is Tensor::of<float>({{1, 2}, {3, 4}}). INVALID_ARGUMENT if rows differ in
  // length.
  template <int = 0, class T>
  static Tensor of(std::initializer_list<T> values) {
    return of<T>(Shape{static_cast<int64_t>(values.size())}, values);
  }
  template <class T>
  static Tensor of(std::initializer_list<std::initializer_list<T>> rows) {
    const auto columns = rows.size() == 0 ? 0 : static_cast<int64_t>(rows.begin()->size());
    Tensor out(dtype_of<T>, {static_cast<int64_t>(rows.size()), columns});
    T* next = out.data<T>();
    for (const std::initializer_list<T>& row : rows) {
      check(std::ssize(row) == columns, "Tensor::of: the rows have different lengths, ", columns,
            " and ", row.size());
      next = std::copy(row.begin(), row.end(), next);
    }
    return out;
  }
  // Zeros for numbers, empty strings for strings.
  static Tensor zeros(const Shape& shape, DType dtype = DType::f32);
  // INVALID_ARGUMENT for strings and the like.
  static Tensor ones(const Shape& shape, DType dtype = DType::f32);
  // Tensor::full({2, 3}, 0.5F): of the value's dtype.
  template <class T>
  static Tensor full(const Shape& shape, T value) {
    Tensor out(dtype_of<T>, shape);
    std::fill_n(out.data<T>(), out.elements(), value);
    return out;
  }

  bool is_valid() const { return dtype_ != DType::invalid; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t elements() const { return elements_; }
  size_t bytes() const { return static_cast<size_t>(elements_) * dtype_size(dtype_); }

  // Elements in row-major order. INVALID_ARGUMENT unless T is the element type. May be null for 0
  // elements.
  template <class T>
  T* data() {
    check(dtype_of<T> == dtype_, "a tensor of dtype ", dtype_, " was read as ", dtype_of<T>,
          ": give data() or item() the type of its elements, or cast() it in the graph");
    return static_cast<T*>(raw());
  }
  template <class T>
  const T* data() const {
    return const_cast<Tensor*>(this)->data<T>();
  }
  template <class T>
  std::span<T> span() {
    return {data<T>(), static_cast<size_t>(elements_)};
  }
  template <class T>
  std::span<const T> span() const {
    return {data<T>(), static_cast<size_t>(elements_)};
  }
  template <class T>
  std::vector<T> to_vector() const {
    return std::vector<T>(data<T>(), data<T>() + elements_);
  }
  // The only element; INVALID_ARGUMENT unless there is exactly one.
  template <class T>
  T item() const {
    check(elements_ == 1, "a tensor of shape ", shape_, " was read as a scalar");
    return *data<T>();
  }
  // One element: t.at<float>(1, 2), with an index from 0 for each axis. INVALID_ARGUMENT unless T
  // is the element type and the indices lie within the shape.
  template <class T, std::integral... Indices>
  T& at(Indices... indices) {
    return data<T>()[position({static_cast<int64_t>(indices)...})];
  }
  template <class T, std::integral... Indices>
  const T& at(Indices... indices) const {
    return data<T>()[position({static_cast<int64_t>(indices)...})];
  }
  void* raw() const { return buffer_ ? static_cast<char*>(buffer_->data()) + offset_ : nullptr; }
  const std::shared_ptr<Buffer>& buffer() const { return buffer_; }
  Device* device() const { return buffer_ ? buffer_->device() : nullptr; }  // null: host memory

  // The same elements in another shape of the same size.
  Tensor reshaped(const Shape& shape) const;
  // The elements from `offset` bytes on, in the same memory.
  Tensor part(const Shape& shape, size_t offset) const;
  // A copy of the elements (host tensors only).
  Tensor clone() const;

  // "float[2,2] [[1, 2], [3, 4]]", at most `limit` elements.
  std::string to_string(int limit = 8) const;

 private:
  template <class T, class Values>
  static Tensor copied(const Shape& shape, const Values& values) {
    Tensor out(dtype_of<T>, shape);
    check(out.elements() == std::ssize(values), values.size(), " values were given for shape ",
          shape);
    std::copy(values.begin(), values.end(), out.data<T>());
    return out;
  }
  // Of the element with these indices, in row-major order.
  int64_t position(std::initializer_list<int64_t> indices) const;

  DType dtype_ = DType::invalid;
  Shape shape_;
  int64_t elements_ = 0;
  std::shared_ptr<Buffer> buffer_;
  size_t offset_ = 0;
};

// As NumPy prints it, after dtype and shape: all elements if they are at most 1,000, else three at
// each end of an axis; a line for each row if they are more than 8.
std::ostream& operator<<(std::ostream& out, const Tensor& tensor);
// to_string(): in messages a tensor is short.
void write_in_message(std::ostream& out, const Tensor& tensor);

// A host tensor of i16, i32 or i64 as int64: for axes, shapes, sizes. INVALID_ARGUMENT for other
// dtypes.
std::vector<int64_t> to_int64s(const Tensor& tensor);

}  // namespace leat
