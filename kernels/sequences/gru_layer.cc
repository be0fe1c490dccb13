// leat: fast-math-loops
// A GRU along a sequence as one op, and its gradient: what a loop over time would compute
// (frontends/cpp/nn/recurrent.cc), without the loop.
#include "kernels/sequences/gru_layer.h"

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
  const T *x, *of_h, *bias, *h_before;  // x, of_h, bias: 3 · units
  T *gates, *h;                         // gates: 4 · units: u, r, n and the state's part of g

  void run(int64_t units) const {
    LEAT_INDEPENDENT_ITERATIONS
    for (int64_t j = 0; j < units; ++j) {
      const T hg = of_h[j + 2 * units] + bias[j + 2 * units];
      const GruUnit<T> unit =
          GruUnit<T>::step(x[j], x[j + units], x[j + 2 * units], of_h[j] + bias[j],
                           of_h[j + units] + bias[j + units], hg, h_before[j]);
      gates[j] = unit.u;
      gates[j + units] = unit.r;
      gates[j + 2 * units] = unit.n;
      gates[j + 3 * units] = hg;
      h[j] = unit.h;
    }
  }
};

template <class T>
struct BackwardRow {
  const T *gates, *h_before, *dy;
  T *dx, *of_h, *dh;  // dx, of_h: 3 · units; dh: of h, then what does not go through the gates

  void run(int64_t units) const {
    LEAT_INDEPENDENT_ITERATIONS
    for (int64_t j = 0; j < units; ++j) {
      const GruGradient<T> d = GruGradient<T>::of(gates[j], gates[j + units], gates[j + 2 * units],
                                                  gates[j + 3 * units], h_before[j], dy[j] + dh[j]);
      dx[j] = of_h[j] = d.z;
      dx[j + units] = of_h[j + units] = d.r;
      dx[j + 2 * units] = d.g;
      of_h[j + 2 * units] = d.hg;
      dh[j] = d.h_before;
    }
  }
};

// ---- Forward

template <class T>
struct Forward {
  Extents n;
  bool has_lengths;
  KernelProduct<T> product;  // h[t-1] recurrent_kernel
  typename RowLoop<ForwardRow<T>>::Run row = RowLoop<ForwardRow<T>>::choose();

  void operator()(const Arguments& a) const {
    const T *x = a.input<T>(0), *h = a.input<T>(1), *bias = a.input<T>(3);
    const int32_t* lengths = has_lengths ? a.input<int32_t>(4) : nullptr;
    T *y = a.output<T>(0), *gates = a.output<T>(2), *of_h = static_cast<T*>(a.workspace);
    const int64_t states = n.states();
    product.begin(a.input<T>(2), of_h + 3 * states);
    for (int64_t step = 0; step < n.time; ++step) {
      StepEnd::pace(32 * states);
      const int64_t at = n.at(step) * states;
      product(h, a.input<T>(2), of_h, of_h + 3 * states, a.stream);
      a.stream->parallel_for(n.batch, rows_per_chunk(n.units), [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; ++b) {
          const int64_t in_step = b * n.units, here = at + in_step;
          run_row({x + 3 * here, of_h + 3 * in_step, bias, h + in_step, gates + 4 * here, y + here},
                  step < n.length(lengths, b));
        }
      });
      h = y + at;
    }
    copy_last(n, lengths, a.input<T>(1), y, a.output<T>(1));
  }

  void run_row(const ForwardRow<T>& of, bool takes_part) const {
    if (takes_part) return row(of, n.units);
    std::fill_n(of.gates, 4 * n.units, T(0));
    std::fill_n(of.h, n.units, T(0));
  }
};

template <class T>
BoundKernel prepare_forward(TypeTag<T>, const KernelRequest& r) {
  const Extents n(r, r.outputs[0].shape);
  if (n.states() == 0) return {};
  Forward<T> forward{.n = n,
                     .has_lengths = r.inputs.size() > 4,
                     .product = KernelProduct<T>({.m = n.batch,
                                                  .n = 3 * n.units,
                                                  .k = n.units,
                                                  .transpose_a = false,
                                                  .transpose_b = false},
                                                 n.time)};
  const size_t workspace = static_cast<size_t>(3 * n.states()) * sizeof(T);
  const size_t bytes = workspace + forward.product.workspace_bytes();
  BoundKernel kernel = BoundKernel::of(std::move(forward)).with_workspace(bytes);
  kernel.cost_ns =
      static_cast<double>(n.time * n.states()) * (10.0 + 0.1 * static_cast<double>(n.units));
  return kernel;
}

// ---- Backward

template <class T>
struct Backward {
  Extents n;
  bool has_lengths;
  KernelProduct<T> of_state;  // added to what does not go through the gates
  WeightGradient<T> of_weights;
  typename RowLoop<BackwardRow<T>>::Run row = RowLoop<BackwardRow<T>>::choose();

  void operator()(const Arguments& a) const {
    const T *h0 = a.input<T>(0), *y = a.input<T>(2), *gates = a.input<T>(3), *dy = a.input<T>(4);
    const int32_t* lengths = has_lengths ? a.input<int32_t>(6) : nullptr;
    T *dx = a.output<T>(0), *dh = a.output<T>(1);
    const int64_t states = n.states();
    T* const of_h = static_cast<T*>(a.workspace);  // gradients of the state's parts
    T* const rest = of_h + 3 * n.time * states;
    of_state.begin(a.input<T>(1), rest);
    std::copy_n(a.input<T>(5), states, dh);  // between the steps, dh is that of the state
    for (int64_t step = n.time; step-- > 0;) {
      StepEnd::pace(32 * states);
      const int64_t at = n.at(step) * states;
      const T* h_before = step == 0 ? h0 : y + n.at(step - 1) * states;
      a.stream->parallel_for(n.batch, rows_per_chunk(n.units), [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; ++b) {
          const int64_t in_step = b * n.units, here = at + in_step;
          if (step < n.length(lengths, b)) {
            row({gates + 4 * here, h_before + in_step, dy + here, dx + 3 * here, of_h + 3 * here,
                 dh + in_step},
                n.units);
          } else {
            std::fill_n(dx + 3 * here, 3 * n.units, T(0));
            std::fill_n(of_h + 3 * here, 3 * n.units, T(0));
          }
        }
      });
      of_state(of_h + 3 * at, a.input<T>(1), dh, rest, a.stream);
    }
    of_weights(h0, y, of_h, a.output<T>(2), rest, a.stream);
    add_rows(of_h, a.output<T>(3));
  }

  // The gradient of the bias: in blocks, so that a sum of many rows stays exact.
  void add_rows(const T* rows, T* sums) const {
    const int64_t width = 3 * n.units, count = n.time * n.batch;
    std::vector<T> block(static_cast<size_t>(width));
    std::fill_n(sums, width, T(0));
    for (int64_t first = 0; first < count; first += 64) {
      std::fill(block.begin(), block.end(), T(0));
      for (int64_t r = first; r < std::min(count, first + 64); ++r) {
        for (int64_t j = 0; j < width; ++j) block[j] += rows[r * width + j];
      }
      for (int64_t j = 0; j < width; ++j) sums[j] += block[j];
    }
  }
};

template <class T>
BoundKernel prepare_backward(TypeTag<T>, const KernelRequest& r) {
  const Extents n(r, r.inputs[2].shape);
  if (n.units == 0) return {};
  Backward<T> backward{.n = n,
                       .has_lengths = r.inputs.size() > 6,
                       .of_state = KernelProduct<T>({.m = n.batch,
                                                     .n = n.units,
                                                     .k = 3 * n.units,
                                                     .transpose_a = false,
                                                     .transpose_b = true,
                                                     .adds = true},
                                                    n.time),
                       .of_weights = WeightGradient<T>(n, 3)};
  const size_t workspace =
      static_cast<size_t>(3 * n.time * n.states()) * sizeof(T) +
      std::max(backward.of_state.workspace_bytes(), backward.of_weights.workspace_bytes());
  BoundKernel kernel = BoundKernel::of(std::move(backward)).with_workspace(workspace);
  kernel.cost_ns =
      static_cast<double>(n.time * n.states()) * (10.0 + 0.2 * static_cast<double>(n.units));
  return kernel;
}

// ---- Ops

const Op layer_op{{
    .name = "GruLayer",
    .doc = "y[t] of a GRU for each position of x [time, batch, 3 units], the input parts of z, r "
           "and g; of = y[t-1] recurrent_kernel + recurrent_bias has the state's: u = σ(xz + ofz), "
           "y[t] = u y[t-1] + (1 - u) tanh(xg + σ(xr + ofr) ofg); with reverse, from the last "
           "position to the first. A row ends after lengths[row] positions; the others give 0. "
           "last_h is the state after the last position. gates is for the gradient. Leat's own op.",
    .inputs = {"x: T", "h: T", "recurrent_kernel: T", "recurrent_bias: T", "lengths: N * int32"},
    .outputs = {"y: T", "last_h: T", "gates: T"},
    .attrs = attrs,
    .shape =
        [](ShapeContext& c) {
          const Shape x = c.with_rank(0, 3), out = infer(x, c.with_rank(1, 2));
          expect_shape(c, 0, {out[0], out[1], times(3, out[2])});
          expect_shape(c, 1, {out[1], out[2]});
          expect_shape(c, 2, {out[2], times(3, out[2])});
          expect_shape(c, 3, {times(3, out[2])});
          check_lengths(c, 4, out[1]);
          c.set_output(0, out);
          c.set_output(1, {out[1], out[2]});
          c.set_output(2, {out[0], out[1], times(4, out[2])});
        },
    .gradient =
        [](Gradient& g) {
          std::vector<Output> inputs = {g.x(1), g.x(2),           g.y(0),
                                        g.y(2), g.dy_or_zeros(0), g.dy_or_zeros(1)};
          for (int i = 4; i < g.num_inputs(); ++i) inputs.push_back(g.x(i));
          const std::vector<Output> dx =
              op_outputs("GruLayerGrad", inputs,
                         {{"N", g.num_inputs() - 4}, {"reverse", g.attr<bool>("reverse")}});
          for (int i = 0; i < 4; ++i) g.dx(i) = dx[static_cast<size_t>(i)];
        },
    .kernels = {cpu_kernel(
        "T", LayerTypes{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_forward(t, r); })},
    .examples = {{.inputs = {floats({1, 1, 3}, {0, 0, 1}), floats({1, 1}, {4}),
                             floats({1, 3}, {0, 0, 0}), floats({0, 0, 2})},
                  .attrs = {{"N", 0}},
                  .outputs = {floats({1, 1, 1}, {2.48201379F}), floats({1, 1}, {2.48201379F}),
                              floats({1, 1, 4}, {0.5, 0.5, 0.96402758F, 2})}}},
}};

const Op layer_gradient_op{{
    .name = "GruLayerGrad",
    .doc = "The gradients of GruLayer. Leat's own op.",
    .inputs = {"h: T", "recurrent_kernel: T", "y: T", "gates: T", "dy: T", "dlast_h: T",
               "lengths: N * int32"},
    .outputs = {"dx: T", "dh: T", "drecurrent_kernel: T", "drecurrent_bias: T"},
    .attrs = attrs,
    .shape =
        [](ShapeContext& c) {
          const Shape y = c.with_rank(2, 3), out = infer(y, c.with_rank(0, 2));
          for (const int i : {2, 4}) expect_shape(c, i, out);
          for (const int i : {0, 5}) expect_shape(c, i, {out[1], out[2]});
          expect_shape(c, 1, {out[2], times(3, out[2])});
          expect_shape(c, 3, {out[0], out[1], times(4, out[2])});
          check_lengths(c, 6, out[1]);
          c.set_output(0, {out[0], out[1], times(3, out[2])});
          c.set_output(1, {out[1], out[2]});
          c.set_output(2, {out[2], times(3, out[2])});
          c.set_output(3, {times(3, out[2])});
        },
    .gradient = [](Gradient&) { fail_second_gradient("a GRU layer"); },
    .kernels = {cpu_kernel(
        "T", LayerTypes{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_backward(t, r); })},
    .examples = {{.inputs = {floats({1, 1}, {4}), floats({1, 3}, {0, 0, 0}),
                             floats({1, 1, 1}, {2.5}), floats({1, 1, 4}, {0.5, 0.5, 0, 2}),
                             floats({1, 1, 1}, {1}), floats({1, 1}, {1})},
                  .attrs = {{"N", 0}},
                  .outputs = {floats({1, 1, 3}, {2, 0.5, 1}), floats({1, 1}, {1}),
                              floats({1, 3}, {8, 2, 2}), floats({2, 0.5, 0.5})}}},
}};

}  // namespace
}  // namespace leat::layer
