// leat: fast-math-loops
// Softmax and its logarithm over the last axis.
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/examples.h"
#include "kernels/half_rows.h"
#include "kernels/neural/softmax_rows.h"

namespace leat {
namespace {

// 16-bit floats are computed in a workspace of floats.
template <class T, bool logarithm>
BoundKernel prepare(const KernelRequest& request) {
  using C = ComputeType<T>;
  const Shape& shape = request.inputs[0].shape;
  const int64_t columns = shape[shape.rank() - 1];
  const int64_t n = shape.elements(), rows = columns == 0 ? 0 : n / columns;
  constexpr bool in_place = std::is_same_v<T, C>;
  BoundKernel kernel = BoundKernel::of([rows, columns](const Arguments& a) {
    a.stream->parallel_for(rows, softmax_rows_per_chunk(columns), [&](int64_t begin, int64_t end) {
      const int64_t step = softmax_rows_per_block(columns);
      for (int64_t first = begin; first < end; first += step) {
        const int64_t count = std::min(step, end - first), at = first * columns;
        const T* x = a.input<T>(0) + at;
        T* y = a.output<T>() + at;
        C* e = in_place ? reinterpret_cast<C*>(y) : static_cast<C*>(a.workspace) + at;
        vectorized([=]() LEAT_INLINE {
          C max[softmax_block_rows], sum[softmax_block_rows];
          exponentiate_rows(x, count, columns, e, max, sum);
          for (int64_t r = 0; r < count; ++r) {
            const C largest = max[r], log_sum = std::log(sum[r]), scale = C(1) / sum[r];
            for_row_tiles(columns, [=](int64_t first, int64_t n) LEAT_INLINE {
              const int64_t at = r * columns + first;
              float logits[row_tile], results[row_tile];
              const auto* const from = loaded(x + at, logarithm ? n : 0, logits);
              store_row(y + at, n, results, [=](auto* to) LEAT_INLINE {
                using To = std::remove_pointer_t<decltype(to)>;
                LEAT_INDEPENDENT_ITERATIONS
                for (int64_t i = 0; i < n; ++i) {
                  // Not x - (max + log_sum): beside a large max, log_sum would lose its digits.
                  to[i] = logarithm ? To(C(from[i]) - largest - log_sum) : To(e[at + i] * scale);
                }
              });
            });
          }
        });
      }
    });
  });
  if (!in_place) kernel.workspace_bytes = n * sizeof(C);
  if (in_place && !logarithm) kernel.may_share = {{0, 0}};
  return kernel;
}

void infer(ShapeContext& c) { c.set_output(0, c.with_rank_at_least(0, 1)); }

Output sum_over_classes(Output x) { return sum(x, -1, {.keep_dims = true}); }

const Op softmax_op{{
    .name = "Softmax",
    .doc = "softmax[…, c] = exp(logits[…, c]) / sum over k of exp(logits[…, k]).",
    .inputs = {"logits: T"},
    .outputs = {"softmax: T"},
    .attrs = {"T: {half, bfloat16, float, double}"},
    .shape = infer,
    .gradient = [](Gradient& g) { g.dx() = (g.dy() - sum_over_classes(g.dy() * g.y())) * g.y(); },
    .kernels = {cpu_kernel(
        "T", FloatTypes{},
        []<class T>(TypeTag<T>, const KernelRequest& r) { return prepare<T, false>(r); })},
    .examples = {{.inputs = {floats({2, 2}, {0, 0, 1, 0})},
                  .outputs = {floats({2, 2}, {0.5f, 0.5f, 0.7310586f, 0.26894143f})}}},
}};

const Op log_softmax_op{{
    .name = "LogSoftmax",
    .doc = "logsoftmax[…, c] = logits[…, c] - log(sum over k of exp(logits[…, k])).",
    .inputs = {"logits: T"},
    .outputs = {"logsoftmax: T"},
    .attrs = {"T: {half, bfloat16, float, double}"},
    .shape = infer,
    .gradient = [](Gradient& g) { g.dx() = g.dy() - sum_over_classes(g.dy()) * exp(g.y()); },
    .kernels = {cpu_kernel(
        "T", FloatTypes{},
        []<class T>(TypeTag<T>, const KernelRequest& r) { return prepare<T, true>(r); })},
    .examples = {{.inputs = {floats({1, 2}, {1, 0})},
                  .outputs = {floats({1, 2}, {-0.3132617f, -1.3132617f})}},
                 {.inputs = {floats({1, 2}, {1e6f, 1e6f})},
                  .outputs = {floats({1, 2}, {-0.6931472f, -0.6931472f})}}},
}};

}  // namespace
}  // namespace leat
