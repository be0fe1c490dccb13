// Random numbers of a gamma and of a Poisson distribution, from a stream and stateless. As in
// random.cc, results are TensorFlow's for the same seeds: each output has its own part of the
// stream, and all computation is in double precision.
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/random/gamma_and_poisson.h"
#include "kernels/random/random_fill.h"
#include "kernels/random/stateless_start.h"

namespace leat {
namespace {

// outputs[s, p] = a number with parameters[p], where the stretches are numbered by p first;
// `start(a)` is the generator of a run.
template <class Distribution, class Parameter, class Out, class Start>
BoundKernel bind(const KernelRequest& request, int input, Start start) {
  const int64_t parameters = request.inputs[input].shape.elements(),
                n = request.outputs[0].shape.elements();
  if (n == 0) return {};
  BoundKernel kernel = BoundKernel::of([=, samples = n / parameters](const Arguments& a) {
    const Philox first = start(a);
    a.stream->parallel_for(n, 256, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t parameter = i / samples, sample = i % samples;
        Philox random = first;
        random.skip(static_cast<uint64_t>(i * blocks_per_output));
        RandomNumbers numbers(random);
        const auto value =
            static_cast<double>(ComputeType<Parameter>(a.input<Parameter>(input)[parameter]));
        a.output<Out>()[sample * parameters + parameter] =
            Out(static_cast<ComputeType<Out>>(Distribution{}.template draw<Out>(numbers, value)));
      }
    });
  });
  kernel.cost_ns = 100.0 * static_cast<double>(n);
  return kernel;
}

// Draws from the stream of the node; the parameters are input 1.
template <class Distribution, class Parameter, class Out>
BoundKernel bind_stream(const KernelRequest& request) {
  const int64_t n = request.outputs[0].shape.elements();
  const auto start = [stream = RandomStream::of(request), n](const Arguments&) {
    return stream->take(n * blocks_per_output);
  };
  return bind<Distribution, Parameter, Out>(request, 1, start);
}

// Without state; the parameters are the last input, and the shape of the output ends with theirs.
template <class Distribution, class Parameter, class Out>
BoundKernel bind_stateless(const KernelRequest& request) {
  const int input = static_cast<int>(request.inputs.size()) - 1;
  const Shape &parameters = request.inputs[input].shape, &out = request.outputs[0].shape;
  if (out.elements() == 0) return {};
  check_ends_with_parameters(out, parameters);
  return bind<Distribution, Parameter, Out>(request, input, StatelessStart(request));
}

// The shape of the input, then that of the parameters.
void infer(ShapeContext& c) {
  const Shape samples = c.shape_from_value(0), parameters = c.input(1);
  if (!samples.has_rank() || !parameters.has_rank()) return c.set_output(0, Shape::unknown());
  Shape out = samples;
  for (const int64_t extent : parameters.dims()) out.push_back(extent);
  c.set_output(0, out);
}

// The derivative of the numbers drawn with respect to alpha, summed over all those drawn with the
// same alpha: over the first `axes` axes.
Output gradient_of_alpha(Gradient& g, const Output& alpha, const Output& axes) {
  const Output by_alpha = op("RandomGammaGrad", {alpha, g.y()});
  return sum(g.dy() * by_alpha, arange(g.graph(), axes));
}

// bind_out(TypeTag<Rate>, TypeTag<Out>, request) for the two types of a Poisson op.
template <class F>
Kernel poisson_kernel(const char* rate, F bind_out) {
  return cpu_kernel(
      rate, PoissonTypes{}, [=]<class Rate>(TypeTag<Rate> rate_tag, const KernelRequest& r) {
        return visit_type(PoissonTypes{}, r.attr<DType>("dtype"),
                          [&](auto out_tag) { return bind_out(rate_tag, out_tag, r); });
      });
}

const Op gamma_op{{
    .name = "RandomGamma",
    .doc = "output[s…, p…] = independent numbers of the gamma distribution with shape alpha[p…] "
           "and rate 1; `shape` is that of s….",
    .inputs = {"shape: S", "alpha: T"},
    .outputs = {"output: T"},
    .attrs = {"seed: int = 0", "seed2: int = 0", "S: {int32, int64}", "T: {half, float, double}"},
    .shape = infer,
    .gradient = [](Gradient& g) { g.dx(1) = gradient_of_alpha(g, g.x(1), size_of(g.x(0))); },
    .kernels = {cpu_kernel(
        "T", GammaTypes{},
        []<class T>(TypeTag<T>, const KernelRequest& r) { return bind_stream<Gamma, T, T>(r); })},
    .value_inputs = {0},
    .is_stateful = true,
}};

const Op poisson_op{{
    .name = "RandomPoissonV2",
    .doc =
        "output[s…, p…] = independent numbers of the Poisson distribution with the mean rate[p…]; "
        "`shape` is that of s….",
    .inputs = {"shape: S", "rate: R"},
    .outputs = {"output: dtype"},
    .attrs = {"seed: int = 0", "seed2: int = 0", "S: {int32, int64}",
              "R: {half, float, double, int32, int64} = double",
              "dtype: {half, float, double, int32, int64} = int64"},
    .shape = infer,
    .kernels = {poisson_kernel(
        "R",
        []<class Rate, class Out>(TypeTag<Rate>, TypeTag<Out>, const KernelRequest& r) {
          return bind_stream<Poisson, Rate, Out>(r);
        })},
    .value_inputs = {0},
    .is_stateful = true,
    .is_not_differentiable = true,
}};

OpDef stateless_gamma_op(bool has_seed) {
  OpDef out{
      .name = has_seed ? "StatelessRandomGammaV2" : "StatelessRandomGammaV3",
      .doc = concat("output[s…, p…] = independent numbers of the gamma distribution with shape "
                    "alpha[p…] and rate 1, the same for the same ",
                    has_seed ? "seed." : "key and counter.", " `shape` is that of all of output."),
      .outputs = {"output: dtype"},
      .shape = infer_stateless,
      .gradient =
          [](Gradient& g) {
            const int last = g.num_inputs() - 1;
            g.dx(last) = gradient_of_alpha(g, g.x(last), size_of(g.x(0)) - rank_of(g.x(last)));
          },
      .kernels = {cpu_kernel("dtype", GammaTypes{},
                             []<class T>(TypeTag<T>, const KernelRequest& r) {
                               return bind_stateless<Gamma, T, T>(r);
                             })},
      .value_inputs = {0},
  };
  if (has_seed) {
    out.inputs = {"shape: T", "seed: Tseed", "alpha: dtype"};
    out.attrs = {"dtype: {half, float, double}", "T: {int32, int64}",
                 "Tseed: {int32, int64} = int64"};
    out.examples = {
        {.inputs = {ints({2, 2}), longs({1, 2}), floats({0.5F, 3})},
         .outputs = {floats({2, 2}, {0.06695361F, 4.674579F, 0.6282355F, 3.3503754F})}}};
  } else {
    out.inputs = {"shape: shape_dtype", "key: uint64", "counter: uint64", "alg: int32",
                  "alpha: dtype"};
    out.attrs = {"dtype: {half, float, double}", "shape_dtype: {int32, int64} = int32"};
    out.examples = {
        {.inputs = {ints({2, 2}), Tensor::of<uint64_t>({1}, {7}), Tensor::of<uint64_t>({2}, {0, 5}),
                    Tensor::scalar(philox), floats({0.5F, 3})},
         .outputs = {floats({2, 2}, {0.2787539F, 3.3701627F, 0.29942146F, 1.1200709F})}}};
  }
  return out;
}

const Op stateless_gamma_v2_op(stateless_gamma_op(true));
const Op stateless_gamma_v3_op(stateless_gamma_op(false));

const Op stateless_poisson_op{{
    .name = "StatelessRandomPoisson",
    .doc = "output[s…, p…] = independent numbers of the Poisson distribution with the mean "
           "lam[p…], the same for the same seed. `shape` is that of all of output.",
    .inputs = {"shape: T", "seed: Tseed", "lam: Rtype"},
    .outputs = {"output: dtype"},
    .attrs = {"Rtype: {half, float, double, int32, int64}",
              "dtype: {half, float, double, int32, int64}", "T: {int32, int64}",
              "Tseed: {int32, int64} = int64"},
    .shape = infer_stateless,
    .kernels = {poisson_kernel(
        "Rtype",
        []<class Rate, class Out>(TypeTag<Rate>, TypeTag<Out>, const KernelRequest& r) {
          return bind_stateless<Poisson, Rate, Out>(r);
        })},
    .examples = {{.inputs = {ints({3, 2}), longs({1, 2}), floats({3, 50})},
                  .attrs = {{"dtype", i32}},
                  .outputs = {ints({3, 2}, {5, 58, 5, 43, 4, 56})}}},
    .value_inputs = {0},
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
