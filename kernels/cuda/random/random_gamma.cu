// Numbers of gamma and Poisson distributions on the GPU: the CPU's for the same seeds, but for the
// last digits of gamma numbers (kernels/random/gamma_and_poisson.h). A thread draws an output,
// whose part of the stream is its own.
#include "graph/op_def.h"
#include "kernels/cuda/random/random_start.cuh"
#include "kernels/random/gamma_and_poisson.h"
#include "kernels/random/random_fill.h"

namespace leat {
namespace {

using cuda::threads_per_block;

struct Extents {
  int64_t parameters, samples;  // outputs: samples of each parameter
  int64_t outputs() const { return parameters * samples; }
};

// What one launch leaves for the next: where the generator starts, and the parameters as doubles.
// So there is one sampler per type of output, whatever the other types are.
struct Prepared {
  Philox* start;
  double* parameters;

  explicit Prepared(void* workspace)
      : start(static_cast<Philox*>(workspace)), parameters(reinterpret_cast<double*>(start + 1)) {}
  static size_t bytes(const Extents& n) {
    return sizeof(Philox) + static_cast<size_t>(n.parameters) * sizeof(double);
  }
};
static_assert(sizeof(Philox) % sizeof(double) == 0);

template <class Parameter, class Start>
__global__ void __launch_bounds__(threads_per_block)
    prepare_kernel(int64_t parameters, int input, Start start, Pointers pointers, Prepared out) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i == 0) *out.start = start(pointers);
  if (i < parameters)
    out.parameters[i] = static_cast<double>(cuda::widened(pointers.input<Parameter>(input)[i]));
}

// The parts of the stream are numbered by parameter first, the outputs by sample first.
template <class Distribution, class Out>
__global__ void __launch_bounds__(threads_per_block)
    draw_kernel(Extents n, Prepared prepared, Out* out) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n.parameters * n.samples) return;
  const int64_t parameter = i / n.samples, sample = i % n.samples;
  Philox random = *prepared.start;
  random.skip(static_cast<uint64_t>(i * blocks_per_output));
  RandomNumbers numbers(random);
  const double drawn = Distribution{}.template draw<Out>(numbers, prepared.parameters[parameter]);
  out[sample * n.parameters + parameter] = Out(static_cast<ComputeType<Out>>(drawn));
}

template <class Distribution, class Out>
struct Draw {
  Extents n;
  DType parameter;
  int input, num_inputs;

  template <class Start>
  auto enqueuer(Start start) const {
    using Prepare = void (*)(int64_t, int, Start, Pointers, Prepared);
    const Prepare prepare = visit_type(PoissonTypes{}, parameter, [](auto tag) -> Prepare {
      return prepare_kernel<typename decltype(tag)::type, Start>;
    });
    return [own = *this, prepare, start](const Arguments& a) {
      const Extents n = own.n;
      const cudaStream_t stream = cuda_stream(a);
      const Prepared prepared(a.workspace);
      cuda::launch(prepare, cuda::blocks_for(n.parameters), threads_per_block, 0, stream,
                   n.parameters, own.input, start, cuda::copy_pointers(a, own.num_inputs, 1),
                   prepared);
      cuda::launch(draw_kernel<Distribution, Out>, cuda::blocks_for(n.outputs()), threads_per_block,
                   0, stream, n, prepared, a.output<Out>());
    };
  }
};

template <class Distribution, class Out>
Draw<Distribution, Out> draw_of(const KernelRequest& r, int input) {
  const int64_t parameters = r.inputs[input].shape.elements();
  return {{parameters, r.outputs[0].shape.elements() / parameters},
          r.inputs[input].dtype,
          input,
          static_cast<int>(r.inputs.size())};
}

template <class Distribution, class Out>
BoundKernel bind_stream(const KernelRequest& r) {
  if (r.outputs[0].shape.elements() == 0) return {};
  const auto draw = draw_of<Distribution, Out>(r, 1);
  const std::shared_ptr<RandomStream> stream = RandomStream::of(r);
  const std::shared_ptr<Buffer> taken = stream->taken_on(r.device);
  auto* const count = static_cast<uint64_t*>(taken->data());
  const auto taken_of_run = static_cast<uint64_t>(draw.n.outputs() * blocks_per_output);
  return BoundKernel::of([enqueue = draw.enqueuer(StreamStart{stream->start(), count}), taken,
                          count, taken_of_run](const Arguments& a) {
           enqueue(a);
           count_taken(count, taken_of_run, cuda_stream(a));
         })
      .with_workspace(Prepared::bytes(draw.n));
}

template <class Distribution, class Out>
BoundKernel bind_stateless(const KernelRequest& r) {
  const int input = static_cast<int>(r.inputs.size()) - 1;
  if (r.outputs[0].shape.elements() == 0) return {};
  check_ends_with_parameters(r.outputs[0].shape, r.inputs[input].shape);
  const auto draw = draw_of<Distribution, Out>(r, input);
  return bind_stateless_start(r, [&](auto start) {
    return BoundKernel::of(draw.enqueuer(start)).with_workspace(Prepared::bytes(draw.n));
  });
}

template <class Distribution, class Supported>
std::vector<Kernel> kernels(std::vector<TypeConstraint> types, bool is_stateless) {
  return {{.device = DeviceType::gpu,
           .types = std::move(types),
           .prepare = [is_stateless](const KernelRequest& r) {
             return visit_type(Supported{}, r.outputs[0].dtype, [&](auto tag) {
               using Out = typename decltype(tag)::type;
               return is_stateless ? bind_stateless<Distribution, Out>(r)
                                   : bind_stream<Distribution, Out>(r);
             });
           }}};
}

std::vector<Kernel> gamma_kernels(const char* type, bool is_stateless) {
  return kernels<Gamma, GammaTypes>({{type, GammaTypes::list()}}, is_stateless);
}
std::vector<Kernel> poisson_kernels(const char* rate, bool is_stateless) {
  return kernels<Poisson, PoissonTypes>({{rate, PoissonTypes::list()}}, is_stateless);
}

const OpKernels gamma_op{"RandomGamma", gamma_kernels("T", false)};
const OpKernels stateless_gamma_v2{"StatelessRandomGammaV2", gamma_kernels("dtype", true)};
const OpKernels stateless_gamma_v3{"StatelessRandomGammaV3", gamma_kernels("dtype", true)};
const OpKernels poisson{"RandomPoissonV2", poisson_kernels("R", false)};
const OpKernels stateless_poisson{"StatelessRandomPoisson", poisson_kernels("Rtype", true)};

}  // namespace
}  // namespace leat
