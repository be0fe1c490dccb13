// leat: fast-math-loops
// A step of a gated recurrent network (Cho et al., 2014): GRUBlockCell and its gradient.
#include "graph/gradient.h"
#include "graph/ops.h"
#include "kernels/examples.h"
#include "kernels/sequences/gru_cell.h"
#include "kernels/sequences/recurrent.h"

namespace leat {
namespace {

using gru::Extents;

BoundKernel prepare_cell(const KernelRequest& r) {
  if (are_empty(r.outputs)) return {};
  const Extents n(r);
  const Product gates_product({n.batch, 2 * n.cells, n.width(), false, false}),
      candidate_product({n.batch, n.cells, n.width(), false, false});
  const int64_t joined = n.batch * n.width();
  BoundKernel kernel = BoundKernel::of([=](const Arguments& a) {
    const float *x = a.input<float>(0), *h_prev = a.input<float>(1), *w_ru = a.input<float>(2),
                *w_c = a.input<float>(3), *b_ru = a.input<float>(4), *b_c = a.input<float>(5);
    float *reset = a.output<float>(0), *update = a.output<float>(1), *c = a.output<float>(2),
          *h = a.output<float>(3);
    float *xh = static_cast<float*>(a.workspace), *gates = xh + joined,
          *kept = gates + 2 * n.states();  // the part of h_prev that is not reset
    void* rest = kept + n.states();
    join_columns(n.batch, x, n.inputs, h_prev, n.cells, xh);
    gates_product(xh, w_ru, gates, rest, a.stream);
    for (int64_t row = 0; row < n.batch; ++row) {
      const float* gate = gates + row * 2 * n.cells;
      for (int64_t j = 0; j < n.cells; ++j) {
        const int64_t at = row * n.cells + j;
        reset[at] = Sigmoid{}(gate[j] + b_ru[j]);
        update[at] = Sigmoid{}(gate[n.cells + j] + b_ru[n.cells + j]);
        kept[at] = h_prev[at] * reset[at];
      }
    }
    join_columns(n.batch, x, n.inputs, kept, n.cells, xh);
    candidate_product(xh, w_c, c, rest, a.stream);
    for (int64_t row = 0; row < n.batch; ++row) {
      for (int64_t j = 0; j < n.cells; ++j) {
        const int64_t at = row * n.cells + j;
        c[at] = std::tanh(c[at] + b_c[j]);
        h[at] = gru::state_after(update[at], h_prev[at], c[at]);
      }
    }
  });
  kernel.workspace_bytes =
      (joined + 3 * n.states()) * sizeof(float) +
      std::max(gates_product.workspace_bytes(), candidate_product.workspace_bytes());
  kernel.cost_ns =
      60.0 * static_cast<double>(n.states()) + 0.1 * static_cast<double>(joined * 3 * n.cells);
  return kernel;
}

BoundKernel prepare_gradient(const KernelRequest& r) {
  if (are_empty(r.outputs)) return {};
  const Extents n(r);
  const Product candidate_product({n.batch, n.width(), n.cells, false, true}),
      gates_product({n.batch, n.width(), 2 * n.cells, false, true});
  const int64_t joined = n.batch * n.width();
  BoundKernel kernel = BoundKernel::of([=](const Arguments& a) {
    const float *h_prev = a.input<float>(1), *w_ru = a.input<float>(2), *w_c = a.input<float>(3),
                *reset = a.input<float>(6), *update = a.input<float>(7), *c = a.input<float>(8),
                *d_h = a.input<float>(9);
    float *d_x = a.output<float>(0), *d_h_prev = a.output<float>(1), *d_c = a.output<float>(2),
          *d_gates = a.output<float>(3);
    float *by_candidate = static_cast<float*>(a.workspace), *by_gates = by_candidate + joined;
    void* rest = by_gates + joined;
    for (int64_t i = 0; i < n.states(); ++i)
      d_c[i] = gru::gradient_of_candidate(update[i], c[i], d_h[i]);
    candidate_product(d_c, w_c, by_candidate, rest, a.stream);
    for (int64_t row = 0; row < n.batch; ++row) {
      const float* d_kept = by_candidate + row * n.width() + n.inputs;
      float* d_gate = d_gates + row * 2 * n.cells;
      for (int64_t j = 0; j < n.cells; ++j) {
        const int64_t at = row * n.cells + j;
        d_gate[j] = gru::gradient_of_reset(reset[at], h_prev[at], d_kept[j]);
        d_gate[n.cells + j] = gru::gradient_of_update(update[at], h_prev[at], c[at], d_h[at]);
      }
    }
    gates_product(d_gates, w_ru, by_gates, rest, a.stream);
    for (int64_t row = 0; row < n.batch; ++row) {
      const float *candidate = by_candidate + row * n.width(), *gate = by_gates + row * n.width();
      for (int64_t j = 0; j < n.inputs; ++j) d_x[row * n.inputs + j] = candidate[j] + gate[j];
      for (int64_t j = 0; j < n.cells; ++j) {
        const int64_t at = row * n.cells + j;
        d_h_prev[at] = gru::gradient_of_state(reset[at], update[at], gate[n.inputs + j],
                                              candidate[n.inputs + j], d_h[at]);
      }
    }
  });
  kernel.workspace_bytes =
      2 * joined * sizeof(float) +
      std::max(gates_product.workspace_bytes(), candidate_product.workspace_bytes());
  return kernel;
}

// {batch, inputs, cells}
Shape infer(ShapeContext& c) {
  const Shape x = c.with_rank(0, 2), h_prev = c.with_rank(1, 2);
  const int64_t batch = x[0] == any ? h_prev[0] : x[0], cells = h_prev[1];
  const int64_t width = plus(x[1], cells);
  expect_shape(c, 1, {batch, cells});
  expect_shape(c, 2, {width, times(2, cells)});
  expect_shape(c, 3, {width, cells});
  expect_shape(c, 4, {times(2, cells)});
  expect_shape(c, 5, {cells});
  return {batch, x[1], cells};
}

Tensor one(float value) { return floats({1, 1}, {value}); }

const Op cell_op{{
    .name = "GRUBlockCell",
    .doc = "A step of gated recurrent units: [r, u] = σ([x, h_prev] w_ru + b_ru), "
           "c = tanh([x, r h_prev] w_c + b_c), h = u h_prev + (1 - u) c.",
    .inputs = {"x: T", "h_prev: T", "w_ru: T", "w_c: T", "b_ru: T", "b_c: T"},
    .outputs = {"r: T", "u: T", "c: T", "h: T"},
    .attrs = {"T: {float}"},
    .shape =
        [](ShapeContext& c) {
          const Shape extents = infer(c);
          for (int i = 0; i < 4; ++i) c.set_output(i, {extents[0], extents[2]});
        },
    .kernels = {cpu_kernel("T", Types<float>{},
                           [](auto, const KernelRequest& r) { return prepare_cell(r); })},
    .examples = {{.inputs = {one(1), one(2), floats({2, 2}, {0, 0, 0, 0}), floats({2, 1}, {1, -1}),
                             floats({0, 0}), floats({0.5})},
                  .outputs = {one(0.5), one(0.5), one(0.46211716F), one(1.2310586F)}}},
}};

const Op gradient_op{{
    .name = "GRUBlockCellGrad",
    .doc = "The gradients of GRUBlockCell with respect to x, h_prev and the arguments of tanh and "
           "σ, from that of h.",
    .inputs = {"x: T", "h_prev: T", "w_ru: T", "w_c: T", "b_ru: T", "b_c: T", "r: T", "u: T",
               "c: T", "d_h: T"},
    .outputs = {"d_x: T", "d_h_prev: T", "d_c_bar: T", "d_r_bar_u_bar: T"},
    .attrs = {"T: {float}"},
    .shape =
        [](ShapeContext& c) {
          const Shape extents = infer(c);
          const Shape states{extents[0], extents[2]};
          for (int i = 6; i < 10; ++i) expect_shape(c, i, states);
          c.set_output(0, {extents[0], extents[1]});
          c.set_output(1, states);
          c.set_output(2, states);
          c.set_output(3, {extents[0], times(2, extents[2])});
        },
    .kernels = {cpu_kernel("T", Types<float>{},
                           [](auto, const KernelRequest& r) { return prepare_gradient(r); })},
    .examples = {{.inputs = {one(1), one(2), floats({2, 2}, {0, 0, 1, 2}), floats({2, 1}, {3, 4}),
                             floats({0, 0}), floats({0}), one(0.5), one(0.25), one(0.5), one(1)},
                  .outputs = {one(1.6875), one(3.0625), one(0.5625),
                              floats({1, 2}, {1.125, 0.28125})}}},
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
