// Random tensors on the GPU: the same numbers as the CPU's for the same seeds, but for the last
// digits of sines and logarithms. Each thread draws one group of a distribution
// (kernels/random/random_fill.h).
#include "graph/op_def.h"
#include "kernels/cuda/random/random_start.cuh"
#include "kernels/random/random_fill.h"

namespace leat {
namespace {

// ---- Distributions whose parameters are inputs: distribution(pointers)

template <class Distribution>
struct Fixed {
  LEAT_DEVICE Distribution operator()(const Pointers&) const { return {}; }
};

// The bounds are inputs `low` and `low + 1`. Without numbers between them, all are the lower one.
template <class T>
struct Between {
  int low;
  LEAT_DEVICE UniformInt<T> operator()(const Pointers& p) const {
    using U = std::make_unsigned_t<T>;
    const T from = p.input<T>(low)[0], to = p.input<T>(low + 1)[0];
    const U range = static_cast<U>(static_cast<U>(to) - static_cast<U>(from));
    return {from, from < to ? range : U(1)};
  }
};

template <class T, class Start, class Choose>
__global__ void __launch_bounds__(cuda::threads_per_block)
    random_kernel(int64_t n, Start start, Choose choose, Pointers pointers) {
  const auto distribution = choose(pointers);
  using Distribution = std::remove_const_t<decltype(distribution)>;
  constexpr int group = Distribution::group;
  const int64_t g = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (g * group >= n) return;
  Philox random = start(pointers);
  random.skip(static_cast<uint64_t>(g) * Distribution::blocks_per_group);
  T numbers[group];
  distribution.fill(random, numbers);
  for (int i = 0; i < group && g * group + i < n; ++i)  // the last group may be cut short
    pointers.output<T>()[g * group + i] = numbers[i];
}

template <class T, int group, class Start, class Choose>
void enqueue(const Arguments& a, int num_inputs, int64_t n, Start start, Choose choose) {
  cuda::launch(random_kernel<T, Start, Choose>, cuda::blocks_for((n + group - 1) / group),
               cuda::threads_per_block, 0, cuda_stream(a), n, start, choose,
               cuda::copy_pointers(a, num_inputs, 1));
}

// ---- Ops with a stream of their own

template <class T, class Distribution, class Choose>
BoundKernel bind_stream(const KernelRequest& r, Choose choose) {
  const int64_t n = r.outputs[0].shape.elements();
  if (n == 0) return {};
  const int num_inputs = static_cast<int>(r.inputs.size());
  const std::shared_ptr<RandomStream> stream = RandomStream::of(r);
  return BoundKernel::of([start = stream->start(), taken = stream->taken_on(r.device), n,
                          num_inputs, choose](const Arguments& a) {
    auto* const count = static_cast<uint64_t*>(taken->data());
    enqueue<T, Distribution::group>(a, num_inputs, n, StreamStart{start, count}, choose);
    count_taken(count, static_cast<uint64_t>(n * blocks_per_output), cuda_stream(a));
  });
}

template <template <class> class Distribution>
std::vector<Kernel> stream_kernels() {
  return {{.device = DeviceType::gpu,
           .types = {{"dtype", FloatTypes::list()}},
           .prepare = [](const KernelRequest& r) {
             return visit_type(FloatTypes{}, r.outputs[0].dtype, [&](auto tag) {
               using T = typename decltype(tag)::type;
               return bind_stream<T, Distribution<T>>(r, Fixed<Distribution<T>>{});
             });
           }}};
}

using IndexTypes = Types<int32_t, int64_t>;

const OpKernels uniform{"RandomUniform", stream_kernels<Uniform>()};
const OpKernels normal{"RandomStandardNormal", stream_kernels<Normal>()};
const OpKernels truncated{"TruncatedNormal", stream_kernels<TruncatedNormal>()};
const OpKernels uniform_int{"RandomUniformInt",
                            {{.device = DeviceType::gpu,
                              .types = {{"Tout", IndexTypes::list()}},
                              .prepare = [](const KernelRequest& r) {
                                return visit_type(IndexTypes{}, r.outputs[0].dtype, [&](auto tag) {
                                  using T = typename decltype(tag)::type;
                                  return bind_stream<T, UniformInt<T>>(r, Between<T>{1});
                                });
                              }}}};

// ---- Ops with a seed, or with a key and a counter

template <class T, class Distribution, class Choose>
BoundKernel bind_stateless(const KernelRequest& r, Choose choose) {
  const int64_t n = r.outputs[0].shape.elements();
  if (n == 0) return {};
  const int num_inputs = static_cast<int>(r.inputs.size());
  return bind_stateless_start(r, [&](auto start) {
    return BoundKernel::of([=](const Arguments& a) {
      enqueue<T, Distribution::group>(a, num_inputs, n, start, choose);
    });
  });
}

template <template <class> class Distribution, class Supported>
std::vector<Kernel> stateless_kernels() {
  return {{.device = DeviceType::gpu,
           .types = {{"dtype", Supported::list()}},
           .prepare = [](const KernelRequest& r) {
             return visit_type(Supported{}, r.outputs[0].dtype, [&](auto tag) {
               using T = typename decltype(tag)::type;
               return bind_stateless<T, Distribution<T>>(r, Fixed<Distribution<T>>{});
             });
           }}};
}

std::vector<Kernel> stateless_int_kernels() {
  return {{.device = DeviceType::gpu,
           .types = {{"dtype", IndexTypes::list()}},
           .prepare = [](const KernelRequest& r) {
             const int low = static_cast<int>(r.inputs.size()) - 2;
             return visit_type(IndexTypes{}, r.outputs[0].dtype, [&](auto tag) {
               using T = typename decltype(tag)::type;
               return bind_stateless<T, UniformInt<T>>(r, Between<T>{low});
             });
           }}};
}

// The op that takes a seed, and its V2.
struct StatelessOps {
  OpKernels with_seed, with_key;
  StatelessOps(const std::string& name, const std::vector<Kernel>& kernels)
      : with_seed(name, kernels), with_key(name + "V2", kernels) {}
};

using AnyIntTypes = Types<int32_t, int64_t, uint32_t, uint64_t>;

const StatelessOps stateless_uniform{"StatelessRandomUniform",
                                     stateless_kernels<Uniform, FloatTypes>()};
const StatelessOps stateless_normal{"StatelessRandomNormal",
                                    stateless_kernels<Normal, FloatTypes>()};
const StatelessOps stateless_truncated{"StatelessTruncatedNormal",
                                       stateless_kernels<TruncatedNormal, FloatTypes>()};
const StatelessOps stateless_int{"StatelessRandomUniformInt", stateless_int_kernels()};
const StatelessOps stateless_any_int{"StatelessRandomUniformFullInt",
                                     stateless_kernels<AnyInt, AnyIntTypes>()};

}  // namespace
}  // namespace leat
