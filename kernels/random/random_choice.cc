// Random choices: Multinomial, RandomShuffle and the stateless forms of both. As in random.cc,
// results are TensorFlow's for the same seeds.
#include <cmath>
#include <limits>

#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/random/stateless_start.h"

namespace leat {
namespace {

// ---- Multinomial

// sums[j] = the weight of the classes up to j, exp(logit) / exp(largest); logits that are not
// finite have weight 0.
template <class T>
double add_up(const T* logits, int64_t classes, double* sums) {
  double largest = std::numeric_limits<float>::lowest();
  for (int64_t j = 0; j < classes; ++j) {
    const double logit = static_cast<double>(ComputeType<T>(logits[j]));
    if (std::isfinite(logit)) largest = std::max(largest, logit);
  }
  double sum = 0;
  for (int64_t j = 0; j < classes; ++j) {
    const double logit = static_cast<double>(ComputeType<T>(logits[j]));
    if (std::isfinite(logit)) sum += std::exp(logit - largest);
    sums[j] = sum;
  }
  return sum;
}

template <class T, class Out>
BoundKernel bind_multinomial(const KernelRequest& request) {
  const int64_t rows = request.inputs[0].shape[0], classes = request.inputs[0].shape[1],
                samples = request.outputs[0].shape[1];
  check(classes > 0, "num_classes should be positive, got ", classes);
  if (rows * samples == 0) return {};
  const bool has_seed = request.node.has("Tseed");
  const DType seed_type = has_seed ? request.inputs[2].dtype : DType::invalid;
  const auto stream = has_seed ? nullptr : RandomStream::of(request);
  BoundKernel kernel = BoundKernel::of([=](const Arguments& a) {
    RandomWords words(has_seed ? StatelessSeed::of(a, 2, seed_type).generator()
                               : stream->take(2 * 256 * rows * ((samples + 3) / 4 * 4)));
    double* sums = static_cast<double*>(a.workspace);
    for (int64_t r = 0; r < rows; ++r) {
      const double total = add_up(a.input<T>(0) + r * classes, classes, sums);
      for (int64_t s = 0; s < samples; ++s) {
        StepEnd::pace(32);
        const uint32_t high = words.next(), low = words.next();
        const double* found = std::upper_bound(sums, sums + classes, uniform(high, low) * total);
        a.output<Out>()[r * samples + s] = static_cast<Out>(found - sums);
      }
    }
  });
  kernel.workspace_bytes = classes * sizeof(double);
  kernel.cost_ns =
      5.0 * static_cast<double>(rows * classes) + 50.0 * static_cast<double>(rows * samples);
  return kernel;
}

void infer_multinomial(ShapeContext& c) {
  const Shape logits = c.with_rank(0, 2);
  c.with_rank(1, 0);
  int64_t samples = any;
  if (const Tensor* value = c.value(1)) {
    samples = to_int64s(*value)[0];
    check(samples >= 0, "num_samples should be non-negative, got ", samples);
  }
  c.set_output(0, Shape{logits[0], samples});
}

Kernel multinomial_kernel() {
  return cpu_kernel("T", FloatTypes{}, []<class T>(TypeTag<T>, const KernelRequest& r) {
    return r.attr<DType>("output_dtype") == DType::i64 ? bind_multinomial<T, int64_t>(r)
                                                       : bind_multinomial<T, int32_t>(r);
  });
}

const Op multinomial_op{{
    .name = "Multinomial",
    .doc = "output[r, s] = a class drawn with the probabilities softmax(logits[r, :]), num_samples "
           "of them per row.",
    .inputs = {"logits: T", "num_samples: int32"},
    .outputs = {"output: output_dtype"},
    .attrs = {"seed: int = 0", "seed2: int = 0", "T: realnumbertype",
              "output_dtype: {int32, int64} = int64"},
    .shape = infer_multinomial,
    .kernels = {multinomial_kernel()},
    .value_inputs = {1},
    .is_stateful = true,
    .is_not_differentiable = true,
}};

const Op stateless_multinomial_op{{
    .name = "StatelessMultinomial",
    .doc = "output[r, s] = a class drawn with the probabilities softmax(logits[r, :]), num_samples "
           "of them per row, the same for the same seed.",
    .inputs = {"logits: T", "num_samples: int32", "seed: Tseed"},
    .outputs = {"output: output_dtype"},
    .attrs = {"T: realnumbertype", "Tseed: {int32, int64} = int64",
              "output_dtype: {int32, int64} = int64"},
    .shape =
        [](ShapeContext& c) {
          check_seed(c, 2);
          infer_multinomial(c);
        },
    .kernels = {multinomial_kernel()},
    .examples = {{.inputs = {floats({2, 3}, {0, 0, 0, -9, 9, -9}), Tensor::scalar(4),
                             longs({1, 2})},
                  .outputs = {longs({2, 4}, {2, 2, 0, 2, 1, 1, 1, 1})}}},
    .value_inputs = {1},
    .is_not_differentiable = true,
}};

// ---- RandomShuffle, StatelessShuffle

// `start(a)` is the generator of a run.
template <class T, class Start>
BoundKernel bind_shuffle(const Shape& shape, Start start) {
  const int64_t rows = shape[0], row = shape.elements() / rows;
  check(rows <= std::numeric_limits<uint32_t>::max(), "cannot shuffle ", rows, " rows");
  BoundKernel kernel = BoundKernel::of([=](const Arguments& a) {
    RandomWords words(start(a));
    int64_t* order = static_cast<int64_t*>(a.workspace);
    for (int64_t i = 0; i < rows; ++i) order[i] = i;
    for (int64_t i = 0; i + 1 < rows; ++i) {
      StepEnd::pace(8);
      std::swap(order[i], order[i + words.next() % static_cast<uint32_t>(rows - i)]);
    }
    for (int64_t i = 0; i < rows; ++i)
      copy_elements(a.input<T>(0) + order[i] * row, row, a.output<T>() + i * row);
  });
  kernel.workspace_bytes = rows * sizeof(int64_t);
  return kernel;
}

bool has_one_order(const Shape& shape) {
  return shape.rank() == 0 || shape[0] <= 1 || shape.elements() <= 1;
}

template <class T>
BoundKernel prepare_shuffle(TypeTag<T>, const KernelRequest& r) {
  const Shape& shape = r.inputs[0].shape;
  if (has_one_order(shape)) return BoundKernel::view();
  return bind_shuffle<T>(shape, [stream = RandomStream::of(r), rows = shape[0]](const Arguments&) {
    return stream->take((rows - 1 + 3) / 4);
  });
}

template <class T>
BoundKernel prepare_stateless_shuffle(TypeTag<T>, const KernelRequest& r) {
  const Shape& shape = r.inputs[0].shape;
  const StatelessStart start(r);
  if (!has_one_order(shape)) return bind_shuffle<T>(shape, start);
  return BoundKernel::of([start, n = shape.elements()](const Arguments& a) {
    start(a);  // a wrong algorithm is still an error
    copy_elements(a.input<T>(0), n, a.output<T>());
  });
}

const char* const shuffle_doc =
    "output = value with its rows in random order; all orders are equally probable";

const Op shuffle_op{{
    .name = "RandomShuffle",
    .doc = concat(shuffle_doc, "."),
    .inputs = {"value: T"},
    .outputs = {"output: T"},
    .attrs = {"seed: int = 0", "seed2: int = 0", "T: type"},
    .shape = shapes::same_as(0),
    .kernels = {cpu_moving_kernel(
        "T", []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_shuffle(t, r); })},
    .is_stateful = true,
    .is_not_differentiable = true,
}};

const Op stateless_shuffle_op{{
    .name = "StatelessShuffle",
    .doc = concat(shuffle_doc, ", the same for the same key and counter."),
    .inputs = {"value: T", "key: uint64", "counter: uint64", "alg: int32"},
    .outputs = {"output: T"},
    .attrs = {"T: type"},
    .shape =
        [](ShapeContext& c) {
          check_key_and_counter(c);
          c.set_output(0, c.input(0));
        },
    .kernels = {cpu_moving_kernel("T",
                                  []<class T>(TypeTag<T> t, const KernelRequest& r) {
                                    return prepare_stateless_shuffle(t, r);
                                  })},
    .examples = {{.inputs = {ints({4, 1}, {1, 2, 3, 4}), Tensor::of<uint64_t>({1}, {7}),
                             Tensor::of<uint64_t>({2}, {0, 5}), Tensor::scalar(philox)},
                  .outputs = {ints({4, 1}, {2, 1, 3, 4})}}},
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
