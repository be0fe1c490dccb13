// Random tensors. The numbers equal TensorFlow's for the same (seed, seed2): Philox4x32-10, the
// same conversion from bits to numbers, the same grouping of outputs, and the same number of blocks
// skipped after each run.
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/random/random_fill.h"
#include "kernels/random/random_stream.h"

namespace leat {
namespace {

// ---- Kernels

template <template <class> class Distribution>
Kernel random_kernel(int64_t grain) {
  return cpu_kernel(
      "dtype", FloatTypes{}, [grain]<class T>(TypeTag<T>, const KernelRequest& request) {
        return BoundKernel::of([stream = RandomStream::of(request),
                                n = request.outputs[0].shape.elements(),
                                grain](const Arguments& a) {
          fill<T>(a, stream->take(n * blocks_per_output), Distribution<T>{}, n, grain);
        });
      });
}

template <class T>
BoundKernel prepare_uniform_int(TypeTag<T>, const KernelRequest& request) {
  return BoundKernel::of([stream = RandomStream::of(request),
                          n = request.outputs[0].shape.elements()](const Arguments& a) {
    if (n == 0) return;  // the bounds are not checked if there is nothing to draw
    const T low = *a.input<T>(1), high = *a.input<T>(2);
    check(low < high, "Need minval < maxval, got ", low, " >= ", high);
    using U = std::make_unsigned_t<T>;
    fill<T>(a, stream->take(n * blocks_per_output),
            UniformInt<T>{low, static_cast<U>(static_cast<U>(high) - static_cast<U>(low))}, n,
            4096);
  });
}

void infer(ShapeContext& c) { c.set_output(0, c.shape_from_value(0)); }

OpDef random_op(std::string name, std::string doc, Kernel kernel) {
  return {
      .name = std::move(name),
      .doc = std::move(doc),
      .inputs = {"shape: T"},
      .outputs = {"output: dtype"},
      .attrs = {"seed: int = 0", "seed2: int = 0", "dtype: {half, bfloat16, float, double}",
                "T: {int32, int64}"},
      .shape = infer,
      .kernels = {std::move(kernel)},
      .value_inputs = {0},
      .is_stateful = true,
      .is_not_differentiable = true,
  };
}

const Op uniform_op(
    random_op("RandomUniform",
              "output = independent numbers, uniform in [0, 1). Seeds of 0 and 0 draw a seed.",
              random_kernel<Uniform>(4096)));
const Op normal_op(random_op("RandomStandardNormal",
                             "output = independent normal numbers, mean 0, standard deviation 1.",
                             random_kernel<Normal>(512)));
const Op truncated_op(random_op("TruncatedNormal",
                                "output = independent normal numbers, mean 0, standard deviation "
                                "1, limited to those within [-2, 2].",
                                random_kernel<TruncatedNormal>(512)));

const Op uniform_int_op{{
    .name = "RandomUniformInt",
    .doc = "output = independent whole numbers, uniform in [minval, maxval) but for a bias of at "
           "most range / 2^32 (2^64 for "
           "int64).",
    .inputs = {"shape: T", "minval: Tout", "maxval: Tout"},
    .outputs = {"output: Tout"},
    .attrs = {"seed: int = 0", "seed2: int = 0", "Tout: {int32, int64}", "T: {int32, int64}"},
    .shape =
        [](ShapeContext& c) {
          c.with_rank(1, 0);
          c.with_rank(2, 0);
          infer(c);
        },
    .kernels = {cpu_kernel(
        "Tout", Types<int32_t, int64_t>{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_uniform_int(t, r); })},
    .value_inputs = {0},
    .is_stateful = true,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
