// leat: cpu+cuda
// Cumsum, Cumprod and CumulativeLogsumexp.
#include "kernels/sum_reducer.h"

namespace leat {
namespace {

struct Product {
  template <class T>
  LEAT_DEVICE static T identity() {
    return T(1);
  }
  template <class T>
  LEAT_DEVICE static T combine(T a, T b) {
    return static_cast<T>(Wrapping<T>(a) * Wrapping<T>(b));
  }
};

struct LogSumExp {
  template <class T>
  LEAT_DEVICE static T identity() {
    return -std::numeric_limits<T>::infinity();
  }
  template <class T>
  LEAT_DEVICE static T combine(T a, T b) {
    if (a != a || b != b) return std::numeric_limits<T>::quiet_NaN();
    const T larger = a < b ? b : a, smaller = a < b ? a : b;
    if (larger - larger != T(0)) return larger;  // infinite: the difference may be NaN
    return std::log1p(std::exp(smaller - larger)) + larger;
  }
};

// One line of `extent` elements that lie `inner` apart.
template <class R, class T>
struct Scan {
  int64_t extent;
  int64_t inner;
  bool exclusive;
  bool reverse;

  LEAT_DEVICE void operator()(int64_t i, const Pointers& pointers) const {
    using C = ComputeType<T>;
    const int64_t line = i / inner * extent * inner + i % inner;
    const T* from = pointers.input<T>(0) + line;
    T* to = pointers.output<T>() + line;
    C total = R::template identity<C>();
    for (int64_t k = 0; k < extent; ++k) {
      const int64_t at = (reverse ? extent - 1 - k : k) * inner;
      const C next = R::template combine<C>(total, static_cast<C>(from[at]));
      to[at] = static_cast<T>(exclusive ? total : next);
      total = next;
    }
  }
};

template <class R, class Supported = NumberTypes>
std::vector<Kernel> scan_kernels() {
  Kernel kernel;
  kernel.device = kernel_device;
  kernel.types = {{"T", Supported::list()}};
  kernel.host_inputs = {1};
  kernel.prepare = [](const KernelRequest& request) {
    const Shape& shape = request.inputs[0].shape;
    const Tensor& axis = *request.inputs[1].value;
    check(axis.shape().rank() == 0, "axis must be a scalar, got shape ", axis.shape());
    const std::vector<bool> chosen = reduced_axes(axis, shape.rank());
    int64_t inner = 1;
    int64_t extent = 1;
    for (int i = shape.rank() - 1; i >= 0; --i) {
      if (chosen[i]) {
        extent = shape[i];
        break;
      }
      inner *= shape[i];
    }
    const int64_t lines = shape.elements() == 0 ? 0 : shape.elements() / extent;
    const bool exclusive = request.attr<bool>("exclusive");
    const bool reverse = request.attr<bool>("reverse");
    BoundKernel bound = visit_type(Supported{}, request.inputs[0].dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      return bind_indexed(request, lines, 10 * extent,
                          Scan<R, T>{extent, inner, exclusive, reverse});
    });
    bound.may_share = {{0, 0}};
    return bound;
  };
  return {kernel};
}

template <class R>
std::vector<Kernel> scan_kernels_with_complex() {
  std::vector<Kernel> kernels = scan_kernels<R>();
  if constexpr (has_host_types) kernels = join(kernels, scan_kernels<R, ComplexTypes>());
  return kernels;
}

Output cumsum(const Output& x, const Output& axis, bool exclusive, bool reverse) {
  return op("Cumsum", {x, axis}, {{"exclusive", exclusive}, {"reverse", reverse}});
}

const Op cumsum_op{{
    .name = "Cumsum",
    .doc =
        "out[k] = x[0] + … + x[k] along axis; without x[k] if exclusive, from the end if reverse.",
    .inputs = {"x: T", "axis: Tidx"},
    .outputs = {"out: T"},
    .attrs = {"exclusive: bool = false", "reverse: bool = false", "T: numbertype",
              "Tidx: {int32, int64} = int32"},
    .shape = shapes::same_as(0),
    .gradient =
        [](Gradient& g) {
          g.dx(0) = cumsum(g.dy(), g.x(1), g.attr<bool>("exclusive"), !g.attr<bool>("reverse"));
        },
    .kernels = scan_kernels_with_complex<SumReducer>(),
    .examples = {{.inputs = {floats({2, 3}, {1, 2, 3, 4, 5, 6}), Tensor::scalar(1)},
                  .outputs = {floats({2, 3}, {1, 3, 6, 4, 9, 15})}}},
    .value_inputs = {1},
}};

const Op cumprod_op{{
    .name = "Cumprod",
    .doc = "out[k] = x[0] ⋯ x[k] along axis; without x[k] if exclusive, from the end if reverse.",
    .inputs = {"x: T", "axis: Tidx"},
    .outputs = {"out: T"},
    .attrs = {"exclusive: bool = false", "reverse: bool = false", "T: numbertype",
              "Tidx: {int32, int64} = int32"},
    .shape = shapes::same_as(0),
    .gradient =
        [](Gradient& g) {
          const Output total =
              cumsum(g.y() * g.dy(), g.x(1), g.attr<bool>("exclusive"), !g.attr<bool>("reverse"));
          g.dx(0) = div_no_nan(total, g.x(0));
        },
    .kernels = scan_kernels_with_complex<Product>(),
    .examples = {{.inputs = {floats({3}, {2, 3, 4}), Tensor::scalar(0)},
                  .outputs = {floats({2, 6, 24})}},
                 {.inputs = {floats({3}, {2, 3, 4}), Tensor::scalar(0)},
                  .attrs = {{"exclusive", true}, {"reverse", true}},
                  .outputs = {floats({12, 4, 1})}}},
    .value_inputs = {1},
}};

// log(dy) where that is positive (times `sign`), and the lowest number where it is not, which adds
// nothing to a sum of exponentials.
Output log_of_part(const Output& dy, double sign) {
  const double lowest = dy.dtype() == DType::f16    ? -65504
                        : dy.dtype() == DType::bf16 ? -0x1.fep127
                        : dy.dtype() == f32         ? -0x1.fffffep127
                                                    : std::numeric_limits<double>::lowest();
  const Output part = sign < 0 ? -dy : dy;
  return where(greater(part, 0), log(part), lowest);
}

const Op cumulative_logsumexp_op{{
    .name = "CumulativeLogsumexp",
    .doc = "out[k] = log(exp(x[0]) + … + exp(x[k])) along axis; without x[k] if exclusive, from "
           "the end if reverse.",
    .inputs = {"x: T", "axis: Tidx"},
    .outputs = {"out: T"},
    .attrs = {"exclusive: bool = false", "reverse: bool = false",
              "T: {bfloat16, half, float, double}", "Tidx: {int32, int64} = int32"},
    .shape = shapes::same_as(0),
    .gradient =
        [](Gradient& g) {
          // The sum of dy[j] exp(x[k] - out[j]) over all out[j] that contain x[k], by logarithms of
          // the positive and of the negative dy.
          const AttrMap attrs = {{"exclusive", g.attr<bool>("exclusive")},
                                 {"reverse", !g.attr<bool>("reverse")}};
          const auto part = [&](double sign) {
            const Output logs = log_of_part(g.dy(), sign) - g.y();
            return exp(op("CumulativeLogsumexp", {logs, g.x(1)}, attrs) + g.x(0));
          };
          g.dx(0) = part(1) - part(-1);
        },
    .kernels = scan_kernels<LogSumExp, FloatTypes>(),
    .examples = {{.inputs = {floats({3}, {0, 0, 100}), Tensor::scalar(0)},
                  .outputs = {floats({0, 0.69314718F, 100})}}},
    .value_inputs = {1},
}};

}  // namespace
}  // namespace leat
