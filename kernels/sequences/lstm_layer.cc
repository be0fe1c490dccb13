// leat: fast-math-loops
// An LSTM along a sequence as one op, and its gradient: what a loop over time would compute
// (frontends/cpp/nn/recurrent.cc), without the loop; the gradient of the recurrent kernel is one
// product of all steps.
#include "kernels/sequences/lstm_layer.h"

#include <algorithm>

#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "kernels/examples.h"
#include "kernels/sequences/layer_ops.h"

namespace leat::layer {
namespace {

// ---- Rows

template <class T>
struct ForwardRow {
  const T* c_before;  // all of `units` elements
  T *gates, *c, *y;   // gates: 4 · units; the sums, then the values

  void run(int64_t units) const {
    T *const i = gates, *const f = i + units, *const g = f + units, *const o = g + units;
    LEAT_INDEPENDENT_ITERATIONS
    for (int64_t j = 0; j < units; ++j) {
      const LstmUnit<T> unit = LstmUnit<T>::step(i[j], f[j], g[j], o[j], c_before[j]);
      i[j] = unit.i;
      f[j] = unit.f;
      g[j] = unit.g;
      o[j] = unit.o;
      c[j] = unit.c;
      y[j] = unit.y;
    }
  }
};

template <class T>
struct BackwardRow {
  const T *gates, *c, *c_before, *dy, *dh, *dc;  // dh, dc: of the state after the step
  T *dgates, *dc_before;

  void run(int64_t units) const {
    const T *const i = gates, *const f = i + units, *const g = f + units, *const o = g + units;
    T *const di = dgates, *const df = di + units, *const dg = df + units, *const d_o = dg + units;
    LEAT_INDEPENDENT_ITERATIONS
    for (int64_t j = 0; j < units; ++j) {
      const LstmGradient<T> d =
          LstmGradient<T>::of(i[j], f[j], g[j], o[j], c_before[j], c[j], dy[j] + dh[j], dc[j]);
      di[j] = d.i;
      df[j] = d.f;
      dg[j] = d.g;
      d_o[j] = d.o;
      dc_before[j] = d.c_before;
    }
  }
};

// ---- Forward

template <class T>
struct Forward {
  Extents n;
  bool has_lengths;
  KernelProduct<T> product;  // h[t-1] recurrent_kernel, added to the gates
  typename RowLoop<ForwardRow<T>>::Run row = RowLoop<ForwardRow<T>>::choose();

  void operator()(const Arguments& a) const {
    const T *x = a.input<T>(0), *h = a.input<T>(1), *c = a.input<T>(2);
    const int32_t* lengths = has_lengths ? a.input<int32_t>(4) : nullptr;
    T *y = a.output<T>(0), *gates = a.output<T>(3), *cells = a.output<T>(4);
    const int64_t states = n.states();
    if (gates != x) std::copy_n(x, 4 * n.time * states, gates);
    product.begin(a.input<T>(3), a.workspace);
    for (int64_t step = 0; step < n.time; ++step) {
      StepEnd::pace(32 * states);
      const int64_t at = n.at(step) * states;
      product(h, a.input<T>(3), gates + 4 * at, a.workspace, a.stream);
      a.stream->parallel_for(n.batch, rows_per_chunk(n.units), [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; ++b) {
          const int64_t in_step = b * n.units, here = at + in_step;
          run_row({c + in_step, gates + 4 * here, cells + here, y + here},
                  step < n.length(lengths, b));
        }
      });
      h = y + at;
      c = cells + at;
    }
    copy_last(n, lengths, a.input<T>(1), y, a.output<T>(1));
    copy_last(n, lengths, a.input<T>(2), cells, a.output<T>(2));
  }

  void run_row(const ForwardRow<T>& of, bool takes_part) const {
    if (takes_part) return row(of, n.units);
    std::fill_n(of.gates, 4 * n.units, T(0));
    std::fill_n(of.c, n.units, T(0));
    std::fill_n(of.y, n.units, T(0));
  }
};

template <class T>
BoundKernel prepare_forward(TypeTag<T>, const KernelRequest& r) {
  const Extents n(r, r.outputs[0].shape);
  if (n.states() == 0) return {};
  Forward<T> forward{.n = n,
                     .has_lengths = r.inputs.size() > 4,
                     .product = KernelProduct<T>({.m = n.batch,
                                                  .n = 4 * n.units,
                                                  .k = n.units,
                                                  .transpose_a = false,
                                                  .transpose_b = false,
                                                  .adds = true},
                                                 n.time)};
  const size_t workspace = forward.product.workspace_bytes();
  BoundKernel kernel = BoundKernel::of(std::move(forward)).sharing(3, 0).with_workspace(workspace);
  kernel.cost_ns =
      static_cast<double>(n.time * n.states()) * (10.0 + 0.1 * static_cast<double>(n.units));
  return kernel;
}

// ---- Backward

template <class T>
struct Backward {
  Extents n;
  bool has_lengths;
  KernelProduct<T> of_state;
  WeightGradient<T> of_weights;
  typename RowLoop<BackwardRow<T>>::Run row = RowLoop<BackwardRow<T>>::choose();

  void operator()(const Arguments& a) const {
    const T *c0 = a.input<T>(1), *y = a.input<T>(3), *gates = a.input<T>(4), *cells = a.input<T>(5),
            *dy = a.input<T>(6), *dlast_h = a.input<T>(7), *dlast_c = a.input<T>(8);
    const int32_t* lengths = has_lengths ? a.input<int32_t>(9) : nullptr;
    // Between the steps, dh and dc are the gradients of the state.
    T *dx = a.output<T>(0), *dh = a.output<T>(1), *dc = a.output<T>(2);
    const int64_t states = n.states();
    of_state.begin(a.input<T>(2), a.workspace);
    for (int64_t step = n.time; step-- > 0;) {
      StepEnd::pace(32 * states);
      const int64_t at = n.at(step) * states;
      const T* c_before = step == 0 ? c0 : cells + n.at(step - 1) * states;
      a.stream->parallel_for(n.batch, rows_per_chunk(n.units), [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; ++b) {
          const int64_t steps = n.length(lengths, b), in_step = b * n.units, here = at + in_step;
          if (step >= steps) {
            std::fill_n(dx + 4 * here, 4 * n.units, T(0));
            continue;
          }
          const bool is_last = step + 1 == steps;
          row({gates + 4 * here, cells + here, c_before + in_step, dy + here,
               (is_last ? dlast_h : dh) + in_step, (is_last ? dlast_c : dc) + in_step,
               dx + 4 * here, dc + in_step},
              n.units);
        }
      });
      of_state(dx + 4 * at, a.input<T>(2), dh, a.workspace, a.stream);
    }
    for (int64_t b = 0; b < n.batch; ++b) {
      if (n.length(lengths, b) > 0) continue;
      std::copy_n(dlast_h + b * n.units, n.units, dh + b * n.units);
      std::copy_n(dlast_c + b * n.units, n.units, dc + b * n.units);
    }
    of_weights(a.input<T>(0), y, dx, a.output<T>(3), a.workspace, a.stream);
  }
};

template <class T>
BoundKernel prepare_backward(TypeTag<T>, const KernelRequest& r) {
  const Extents n(r, r.inputs[3].shape);
  if (n.units == 0) return {};
  Backward<T> backward{
      .n = n,
      .has_lengths = r.inputs.size() > 9,
      .of_state = KernelProduct<T>(
          {.m = n.batch, .n = n.units, .k = 4 * n.units, .transpose_a = false, .transpose_b = true},
          n.time),
      .of_weights = WeightGradient<T>(n, 4)};
  const size_t workspace =
      std::max(backward.of_state.workspace_bytes(), backward.of_weights.workspace_bytes());
  BoundKernel kernel = BoundKernel::of(std::move(backward)).with_workspace(workspace);
  kernel.cost_ns =
      static_cast<double>(n.time * n.states()) * (10.0 + 0.2 * static_cast<double>(n.units));
  return kernel;
}

// ---- Ops

// {time, batch, units}; the state h, c and the recurrent kernel are the inputs from `h` on.
Shape infer_layer(const ShapeContext& c, const Shape& sequence, int h) {
  const Shape out = infer(sequence, c.with_rank(h, 2));
  for (const int i : {h, h + 1}) expect_shape(c, i, {out[1], out[2]});
  expect_shape(c, h + 2, {out[2], times(4, out[2])});
  return out;
}

const Op layer_op{{
    .name = "LstmLayer",
    .doc =
        "y[t], c[t] of an LSTM for each position of x [time, batch, 4 units], the input parts of "
        "the gates i, f, g, o: with these plus h[t-1] recurrent_kernel, c[t] = σ(f) c[t-1] + "
        "σ(i) tanh(g), y[t] = h[t] = σ(o) tanh(c[t]); with reverse, from the last position to "
        "the first. A row ends after lengths[row] positions; the others give 0. last_h and "
        "last_c are the state after the last position. gates and cells are for the gradient. "
        "Leat's own op.",
    .inputs = {"x: T", "h: T", "c: T", "recurrent_kernel: T", "lengths: N * int32"},
    .outputs = {"y: T", "last_h: T", "last_c: T", "gates: T", "cells: T"},
    .attrs = attrs,
    .shape =
        [](ShapeContext& c) {
          const Shape x = c.with_rank(0, 3);
          const Shape out = infer_layer(c, x, 1);
          expect_shape(c, 0, {out[0], out[1], times(4, out[2])});
          check_lengths(c, 4, out[1]);
          c.set_output(0, out);
          for (const int i : {1, 2}) c.set_output(i, {out[1], out[2]});
          c.set_output(3, {out[0], out[1], times(4, out[2])});
          c.set_output(4, out);
        },
    .gradient =
        [](Gradient& g) {
          std::vector<Output> inputs = {g.x(1), g.x(2), g.x(3), g.y(0), g.y(3), g.y(4)};
          for (const int i : {0, 1, 2}) inputs.push_back(g.dy_or_zeros(i));
          for (int i = 4; i < g.num_inputs(); ++i) inputs.push_back(g.x(i));
          const std::vector<Output> dx =
              op_outputs("LstmLayerGrad", inputs,
                         {{"N", g.num_inputs() - 4}, {"reverse", g.attr<bool>("reverse")}});
          for (int i = 0; i < 4; ++i) g.dx(i) = dx[static_cast<size_t>(i)];
        },
    .kernels = {cpu_kernel(
        "T", LayerTypes{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_forward(t, r); })},
    .examples = {{.inputs = {floats({1, 1, 4}, {0, 0, 0, 0}), floats({1, 1}, {5}),
                             floats({1, 1}, {2}), floats({1, 4}, {0, 0, 0, 0})},
                  .attrs = {{"N", 0}},
                  .outputs = {floats({1, 1, 1}, {0.38079708F}), floats({1, 1}, {0.38079708F}),
                              floats({1, 1}, {1}), floats({1, 1, 4}, {0.5, 0.5, 0, 0.5}),
                              floats({1, 1, 1}, {1})}}},
}};

const Op layer_gradient_op{{
    .name = "LstmLayerGrad",
    .doc = "The gradients of LstmLayer. Leat's own op.",
    .inputs = {"h: T", "c: T", "recurrent_kernel: T", "y: T", "gates: T", "cells: T", "dy: T",
               "dlast_h: T", "dlast_c: T", "lengths: N * int32"},
    .outputs = {"dx: T", "dh: T", "dc: T", "drecurrent_kernel: T"},
    .attrs = attrs,
    .shape =
        [](ShapeContext& c) {
          const Shape y = c.with_rank(3, 3);
          const Shape out = infer_layer(c, y, 0);
          const Shape gates = {out[0], out[1], times(4, out[2])};
          for (const int i : {3, 5, 6}) expect_shape(c, i, out);
          expect_shape(c, 4, gates);
          for (const int i : {7, 8}) expect_shape(c, i, {out[1], out[2]});
          check_lengths(c, 9, out[1]);
          c.set_output(0, gates);
          for (const int i : {1, 2}) c.set_output(i, {out[1], out[2]});
          c.set_output(3, {out[2], times(4, out[2])});
        },
    .gradient = [](Gradient&) { fail_second_gradient("an LSTM layer"); },
    .kernels = {cpu_kernel(
        "T", LayerTypes{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_backward(t, r); })},
    .examples = {{.inputs = {floats({1, 1}, {5}), floats({1, 1}, {2}), floats({1, 4}, {0, 0, 0, 0}),
                             floats({1, 1, 1}, {0.38079708F}),
                             floats({1, 1, 4}, {0.5, 0.5, 0, 0.5}), floats({1, 1, 1}, {1}),
                             floats({1, 1, 1}, {1}), floats({1, 1}, {0}), floats({1, 1}, {0})},
                  .attrs = {{"N", 0}},
                  .outputs = {floats({1, 1, 4}, {0, 0.10499359F, 0.10499359F, 0.19039854F}),
                              floats({1, 1}, {0}), floats({1, 1}, {0.10499359F}),
                              floats({1, 4}, {0, 0.52496794F, 0.52496794F, 0.95199271F})}}},
}};

}  // namespace
}  // namespace leat::layer
