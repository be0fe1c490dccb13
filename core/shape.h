// The extents of a tensor, some possibly unknown.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace leat {

class Axes;
class Operand;
struct Output;
struct ReduceAllOptions;
struct ReduceOptions;

// An unknown extent: {any, 784}. As a function it reduces bools as numpy.any does: any(x, 0), in
// graph/ops/reduce.h.
struct AnyExtent {
  constexpr operator int64_t() const { return -1; }  // NOLINT: it is a number
  Output operator()(const Operand& x) const;
  Output operator()(const Operand& x, const Axes& axes) const;
  Output operator()(const Operand& x, const ReduceAllOptions& options) const;
  Output operator()(const Operand& x, const Axes& axes, const ReduceOptions& options) const;
};
inline constexpr AnyExtent any;

// Row-major extents; a scalar has rank 0. A shape with an `any` extent or unknown rank is partial.
// Graphs use partial shapes, tensors only complete ones. At most 16 dimensions (a gradient of Tile
// has twice those of its input); INVALID_ARGUMENT beyond.
class Shape {
 public:
  static constexpr int max_rank = 16;

  Shape() = default;  // a scalar
  Shape(const Shape& other) : rank_(other.rank_), near_(other.near_) {
    if (other.far_) [[unlikely]]
      far_ = std::make_unique<Far>(*other.far_);
  }
  Shape(Shape&& other) noexcept
      : rank_(std::exchange(other.rank_, 0)), near_(other.near_), far_(std::move(other.far_)) {}
  Shape& operator=(const Shape& other) {
    if (this != &other) *this = Shape(other);
    return *this;
  }
  Shape& operator=(Shape&& other) noexcept {
    rank_ = other.rank_;
    near_ = other.near_;
    far_ = std::move(other.far_);
    if (this != &other) other.rank_ = 0;
    return *this;
  }
  Shape(std::initializer_list<int64_t> dims)
      : Shape(std::span<const int64_t>(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const int64_t> dims);
  static Shape unknown();          // rank unknown
  static Shape of_rank(int rank);  // every extent `any`

  bool has_rank() const { return rank_ >= 0; }
  int rank() const { return rank_; }  // -1 if unknown
  bool is_complete() const;           // rank and every extent known
  int64_t operator[](int axis) const { return data()[axis]; }
  void set(int axis, int64_t extent) { data()[axis] = extent; }
  void push_back(int64_t extent);
  std::span<const int64_t> dims() const {
    return {data(), static_cast<size_t>(rank_ < 0 ? 0 : rank_)};
  }

  // Number of elements; -1 if not complete. Overflow of int64 is INVALID_ARGUMENT.
  int64_t elements() const;

  bool operator==(const Shape& other) const;     // same rank and extents, `any` only equals `any`
  bool is_compatible(const Shape& other) const;  // some complete shape fits both
  // Everything that either one knows; INVALID_ARGUMENT if they contradict each other.
  Shape merged(const Shape& other) const;

  std::string to_string() const;  // "[2,3]", "[?,784]", "[]", "<unknown>"

 private:
  // A large graph has millions of shapes; few have more dimensions than a video.
  static constexpr int near_rank = 5;
  using Far = std::array<int64_t, max_rank>;

  const int64_t* data() const { return far_ ? far_->data() : near_.data(); }
  int64_t* data() { return far_ ? far_->data() : near_.data(); }
  void set_rank(int rank);  // extents stay; those that are new are 0

  int rank_ = 0;
  std::array<int64_t, near_rank> near_{};
  std::unique_ptr<Far> far_;  // all extents, once rank > near_rank
};

std::ostream& operator<<(std::ostream& out, const Shape& shape);

// Numpy broadcasting of two shapes, partial ones included; INVALID_ARGUMENT "Incompatible shapes:
// [..] vs. [..]".
Shape broadcast(const Shape& a, const Shape& b);

}  // namespace leat
