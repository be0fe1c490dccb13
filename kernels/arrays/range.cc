// Range and LinSpace: arithmetic progressions.
#include <cmath>
#include <limits>

#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"

namespace leat {
namespace {

constexpr int64_t grain = 65'536;

using RangeTypes = Types<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint16_t,
                         uint32_t, uint64_t>;

template <class T>
int64_t count(T start_value, T limit_value, T delta_value) {
  using C = ComputeType<T>;
  const C start = start_value, limit = limit_value, delta = delta_value;
  check(delta != C(0), "Requires delta != 0: ", +delta);  // + so that int8 prints as a number
  check(delta > C(0) ? start <= limit : start >= limit, "Requires start ",
        delta > C(0) ? "<=" : ">=", " limit when delta ", delta > C(0) ? ">" : "<", " 0: ", +start,
        "/", +limit);
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    const U distance = delta > 0 ? U(limit) - U(start) : U(start) - U(limit);
    const U step = delta > 0 ? U(delta) : U(0) - U(delta);
    const auto n = static_cast<uint64_t>(distance / step) + (distance % step != 0);
    check(n <= uint64_t{std::numeric_limits<int64_t>::max()}, "a range of ", n,
          " numbers is too long");
    return static_cast<int64_t>(n);
  } else {
    const C n = std::ceil(std::abs((limit - start) / delta));
    check(n < C(0x1p63), "a range of ", +n, " numbers is too long");  // false for NaN, too
    return static_cast<int64_t>(n);
  }
}

void infer(ShapeContext& c) {
  for (int i = 0; i < 3; ++i) {
    check(c.input(i).is_compatible({}) || c.input(i).is_compatible({1}), c.input_name(i),
          " must be a scalar, got shape ", c.input(i));
  }
  int64_t n = any;
  if (c.value(0) != nullptr && c.value(1) != nullptr && c.value(2) != nullptr) {
    visit_dtype(c.input_dtype(0), [&]<class T>(TypeTag<T>) {
      if constexpr (std::is_convertible_v<T, double> && !std::is_same_v<T, bool>)
        n = count<T>(c.value(0)->item<T>(), c.value(1)->item<T>(), c.value(2)->item<T>());
    });
  }
  c.set_output(0, Shape{n});
}

const Op range_op{{
    .name = "Range",
    .doc = "output = start, start + delta, start + 2 delta, …: all that lie before limit.",
    .inputs = {"start: Tidx", "limit: Tidx", "delta: Tidx"},
    .outputs = {"output: Tidx"},
    .attrs = {"Tidx: {bfloat16, half, float, double, int8, int16, int32, int64, uint16, uint32, "
              "uint64} = int32"},
    .shape = infer,
    .kernels = {cpu_kernel("Tidx", RangeTypes{},
                           []<class T>(TypeTag<T>, const KernelRequest& r) {
                             using C = ComputeType<T>;
                             return BoundKernel::of(
                                 [n = r.outputs[0].shape[0]](const Arguments& a) {
                                   const C start = *a.input<T>(0), delta = *a.input<T>(2);
                                   a.stream->parallel_for(
                                       n, grain, [&](int64_t begin, int64_t end) {
                                         for (int64_t i = begin; i < end; ++i)
                                           a.output<T>()[i] = T(start + C(i) * delta);
                                       });
                                 });
                           })},
    .examples = {{.inputs = {Tensor::scalar<int32_t>(3), Tensor::scalar<int32_t>(8),
                             Tensor::scalar<int32_t>(2)},
                  .outputs = {ints({3, 5, 7})}}},
    .value_inputs = {0, 1, 2},
    .is_not_differentiable = true,
}};

// ---- LinSpace

void infer_lin_space(ShapeContext& c) {
  for (int i = 0; i < 3; ++i) c.with_rank(i, 0);
  if (c.value(2) == nullptr) return c.set_output(0, Shape{any});
  const int64_t n = to_int64s(*c.value(2)).at(0);
  check(n > 0, "Requires num > 0: ", n);
  c.set_output(0, Shape{n});
}

const Op lin_space_op{{
    .name = "LinSpace",
    .doc = "output = num numbers from start to stop, at equal distances.",
    .inputs = {"start: T", "stop: T", "num: Tidx"},
    .outputs = {"output: T"},
    .attrs = {"T: {bfloat16, half, float, double}", "Tidx: {int32, int64} = int32"},
    .shape = infer_lin_space,
    .kernels = {cpu_kernel("T", FloatTypes{},
                           []<class T>(TypeTag<T>, const KernelRequest& r) {
                             using C = ComputeType<T>;
                             return BoundKernel::of(
                                 [n = r.outputs[0].shape[0]](const Arguments& a) {
                                   const C start = *a.input<T>(0), stop = *a.input<T>(1);
                                   const C step = n > 1 ? (stop - start) / C(n - 1) : C(0);
                                   a.stream->parallel_for(
                                       n, grain, [&](int64_t begin, int64_t end) {
                                         for (int64_t i = begin; i < end; ++i)
                                           a.output<T>()[i] = T(start + step * C(i));
                                       });
                                   // The ends are exact, infinities included.
                                   if (n > 0) a.output<T>()[0] = T(start);
                                   if (n > 1) a.output<T>()[n - 1] = T(stop);
                                 });
                           })},
    .examples = {{.inputs = {Tensor::scalar(1.0f), Tensor::scalar(2.0f), Tensor::scalar(3)},
                  .outputs = {floats({1, 1.5, 2})}}},
    .value_inputs = {2},
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
