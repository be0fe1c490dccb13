// Random numbers that depend only on their inputs: on a seed of two numbers, or on the key and the
// counter derived from one. They equal TensorFlow's for the same inputs. random_choice.cc has the
// choices, random_gamma.cc and truncated_normal.cc the distributions with parameters.
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/random/random_fill.h"
#include "kernels/random/stateless_start.h"

namespace leat {
namespace {

// ---- Shapes

void infer_int(ShapeContext& c) {
  infer_stateless(c);
  for (const int bound : {c.num_inputs() - 2, c.num_inputs() - 1}) c.with_rank(bound, 0);
}

// ---- Kernels

template <template <class> class Distribution>
Kernel random_kernel(int64_t grain) {
  return cpu_kernel("dtype", FloatTypes{}, [grain]<class T>(TypeTag<T>, const KernelRequest& r) {
    const int64_t n = r.outputs[0].shape.elements();
    if (n == 0) return BoundKernel{};
    return BoundKernel::of([start = StatelessStart(r), n, grain](const Arguments& a) {
      fill<T>(a, start(a), Distribution<T>{}, n, grain);
    });
  });
}

template <class T>
BoundKernel prepare_int(TypeTag<T>, const KernelRequest& r) {
  const int64_t n = r.outputs[0].shape.elements();
  if (n == 0) return {};
  const int last = static_cast<int>(r.inputs.size()) - 1;
  return BoundKernel::of([start = StatelessStart(r), n, last](const Arguments& a) {
    const T low = *a.input<T>(last - 1), high = *a.input<T>(last);
    check(low < high, "Need minval < maxval, got ", low, " >= ", high);
    using U = std::make_unsigned_t<T>;
    const U range = static_cast<U>(static_cast<U>(high) - static_cast<U>(low));
    fill<T>(a, start(a), UniformInt<T>{low, range}, n, 4096);
  });
}

// ---- The ops

std::vector<std::string> with(std::vector<std::string> some,
                              std::initializer_list<const char*> more) {
  some.insert(some.end(), more.begin(), more.end());
  return some;
}

// The inputs after the shape, and their values in the examples.
std::vector<std::string> inputs(bool has_seed) {
  return has_seed ? std::vector<std::string>{"seed: Tseed"}
                  : std::vector<std::string>{"key: uint64", "counter: uint64", "alg: int32"};
}
std::vector<Tensor> example_inputs(bool has_seed, int32_t count) {
  if (has_seed) return {ints({count}), longs({1, 2})};
  return {ints({count}), Tensor::of<uint64_t>({1}, {10413732777507651514U}),
          Tensor::of<uint64_t>({2}, {0, 17830669156045600267U}), Tensor::scalar(philox)};
}

// The op of a distribution that takes a seed, and its V2.
OpDef random_op(const char* name, const char* what, bool has_seed, Kernel kernel, Tensor expected) {
  std::vector<std::string> all = {has_seed ? "shape: T" : "shape: Tshape"};
  for (const std::string& input : inputs(has_seed)) all.push_back(input);
  std::vector<std::string> attrs = {"dtype: {half, bfloat16, float, double} = float"};
  return {
      .name = concat(name, has_seed ? "" : "V2"),
      .doc = concat("output = ", what, ", the same for the same ",
                    has_seed ? "seed." : "key and counter."),
      .inputs = std::move(all),
      .outputs = {"output: dtype"},
      .attrs = has_seed
                   ? with(attrs, {"T: {int32, int64} = int32", "Tseed: {int32, int64} = int64"})
                   : with(attrs, {"Tshape: {int32, int64} = int32"}),
      .shape = infer_stateless,
      .kernels = {std::move(kernel)},
      .examples = {{.inputs = example_inputs(has_seed, 3), .outputs = {std::move(expected)}}},
      .value_inputs = {0},
      .is_not_differentiable = true,
  };
}

OpDef int_op(bool has_seed) {
  std::vector<std::string> all = {has_seed ? "shape: T" : "shape: Tshape"};
  for (const std::string& input : inputs(has_seed)) all.push_back(input);
  std::vector<Tensor> example = example_inputs(has_seed, 5);
  example.push_back(Tensor::scalar(-3));
  example.push_back(Tensor::scalar(3));
  return {
      .name = has_seed ? "StatelessRandomUniformInt" : "StatelessRandomUniformIntV2",
      .doc = concat("output = whole numbers, uniform in [minval, maxval) but for a bias of at most "
                    "range / 2^32 (2^64 for 64 bits), the same for the same ",
                    has_seed ? "seed." : "key and counter."),
      .inputs = with(all, {"minval: dtype", "maxval: dtype"}),
      .outputs = {"output: dtype"},
      .attrs = has_seed ? std::vector<std::string>{"dtype: {int32, int64}", "T: {int32, int64}",
                                                   "Tseed: {int32, int64} = int64"}
                        : std::vector<std::string>{"dtype: {int32, int64, uint32, uint64}",
                                                   "Tshape: {int32, int64} = int32"},
      .shape = infer_int,
      .kernels = {cpu_kernel(
          "dtype", Types<int32_t, int64_t>{},
          []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_int(t, r); })},
      .examples = {{.inputs = std::move(example), .outputs = {ints({1, 2, -3, 0, -2})}}},
      .value_inputs = {0},
      .is_not_differentiable = true,
  };
}

OpDef full_int_op(bool has_seed) {
  std::vector<std::string> all = {has_seed ? "shape: T" : "shape: Tshape"};
  for (const std::string& input : inputs(has_seed)) all.push_back(input);
  const std::vector<std::string> attrs = {"dtype: {int32, int64, uint32, uint64} = uint64"};
  return {
      .name = has_seed ? "StatelessRandomUniformFullInt" : "StatelessRandomUniformFullIntV2",
      .doc =
          concat("output = whole numbers, uniform over all of their type, the same for the same ",
                 has_seed ? "seed." : "key and counter."),
      .inputs = std::move(all),
      .outputs = {"output: dtype"},
      .attrs = has_seed ? with(attrs, {"T: {int32, int64} = int32",
                                       "Tseed: {int32, int64, uint32, uint64} = int64"})
                        : with(attrs, {"Tshape: {int32, int64} = int32"}),
      .shape = infer_stateless,
      .kernels = {cpu_kernel("dtype", Types<int32_t, int64_t, uint32_t, uint64_t>{},
                             []<class T>(TypeTag<T>, const KernelRequest& r) {
                               const int64_t n = r.outputs[0].shape.elements();
                               if (n == 0) return BoundKernel{};
                               return BoundKernel::of(
                                   [start = StatelessStart(r), n](const Arguments& a) {
                                     fill<T>(a, start(a), AnyInt<T>{}, n, 4096);
                                   });
                             })},
      .examples = {{.inputs = example_inputs(has_seed, 3),
                    .attrs = {{"dtype", i32}},
                    .outputs = {ints({1105988140, 1738052849, -335576002})}}},
      .value_inputs = {0},
      .is_not_differentiable = true,
  };
}

const Tensor uniforms = floats({0.8440604F, 0.19204533F, 0.9962232F});
const Tensor normals = floats({0.5441101F, 0.20738031F, 0.07356432F});
const char* const uniform_doc = "numbers uniform in [0, 1)";
const char* const normal_doc = "normal numbers, mean 0, standard deviation 1";
const char* const truncated_doc =
    "normal numbers, mean 0, standard deviation 1, limited to those within [-2, 2]";

const Op uniform_op(random_op("StatelessRandomUniform", uniform_doc, true,
                              random_kernel<Uniform>(4096), uniforms));
const Op uniform_v2_op(random_op("StatelessRandomUniform", uniform_doc, false,
                                 random_kernel<Uniform>(4096), uniforms));
const Op normal_op(random_op("StatelessRandomNormal", normal_doc, true, random_kernel<Normal>(512),
                             normals));
const Op normal_v2_op(random_op("StatelessRandomNormal", normal_doc, false,
                                random_kernel<Normal>(512), normals));
const Op truncated_op(random_op("StatelessTruncatedNormal", truncated_doc, true,
                                random_kernel<TruncatedNormal>(512), normals));
const Op truncated_v2_op(random_op("StatelessTruncatedNormal", truncated_doc, false,
                                   random_kernel<TruncatedNormal>(512), normals));
const Op int_seed_op(int_op(true));
const Op int_v2_op(int_op(false));
const Op full_int_seed_op(full_int_op(true));
const Op full_int_v2_op(full_int_op(false));

// ---- Key and counter

void infer_key_and_counter(ShapeContext& c) {
  check_seed(c, 0);
  c.set_output(0, {1});
  c.set_output(1, {2});
  if (c.num_outputs() > 2) c.set_output(2, {});
}

BoundKernel prepare_key_and_counter(const KernelRequest& r) {
  const bool has_algorithm = r.outputs.size() > 2;
  return BoundKernel::of([has_algorithm, dtype = r.inputs[0].dtype](const Arguments& a) {
    const StatelessSeed seed = StatelessSeed::of(a, 0, dtype);
    *a.output<uint64_t>(0) = seed.key;
    std::copy_n(seed.counter, 2, a.output<uint64_t>(1));
    if (has_algorithm) *a.output<int32_t>(2) = philox;
  });
}

OpDef key_and_counter_op(bool has_algorithm) {
  OpDef out{
      .name = has_algorithm ? "StatelessRandomGetKeyCounterAlg" : "StatelessRandomGetKeyCounter",
      .doc =
          "key and counter of the generator that the stateless random ops start from for a seed "
          "of two numbers.",
      .inputs = {"seed: Tseed"},
      .outputs = {"key: uint64", "counter: uint64"},
      .attrs = {"Tseed: {int32, int64} = int64"},
      .shape = infer_key_and_counter,
      .kernels = {cpu_kernel(prepare_key_and_counter)},
      .examples = {{.inputs = {longs({1, 2})},
                    .outputs = {Tensor::of<uint64_t>({1}, {10413732777507651514U}),
                                Tensor::of<uint64_t>({2}, {0, 17830669156045600267U})}}},
      .is_not_differentiable = true,
  };
  if (has_algorithm) {
    out.doc += " alg = 1, which stands for Philox.";
    out.outputs.push_back("alg: int32");
    out.examples[0].outputs.push_back(Tensor::scalar(philox));
  }
  return out;
}

const Op key_counter_op(key_and_counter_op(false));
const Op key_counter_algorithm_op(key_and_counter_op(true));

const Op algorithm_op{{
    .name = "StatelessRandomGetAlg",
    .doc = "alg = 1: the stateless random ops use Philox here.",
    .outputs = {"alg: int32"},
    .shape = shapes::scalar(),
    .kernels = {cpu_kernel([](const KernelRequest&) {
      return BoundKernel::of([](const Arguments& a) { *a.output<int32_t>() = philox; });
    })},
    .examples = {{.outputs = {Tensor::scalar(philox)}}},
    .is_stateful = true,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
