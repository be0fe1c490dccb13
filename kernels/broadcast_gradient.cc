#include "kernels/broadcast_gradient.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "graph/ops.h"
#include "graph/ops/raw.h"

namespace leat {
namespace {

struct SummedAxes {
  std::vector<int> missing;   // of the result, which x does not have
  std::vector<int> repeated;  // where x has extent 1
};

// None if the axes depend on an unknown extent. Summing an axis where both have extent 1 changes
// nothing, so `repeated` may hold one too many.
std::optional<SummedAxes> static_axes(const Shape& x, const Shape& y) {
  if (!x.has_rank() || !y.has_rank()) return std::nullopt;
  const int rank = std::max(x.rank(), y.rank());
  SummedAxes axes;
  for (int axis = 0; axis < rank; ++axis) {
    const int x_axis = axis - (rank - x.rank());
    const int y_axis = axis - (rank - y.rank());
    const int64_t other = y_axis >= 0 ? y[y_axis] : 1;
    if (x_axis < 0) {
      axes.missing.push_back(axis);
    } else if (x[x_axis] == 1) {
      if (other != 1) axes.repeated.push_back(axis);
    } else if (x[x_axis] == any && other != 1) {
      return std::nullopt;
    }
  }
  return axes;
}

}  // namespace

Output sum_to_shape_of(const Output& x, const Output& y, const Output& dx) {
  if (same(x, y) || (x.shape().is_complete() && x.shape() == y.shape())) return dx;
  const std::optional<SummedAxes> axes = static_axes(x.shape(), y.shape());
  if (!axes) {
    const Output x_shape = shape_of(x);
    return reshape(sum(dx, broadcast_gradient_args(x_shape, shape_of(y))), x_shape);
  }
  std::vector<int> all = axes->missing;
  all.insert(all.end(), axes->repeated.begin(), axes->repeated.end());
  if (all.empty()) return dx;
  if (axes->missing.empty()) return sum(dx, all, {.keep_dims = true});
  const Output total = sum(dx, all);
  if (axes->repeated.empty()) return total;
  return reshape(total, shape_of(x));
}

}  // namespace leat
