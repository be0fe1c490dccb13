// leat: fast-math-loops
// Softmax cross-entropy: the loss of each row and its derivative with respect to the logits, in one
// pass over the row's memory.
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/broadcast_gradient.h"
#include "kernels/examples.h"
#include "kernels/half_rows.h"
#include "kernels/moves/strided_copy.h"
#include "kernels/neural/softmax_rows.h"

namespace leat {
namespace {

// Walks over blocks of rows: finish(first row, rows, exp(x - max) of them, max, sum) gets each in
// turn. The exponentials lie in backprop's memory, or for 16-bit floats in a workspace.
template <class T, class Finish>
void for_blocks(const Arguments& a, const T* features, int64_t rows, int64_t columns,
                int64_t step_of_x, const Finish& finish) {
  using C = ComputeType<T>;
  a.stream->parallel_for(rows, softmax_rows_per_chunk(columns), [&](int64_t begin, int64_t end) {
    const int64_t step = step_of_x == 0 ? 1 : softmax_rows_per_block(columns);
    for (int64_t first = begin; first < end; first += step) {
      const int64_t count = std::min(step, end - first);
      const T* x = features + first * step_of_x;
      C* e = std::is_same_v<T, C> ? reinterpret_cast<C*>(a.output<T>(1))
                                  : static_cast<C*>(a.workspace);
      e += first * columns;
      vectorized([=]() LEAT_INLINE {
        C max[softmax_block_rows], sum[softmax_block_rows];
        exponentiate_rows(x, count, columns, e, max, sum);
        finish(first, count, e, max, sum);
      });
    }
  });
}

template <class T>
size_t workspace(const KernelRequest& request) {
  using C = ComputeType<T>;
  return std::is_same_v<T, C> ? 0 : request.outputs[1].shape.elements() * sizeof(C);
}

// Features or labels, which TensorFlow broadcasts to each other. A step of 0 repeats a row; a
// single column is written out to all elements, into a part of the workspace.
struct Operand {
  int input;
  int64_t step, place = -1;  // in bytes
  StridedCopy copy = {};

  Operand(const KernelRequest& request, int i, size_t& workspace) : input(i) {
    const Shape &shape = request.inputs[i].shape, &both = request.outputs[1].shape;
    const int64_t rows = shape.rank() < 2 ? 1 : shape[0],
                  columns = shape.rank() < 1 ? 1 : shape[shape.rank() - 1];
    step = rows == both[0] ? both[1] : 0;
    if (columns == both[1]) return;
    step = both[1];
    copy = StridedCopy({{both[0], rows == 1 ? 0 : 1, both[1]}, {both[1], 0, 1}});
    place = static_cast<int64_t>(workspace);
    workspace += both.elements() * dtype_size(request.inputs[i].dtype);
  }
  template <class T>
  const T* elements(const Arguments& a) const {
    if (place < 0) return a.input<T>(input);
    using Bits = std::conditional_t<sizeof(T) == 8, uint64_t,
                                    std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>;
    char* to = static_cast<char*>(a.workspace) + place;
    copy.run(*a.stream, a.input<Bits>(input), reinterpret_cast<Bits*>(to));
    return reinterpret_cast<const T*>(to);
  }
};

// The loss of a row, and its derivative in `out`.
template <class T, class C>
LEAT_INLINE inline C finish_row(const T* x, const T* label, const C* e, int64_t columns, C max,
                                C sum, T* out) {
  const C log_sum = std::log(sum), scale = C(1) / sum;
  C total = 0;
  for_row_tiles(columns, [=, &total](int64_t first, int64_t n) LEAT_INLINE {
    float logits[row_tile], probabilities[row_tile], results[row_tile];
    const auto* const logit = loaded(x + first, n, logits);
    const auto* const expected = loaded(label + first, n, probabilities);
    store_row(out + first, n, results, [=, &total](auto* to) LEAT_INLINE {
      using To = std::remove_pointer_t<decltype(to)>;
      for (int64_t i = 0; i < n; ++i) {
        const C p = C(expected[i]);
        // A probability of 0 adds nothing, even where the logit is infinite.
        total += p == C(0) ? C(0) : p * (log_sum + (max - C(logit[i])));
        to[i] = To(e[first + i] * scale - p);
      }
    });
  });
  return total;
}

template <class T>
BoundKernel prepare_dense(TypeTag<T>, const KernelRequest& request) {
  using C = ComputeType<T>;
  const int64_t rows = request.outputs[1].shape[0], columns = request.outputs[1].shape[1];
  size_t bytes = workspace<T>(request);
  const Operand x(request, 0, bytes), y(request, 1, bytes);
  return BoundKernel::of([=, x_step = x.step, label_step = y.step](const Arguments& a) {
           if (columns == 0) return std::fill_n(a.output<T>(0), rows, T(0)), void();
           const T *features = x.elements<T>(a), *labels = y.elements<T>(a);
           T *loss = a.output<T>(0), *backprop = a.output<T>(1);
           for_blocks<T>(a, features, rows, columns, x_step,
                         [=](int64_t first, int64_t count, const C* e, const C* max, const C* sum)
                             LEAT_INLINE {
                               for (int64_t r = 0; r < count; ++r) {
                                 const T *x = features + (first + r) * x_step,
                                         *label = labels + (first + r) * label_step;
                                 T* out = backprop + (first + r) * columns;
                                 loss[first + r] = T(finish_row(x, label, e + r * columns, columns,
                                                                max[r], sum[r], out));
                               }
                             });
         })
      .with_workspace(bytes);
}

template <class T, class C>
LEAT_INLINE inline void scale_row(const C* e, int64_t columns, C scale, T* out) {
  for_row_tiles(columns, [=](int64_t first, int64_t n) LEAT_INLINE {
    float results[row_tile];
    store_row(out + first, n, results, [=](auto* to) LEAT_INLINE {
      using To = std::remove_pointer_t<decltype(to)>;
      for (int64_t i = 0; i < n; ++i) to[i] = To(e[first + i] * scale);
    });
  });
}

template <class T, class Label>
BoundKernel prepare_sparse(const KernelRequest& request) {
  using C = ComputeType<T>;
  const int64_t rows = request.inputs[0].shape[0], columns = request.inputs[0].shape[1];
  return BoundKernel::of([rows, columns](const Arguments& a) {
           const T* features = a.input<T>(0);
           const Label* labels = a.input<Label>(1);
           T *loss = a.output<T>(0), *backprop = a.output<T>(1);
           for (int64_t r = 0; r < rows; ++r) {
             check(labels[r] >= 0 && labels[r] < columns, "Received a label value of ", labels[r],
                   " which is outside the valid range of [0, ", columns, "); it is label ", r,
                   " of ", rows);
           }
           for_blocks<T>(a, features, rows, columns, columns,
                         [=](int64_t first, int64_t count, const C* e, const C* max, const C* sum)
                             LEAT_INLINE {
                               for (int64_t r = 0; r < count; ++r) {
                                 const int64_t label = labels[first + r];
                                 T* out = backprop + (first + r) * columns;
                                 const C scale = C(1) / sum[r];
                                 loss[first + r] =
                                     T(std::log(sum[r]) +
                                       (max[r] - C(features[(first + r) * columns + label])));
                                 const C at_label = e[r * columns + label] * scale;
                                 scale_row(e + r * columns, columns, scale, out);
                                 out[label] = T(at_label - C(1));
                               }
                             });
         })
      .with_workspace(workspace<T>(request));
}

template <class T>
BoundKernel prepare_sparse(TypeTag<T>, const KernelRequest& request) {
  return request.attr<DType>("Tlabels") == DType::i64 ? prepare_sparse<T, int64_t>(request)
                                                      : prepare_sparse<T, int32_t>(request);
}

void infer_dense(ShapeContext& c) {
  const auto operand = [&](int i) {
    return c.input(i).has_rank() ? c.input(i) : Shape::of_rank(2);
  };
  const Shape both = broadcast(operand(0), operand(1));
  check(both.rank() == 2,
        "logits and labels must be either 2-dimensional, or broadcasted to be 2-dimensional, got ",
        c.input(0), " and ", c.input(1));
  c.set_output(0, Shape{both[0]});
  c.set_output(1, both);
}

void infer_sparse(ShapeContext& c) {
  Shape features = c.with_rank(0, 2);
  const Shape labels = c.with_rank(1, 1);
  check(features[0] == any || labels[0] == any || features[0] == labels[0], "features ", features,
        " has ", features[0], " rows, labels has ", labels[0]);
  check(features[1] != 0, "Must have at least one class, but got logits shape ", features);
  if (features[0] == any) features.set(0, labels[0]);
  c.set_output(0, Shape{features[0]});
  c.set_output(1, features);
}

Output times_rows(Output loss_gradient, Output matrix) {
  return expand_dims(loss_gradient, -1) * matrix;
}

// The gradient with respect to the logits: of the loss, and for second derivatives of `backprop`,
// which is softmax(logits) - labels.
Output logits_gradient(Gradient& g, Output logits) {
  Output out;
  if (g.dy(0)) out = times_rows(g.dy(0), g.y(1));
  if (g.dy(1)) {
    const Output probabilities = softmax(logits);
    const Output mean = sum(g.dy(1) * probabilities, -1, {.keep_dims = true});
    const Output second = (g.dy(1) - mean) * probabilities;
    out = out ? out + second : second;
  }
  return out;
}

// The gradient with respect to the labels: of the loss, and of `backprop`.
Output labels_gradient(Gradient& g, Output logits) {
  Output out;
  if (g.dy(0)) out = times_rows(g.dy(0), -log_softmax(logits));
  if (g.dy(1)) out = out ? out - g.dy(1) : -g.dy(1);
  return out;
}

void dense_gradient(Gradient& g) {
  if (g.x(0).shape().is_compatible(g.x(1).shape())) {
    g.dx(0) = logits_gradient(g, g.x(0));
    g.dx(1) = labels_gradient(g, g.x(0));
  } else {  // one of them is broadcast to the other
    const Output logits = g.x(0) + zeros_like(g.y(1));
    set_broadcast_gradients(g, logits_gradient(g, logits), labels_gradient(g, logits));
  }
}

const Op dense_op{{
    .name = "SoftmaxCrossEntropyWithLogits",
    .doc = "loss[b] = -sum over c of labels[b, c] * log softmax(features[b])[c]; backprop = "
           "softmax(features) - labels, the derivative of loss with respect to features. Each row "
           "of labels sums to 1.",
    .inputs = {"features: T", "labels: T"},
    .outputs = {"loss: T", "backprop: T"},
    .attrs = {"T: {half, bfloat16, float, double}"},
    .shape = infer_dense,
    .gradient = dense_gradient,
    .kernels = {cpu_kernel(
        "T", FloatTypes{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_dense(t, r); })},
    .examples = {{.inputs = {floats({2, 2}, {0, 0, 1, 0}), floats({2, 2}, {1, 0, 0.5f, 0.5f})},
                  .outputs = {floats({0.6931472f, 0.8132617f}),
                              floats({2, 2}, {-0.5f, 0.5f, 0.23105858f, -0.23105858f})}},
                 {.inputs = {floats({1, 2}, {1e6f, 1e6f}), floats({1, 2}, {1, 0})},
                  .outputs = {floats({0.6931472f}), floats({1, 2}, {-0.5f, 0.5f})}}},
}};

const Op sparse_op{{
    .name = "SparseSoftmaxCrossEntropyWithLogits",
    .doc = "loss[b] = -log softmax(features[b])[labels[b]]; backprop = softmax(features) - "
           "onehot(labels), the derivative of loss with respect to features. A label outside [0, "
           "classes) is an error.",
    .inputs = {"features: T", "labels: Tlabels"},
    .outputs = {"loss: T", "backprop: T"},
    .attrs = {"T: {half, bfloat16, float, double}", "Tlabels: {int32, int64} = int64"},
    .shape = infer_sparse,
    .gradient = [](Gradient& g) { g.dx(0) = logits_gradient(g, g.x(0)); },
    .kernels = {cpu_kernel(
        "T", FloatTypes{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_sparse(t, r); })},
    .examples = {{.inputs = {floats({2, 2}, {0, 0, 1, 0}), longs({0, 1})},
                  .outputs = {floats({0.6931472f, 1.3132617f}),
                              floats({2, 2}, {-0.5f, 0.5f, 0.7310586f, -0.7310586f})}}},
}};

}  // namespace
}  // namespace leat
