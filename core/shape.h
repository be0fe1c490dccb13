// The extents of a tensor, possibly not all known yet.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>

namespace leat {

inline constexpr int64_t any = -1;  // an extent that is not known: {any, 784}

// Row-major extents; a scalar has rank 0. An extent of `any` or an unknown rank make the shape
// partial: the graph deals in partial shapes, tensors only ever have complete ones. At most 16
// dimensions (a gradient of Tile has twice those of its input); more is INVALID_ARGUMENT.
class Shape {
 public:
  static constexpr int max_rank = 16;

  Shape() = default;  // a scalar
  Shape(std::initializer_list<int64_t> dims)
      : Shape(std::span<const int64_t>(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const int64_t> dims);
  static Shape unknown();          // rank unknown
  static Shape of_rank(int rank);  // every extent `any`

  bool has_rank() const { return rank_ >= 0; }
  int rank() const { return rank_; }  // -1 if unknown
  bool is_complete() const;           // rank and every extent known
  int64_t operator[](int axis) const { return dims_[axis]; }
  void set(int axis, int64_t extent) { dims_[axis] = extent; }
  void push_back(int64_t extent);
  std::span<const int64_t> dims() const {
    return {dims_.data(), static_cast<size_t>(rank_ < 0 ? 0 : rank_)};
  }

  // Number of elements; -1 if not complete. Overflow of int64 is INVALID_ARGUMENT.
  int64_t elements() const;

  bool operator==(const Shape& other) const;     // same rank and extents, `any` only equals `any`
  bool is_compatible(const Shape& other) const;  // some complete shape fits both
  // The most that both say; INVALID_ARGUMENT if they contradict each other.
  Shape merged(const Shape& other) const;

  std::string to_string() const;  // "[2,3]", "[?,784]", "[]", "<unknown>"

 private:
  int rank_ = 0;
  std::array<int64_t, max_rank> dims_{};
};

std::ostream& operator<<(std::ostream& out, const Shape& shape);

// Numpy broadcasting of two shapes, partial ones included; INVALID_ARGUMENT "Incompatible shapes:
// [..] vs. [..]".
Shape broadcast(const Shape& a, const Shape& b);

}  // namespace leat
