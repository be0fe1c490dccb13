#include "core/shape.h"

#include <algorithm>
#include <ostream>

#include "core/error.h"

namespace leat {

Shape::Shape(std::span<const int64_t> dims) {
  check(dims.size() <= max_rank, "a shape has ", dims.size(), " dimensions; at most ", max_rank,
        " are supported");
  set_rank(static_cast<int>(dims.size()));
  for (int axis = 0; axis < rank_; ++axis) {
    check(dims[axis] >= -1, "extent ", axis, " of a shape is ", dims[axis],
          "; it must be 0 or more, or `any` (-1)");
    set(axis, dims[axis]);
  }
}

void Shape::set_rank(int rank) {
  if (rank > near_rank && !far_) {
    far_ = std::make_unique<Far>();
    std::copy(near_.begin(), near_.end(), far_->begin());
  }
  rank_ = rank;
}

Shape Shape::unknown() {
  Shape out;
  out.rank_ = -1;
  return out;
}

Shape Shape::of_rank(int rank) {
  check(rank >= 0 && rank <= max_rank, "a shape of rank ", rank, " was asked for; 0 to ", max_rank,
        " are supported");
  Shape out;
  out.set_rank(rank);
  std::fill_n(out.data(), rank, any);
  return out;
}

bool Shape::is_complete() const {
  if (rank_ < 0) return false;
  return std::ranges::none_of(dims(), [](int64_t dim) { return dim < 0; });
}

void Shape::push_back(int64_t extent) {
  check(rank_ >= 0 && rank_ < max_rank, "a shape has at most ", max_rank,
        " dimensions: there is no room for one more after ", *this);
  set_rank(rank_ + 1);
  set(rank_ - 1, extent);
}

int64_t Shape::elements() const {
  if (!is_complete()) return -1;
  int64_t count = 1;
  bool empty = false;
  for (int64_t dim : dims()) empty = empty || dim == 0;
  if (empty) return 0;
  for (int64_t dim : dims()) {
    check(!__builtin_mul_overflow(count, dim, &count), "shape ", *this,
          " has more than 2^63 elements");
  }
  return count;
}

bool Shape::operator==(const Shape& other) const {
  return rank_ == other.rank_ && std::ranges::equal(dims(), other.dims());
}

bool Shape::is_compatible(const Shape& other) const {
  if (rank_ < 0 || other.rank_ < 0) return true;
  if (rank_ != other.rank_) return false;
  for (int axis = 0; axis < rank_; ++axis) {
    const int64_t mine = (*this)[axis], others = other[axis];
    if (mine >= 0 && others >= 0 && mine != others) return false;
  }
  return true;
}

Shape Shape::merged(const Shape& other) const {
  if (rank_ < 0) return other;
  if (other.rank_ < 0) return *this;
  check(is_compatible(other), "shapes ", *this, " and ", other, " contradict each other");
  Shape out = *this;
  for (int axis = 0; axis < rank_; ++axis) {
    if (out[axis] < 0) out.set(axis, other[axis]);
  }
  return out;
}

std::string Shape::to_string() const {
  if (rank_ < 0) return "<unknown>";
  std::string out = "[";
  for (const int64_t dim : dims()) {
    if (out.size() > 1) out += ',';
    out += dim < 0 ? "?" : std::to_string(dim);
  }
  return out + "]";
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << shape.to_string(); }

Shape broadcast(const Shape& a, const Shape& b) {
  if (!a.has_rank() || !b.has_rank()) return Shape::unknown();
  const int rank = std::max(a.rank(), b.rank());
  Shape out = Shape::of_rank(rank);
  for (int i = 1; i <= rank; ++i) {  // from the last axis
    const int64_t x = i <= a.rank() ? a[a.rank() - i] : 1;
    const int64_t y = i <= b.rank() ? b[b.rank() - i] : 1;
    int64_t extent = any;
    if (x == 1) {
      extent = y;
    } else if (y == 1 || x == y) {
      extent = x;
    } else if (x < 0 || y < 0) {
      extent = std::max(x, y);  // the known one is not 1, so it decides
    } else {
      fail(Code::invalid_argument, "Incompatible shapes: ", a, " vs. ", b);
    }
    out.set(rank - i, extent);
  }
  return out;
}

}  // namespace leat
