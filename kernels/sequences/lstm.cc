// leat: fast-math-loops
// A step of a recurrent network with long short-term memory: LSTMBlockCell and its gradient.
#include "kernels/sequences/lstm.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "kernels/examples.h"

namespace leat::lstm {
namespace {

template <class T>
BoundKernel prepare_cell(TypeTag<T>, const KernelRequest& r) {
  if (are_empty(r.outputs)) return {};
  const Cell cell{.n = {r.inputs[0].shape[0], r.inputs[0].shape[1], r.inputs[1].shape[1]},
                  .order = icfo,
                  .rules = rules_of(r)};
  const Product product = cell.gates_product();
  const int64_t joined = cell.n.batch * cell.width(), gates = 4 * cell.n.states();
  BoundKernel kernel = BoundKernel::of([=](const Arguments& a) {
    const Extents n = cell.n;
    Floats<T> floats(a);
    const float *x = floats.input(0, n.batch * n.inputs), *cs_prev = floats.input(1, n.states()),
                *h_prev = floats.input(2, n.states()),
                *w = floats.input(3, cell.width() * 4 * n.cells);
    const int64_t peepholes = cell.rules.has_peepholes ? n.cells : 0;
    const float* const wc[3] = {floats.input(4, peepholes), floats.input(5, peepholes),
                                floats.input(6, peepholes)};
    const float* b = floats.input(7, 4 * n.cells);
    float* out[7];
    for (int i = 0; i < 7; ++i) out[i] = floats.output(i, n.states());
    float *xh = static_cast<float*>(a.workspace), *products = xh + joined;
    join_columns(n.batch, x, n.inputs, h_prev, n.cells, xh);
    product(xh, w, products, products + gates, a.stream);
    cell.forward(products, cs_prev, wc, b, out);
  });
  kernel.workspace_bytes = (joined + gates) * sizeof(float) + product.workspace_bytes();
  kernel.cost_ns = 100.0 * static_cast<double>(cell.n.states()) +
                   0.1 * static_cast<double>(joined * 4 * cell.n.cells);
  return kernel;
}

const Op cell_op{{
    .name = "LSTMBlockCell",
    .doc = "A step of an LSTM: [i, ci, f, o] = [x, h_prev] w + b, i = σ(i + wci cs_prev), "
           "f = σ(f + forget_bias + wcf cs_prev), ci = tanh(ci), cs = ci i + cs_prev f within "
           "±cell_clip (if that is positive), o = σ(o + wco cs), co = tanh(cs), h = co o. The "
           "terms of wci, wcf and wco only with use_peephole.",
    .inputs = {"x: T", "cs_prev: T", "h_prev: T", "w: T", "wci: T", "wcf: T", "wco: T", "b: T"},
    .outputs = {"i: T", "cs: T", "f: T", "o: T", "ci: T", "co: T", "h: T"},
    .attrs = {"forget_bias: float = 1.0", "cell_clip: float = 3.0", "use_peephole: bool = false",
              types},
    .shape =
        [](ShapeContext& c) {
          const Shape out = infer_cell(c, 0, c.with_rank(0, 2), c.attr<bool>("use_peephole"));
          for (int i = 0; i < 7; ++i) c.set_output(i, out);
        },
    .kernels = {cpu_kernel(
        "T", CellTypes{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_cell(t, r); })},
    .examples = {{.inputs = {floats({1, 1}, {1}), floats({1, 1}, {0.5}), floats({1, 1}, {2}),
                             floats({2, 4}, {0, 1, 0, 0, 0, 0, 0, 1}), floats({0}), floats({0}),
                             floats({0}), floats({0, 0, -1, 0})},
                  .outputs = {floats({1, 1}, {0.5}), floats({1, 1}, {0.63079708F}),
                              floats({1, 1}, {0.5}), floats({1, 1}, {0.88079708F}),
                              floats({1, 1}, {0.76159416F}), floats({1, 1}, {0.55860706F}),
                              floats({1, 1}, {0.49201947F})}}},
}};

template <class T>
BoundKernel prepare_cell_gradient(TypeTag<T>, const KernelRequest& r) {
  if (are_empty(r.outputs)) return {};
  const Cell cell{.n = {r.inputs[0].shape[0], r.inputs[0].shape[1], r.inputs[1].shape[1]},
                  .order = icfo,
                  .rules = rules_of(r)};
  return BoundKernel::of([=](const Arguments& a) {
    const Extents n = cell.n;
    Floats<T> floats(a);
    const float* cs_prev = floats.input(1, n.states());
    const int64_t peepholes = cell.rules.has_peepholes ? n.cells : 0;
    const float* const wc[3] = {floats.input(4, peepholes), floats.input(5, peepholes),
                                floats.input(6, peepholes)};
    const float* values[6];
    for (int i = 0; i < 6; ++i) values[i] = floats.input(8 + i, n.states());
    const float *cs_grad = floats.input(14, n.states()), *h_grad = floats.input(15, n.states());
    float *cs_prev_grad = floats.output(0, n.states()), *gates = floats.output(1, 4 * n.states());
    float* wc_grads[3];
    for (int i = 0; i < 3; ++i) {
      wc_grads[i] = floats.output(2 + i, n.cells);
      std::fill_n(wc_grads[i], n.cells, 0.0F);
    }
    cell.backward(cs_prev, wc, values, cs_grad, h_grad, gates, cs_prev_grad, wc_grads);
  });
}

const Op cell_gradient_op{{
    .name = "LSTMBlockCellGrad",
    .doc = "The gradients of LSTMBlockCell with respect to cs_prev, the sums [i, ci, f, o] and the "
           "peepholes (0 without use_peephole).",
    .inputs = {"x: T", "cs_prev: T", "h_prev: T", "w: T", "wci: T", "wcf: T", "wco: T", "b: T",
               "i: T", "cs: T", "f: T", "o: T", "ci: T", "co: T", "cs_grad: T", "h_grad: T"},
    .outputs = {"cs_prev_grad: T", "dicfo: T", "wci_grad: T", "wcf_grad: T", "wco_grad: T"},
    .attrs = {"use_peephole: bool", types},
    .shape =
        [](ShapeContext& c) {
          const Shape states = infer_cell(c, 0, c.with_rank(0, 2), c.attr<bool>("use_peephole"));
          for (int i = 8; i < 16; ++i) expect_shape(c, i, states);
          c.set_output(0, states);
          c.set_output(1, {states[0], times(4, states[1])});
          for (const int i : {2, 3, 4}) c.set_output(i, {states[1]});
        },
    .kernels = {cpu_kernel(
        "T", CellTypes{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_cell_gradient(t, r); })},
    .examples = {{.inputs = {floats({1, 1}, {1}), floats({1, 1}, {0.5}), floats({1, 1}, {2}),
                             floats({2, 4}, {0, 0, 0, 0, 0, 0, 0, 0}), floats({0}), floats({0}),
                             floats({0}), floats({0, 0, 0, 0}), floats({1, 1}, {0.5}),
                             floats({1, 1}, {2}), floats({1, 1}, {0.25}), floats({1, 1}, {0.5}),
                             floats({1, 1}, {0.5}), floats({1, 1}, {0.5}), floats({1, 1}, {1}),
                             floats({1, 1}, {2})},
                  .attrs = {{"use_peephole", false}},
                  .outputs = {floats({1, 1}, {0.4375}),
                              floats({1, 4}, {0.21875F, 0.65625F, 0.1640625F, 0.25}), floats({0}),
                              floats({0}), floats({0})}}},
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat::lstm
