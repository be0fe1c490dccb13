// leat: fast-math-loops
// All steps of a recurrent network with long short-term memory: BlockLSTM, BlockLSTMV2 and their
// gradients. x is [time, batch, inputs].
#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "kernels/examples.h"
#include "kernels/sequences/lstm.h"

namespace leat::lstm {
namespace {

// Steps from seq_len_max on are 0.
int64_t steps_of(const Arguments& a, int64_t time, const Extents& n) {
  const int64_t steps = *a.input<int64_t>(0);
  check(steps <= time, "seq_len_max must be at most the ", time, " steps of x, got ", steps);
  return n.batch == 0 ? 0 : std::max<int64_t>(0, steps);  // without a batch, any number
}

template <class T>
BoundKernel prepare_sequence(const KernelRequest& r, const Cell& cell) {
  if (are_empty(r.outputs)) return {};
  const int64_t time = r.inputs[1].shape[0];
  const Product product = cell.gates_product();
  const int64_t joined = cell.n.batch * cell.width(), gates = 4 * cell.n.states();
  BoundKernel kernel = BoundKernel::of([=](const Arguments& a) {
    const Extents n = cell.n;
    const int64_t steps = steps_of(a, time, n), states = n.states(), inputs = n.batch * n.inputs;
    Floats<T> floats(a);
    const float *x = floats.input(1, time * inputs), *cs_prev = floats.input(2, states),
                *h_prev = floats.input(3, states), *w = floats.input(4, cell.width() * 4 * n.cells);
    const int64_t peepholes = cell.rules.has_peepholes ? n.cells : 0;
    const float* const wc[3] = {floats.input(5, peepholes), floats.input(6, peepholes),
                                floats.input(7, peepholes)};
    const float* b = floats.input(8, 4 * n.cells);
    float* out[7];
    for (int i = 0; i < 7; ++i) {
      out[i] = floats.output(i, time * states);
      std::fill_n(out[i] + steps * states, (time - steps) * states, 0.0F);
    }
    float *xh = static_cast<float*>(a.workspace), *products = xh + joined;
    for (int64_t t = 0; t < steps; ++t) {
      StepEnd::pace(8 * gates);
      join_columns(n.batch, x + t * inputs, n.inputs, h_prev, n.cells, xh);
      product(xh, w, products, products + gates, a.stream);
      float* step[7];
      for (int i = 0; i < 7; ++i) step[i] = out[i] + t * states;
      cell.forward(products, cs_prev, wc, b, step);
      cs_prev = step[1];
      h_prev = step[6];
    }
  });
  kernel.workspace_bytes = (joined + gates) * sizeof(float) + product.workspace_bytes();
  kernel.cost_ns =
      static_cast<double>(time) * (100.0 * static_cast<double>(cell.n.states()) +
                                   0.1 * static_cast<double>(joined * 4 * cell.n.cells));
  return kernel;
}

template <class T>
BoundKernel prepare_sequence_gradient(const KernelRequest& r, const Cell& cell) {
  if (are_empty(r.outputs)) return {};
  const Extents n = cell.n;
  const int64_t time = r.inputs[1].shape[0], joined = n.batch * cell.width(),
                gates = 4 * n.states();
  // The gradients of a step's [x, h]; of the weights, over all steps at once.
  const Product joined_product({n.batch, cell.width(), 4 * n.cells, false, true}),
      weights_product({cell.width(), 4 * n.cells, time * n.batch, true, false});
  BoundKernel kernel = BoundKernel::of([=](const Arguments& a) {
    const int64_t steps = steps_of(a, time, n), states = n.states(), inputs = n.batch * n.inputs,
                  weights = cell.width() * 4 * n.cells;
    Floats<T> floats(a);
    const float *x = floats.input(1, time * inputs), *cs_first = floats.input(2, states),
                *h_first = floats.input(3, states), *w = floats.input(4, weights);
    const int64_t peepholes = cell.rules.has_peepholes ? n.cells : 0;
    const float* const wc[3] = {floats.input(5, peepholes), floats.input(6, peepholes),
                                floats.input(7, peepholes)};
    const float* values[6];
    for (int i = 0; i < 6; ++i) values[i] = floats.input(9 + i, time * states);
    const float *h = floats.input(15, time * states), *cs_grad = floats.input(16, time * states),
                *h_grad = floats.input(17, time * states);
    float *x_grad = floats.output(0, time * inputs), *cs_prev_grad = floats.output(1, states),
          *h_prev_grad = floats.output(2, states), *w_grad = floats.output(3, weights);
    float* wc_grads[3];
    for (int i = 0; i < 3; ++i) {
      wc_grads[i] = floats.output(4 + i, n.cells);
      std::fill_n(wc_grads[i], n.cells, 0.0F);
    }
    float* b_grad = floats.output(7, 4 * n.cells);
    std::fill_n(x_grad + steps * inputs, (time - steps) * inputs, 0.0F);
    std::fill_n(cs_prev_grad, states, 0.0F);
    std::fill_n(h_prev_grad, states, 0.0F);

    float *xh = static_cast<float*>(a.workspace), *gate_grads = xh + time * joined,
          *xh_grad = gate_grads + time * gates, *cs_sum = xh_grad + joined,
          *h_sum = cs_sum + states;
    void* rest = h_sum + states;
    for (int64_t t = steps; t-- > 0;) {
      const int64_t at = t * states;
      for (int64_t i = 0; i < states; ++i) {
        cs_sum[i] = cs_grad[at + i] + cs_prev_grad[i];
        h_sum[i] = h_grad[at + i] + h_prev_grad[i];
      }
      const float* step[6];
      for (int i = 0; i < 6; ++i) step[i] = values[i] + at;
      float* step_gates = gate_grads + t * gates;
      cell.backward(t == 0 ? cs_first : values[1] + at - states, wc, step, cs_sum, h_sum,
                    step_gates, cs_prev_grad, wc_grads);
      joined_product(step_gates, w, xh_grad, rest, a.stream);
      for (int64_t b = 0; b < n.batch; ++b) {
        const float* row = xh_grad + b * cell.width();
        std::copy_n(row, n.inputs, x_grad + t * inputs + b * n.inputs);
        std::copy_n(row + n.inputs, n.cells, h_prev_grad + b * n.cells);
      }
      join_columns(n.batch, x + t * inputs, n.inputs, t == 0 ? h_first : h + at - states, n.cells,
                   xh + t * joined);
    }
    // Steps that were left out do not contribute to these.
    std::fill_n(xh + steps * joined, (time - steps) * joined, 0.0F);
    std::fill_n(gate_grads + steps * gates, (time - steps) * gates, 0.0F);
    weights_product(xh, gate_grads, w_grad, rest, a.stream);
    std::fill_n(b_grad, 4 * n.cells, 0.0F);
    for (int64_t row = 0; row < steps * n.batch; ++row) {
      for (int64_t j = 0; j < 4 * n.cells; ++j) b_grad[j] += gate_grads[row * 4 * n.cells + j];
    }
  });
  kernel.workspace_bytes =
      (time * (joined + gates) + joined + 2 * n.states()) * sizeof(float) +
      std::max(joined_product.workspace_bytes(), weights_product.workspace_bytes());
  return kernel;
}

template <class T>
Cell cell_of(const KernelRequest& r, const GateOrder& order) {
  return {.n = {r.inputs[1].shape[1], r.inputs[1].shape[2], r.inputs[2].shape[1]},
          .order = order,
          .rules = rules_of(r)};
}

// {time, batch, cells}. The gradients accept peepholes of any length where these are not used.
Shape infer_sequence(ShapeContext& c, bool needs_peepholes = true) {
  c.with_rank(0, 0);
  const Shape x = c.with_rank(1, 3);
  const Shape states = infer_cell(c, 1, {x[1], x[2]}, needs_peepholes);
  return {x[0], states[0], states[1]};
}

const std::vector<std::string> sequence_inputs = {"seq_len_max: int64",
                                                  "x: T",
                                                  "cs_prev: T",
                                                  "h_prev: T",
                                                  "w: T",
                                                  "wci: T",
                                                  "wcf: T",
                                                  "wco: T",
                                                  "b: T"};

Tensor sequence(std::initializer_list<float> values) {
  return floats({static_cast<int64_t>(values.size()), 1, 1}, values);
}

// One cell with weights of 0: x and h do not matter.
const std::vector<Tensor> sequence_example = {Tensor::scalar<int64_t>(1),
                                              sequence({1, 2}),
                                              floats({1, 1}, {2}),
                                              floats({1, 1}, {0}),
                                              floats({2, 4}, {0, 0, 0, 0, 0, 0, 0, 0}),
                                              floats({0}),
                                              floats({0}),
                                              floats({0}),
                                              floats({0, 0, 0, 0})};

OpDef sequence_op(std::string name, std::string of_what, std::vector<std::string> attrs,
                  GateOrder order, AttrMap example_attrs) {
  attrs.insert(attrs.end(), {"use_peephole: bool = false", types});
  return {
      .name = std::move(name),
      .doc = "LSTMBlockCell for each of the first seq_len_max steps of x [time, batch, inputs], " +
             of_what + "; all outputs [time, batch, cells], 0 in later steps.",
      .inputs = sequence_inputs,
      .outputs = {"i: T", "cs: T", "f: T", "o: T", "ci: T", "co: T", "h: T"},
      .attrs = std::move(attrs),
      .shape =
          [](ShapeContext& c) {
            const Shape out = infer_sequence(c);
            for (int i = 0; i < 7; ++i) c.set_output(i, out);
          },
      .gradient =
          [](Gradient& g) {
            std::vector<Output> inputs;
            for (int i = 0; i < 9; ++i) inputs.push_back(g.x(i));
            for (int i = 0; i < 7; ++i) inputs.push_back(g.y(i));
            inputs.push_back(g.dy_or_zeros(1));
            inputs.push_back(g.dy_or_zeros(6));
            const bool is_first_version = g.node().op->name == "BlockLSTM";
            const std::vector<Output> dx =
                op_outputs(is_first_version ? "BlockLSTMGrad" : "BlockLSTMGradV2", inputs,
                           {{"use_peephole", g.attr<bool>("use_peephole")}});
            for (int i = 0; i < 8; ++i) g.dx(1 + i) = dx[i];
          },
      .kernels = {cpu_kernel("T", CellTypes{},
                             [order]<class T>(TypeTag<T>, const KernelRequest& r) {
                               return prepare_sequence<T>(r, cell_of<T>(r, order));
                             })},
      .examples = {{.inputs = sequence_example,
                    .attrs = std::move(example_attrs),
                    .outputs = {sequence({0.5, 0}), sequence({1, 0}), sequence({0.5, 0}),
                                sequence({0.5, 0}), sequence({0, 0}), sequence({0.76159416F, 0}),
                                sequence({0.38079708F, 0})}}},
  };
}

OpDef sequence_gradient_op(std::string name, GateOrder order) {
  std::vector<std::string> inputs = sequence_inputs;
  inputs.insert(inputs.end(), {"i: T", "cs: T", "f: T", "o: T", "ci: T", "co: T", "h: T",
                               "cs_grad: T", "h_grad: T"});
  std::vector<Tensor> example = sequence_example;
  example.insert(example.end(), {sequence({0.5, 0}), sequence({1, 0}), sequence({0.5, 0}),
                                 sequence({0.5, 0}), sequence({0.5, 0}), sequence({0.5, 0}),
                                 sequence({0, 0}), sequence({1, 9}), sequence({2, 9})});
  const float d_i = 0.21875F, d_ci = 0.65625F, d_f = 0.875F, d_o = 0.25F;
  std::vector<float> gates(4);
  gates[order.input] = d_i;
  gates[order.candidate] = d_ci;
  gates[order.forget] = d_f;
  gates[order.output] = d_o;
  const std::span<const float> bias_grad(gates);
  std::vector<float> weights(8);
  std::copy_n(gates.begin(), 4, weights.begin());  // x = 1, h_prev = 0
  return {
      .name = std::move(name),
      .doc =
          "The gradients of the op without Grad with respect to its inputs, from those of cs and "
          "h.",
      .inputs = std::move(inputs),
      .outputs = {"x_grad: T", "cs_prev_grad: T", "h_prev_grad: T", "w_grad: T", "wci_grad: T",
                  "wcf_grad: T", "wco_grad: T", "b_grad: T"},
      .attrs = {"use_peephole: bool", types},
      .shape =
          [](ShapeContext& c) {
            const Shape out = infer_sequence(c, c.attr<bool>("use_peephole"));
            for (int i = 9; i < 18; ++i) expect_shape(c, i, out);
            const Shape x = c.with_rank(1, 3);
            c.set_output(0, {x[0], out[1], x[2]});
            for (const int i : {1, 2}) c.set_output(i, {out[1], out[2]});
            c.set_output(3, {plus(x[2], out[2]), times(4, out[2])});
            for (const int i : {4, 5, 6}) c.set_output(i, {out[2]});
            c.set_output(7, {times(4, out[2])});
          },
      .kernels = {cpu_kernel("T", CellTypes{},
                             [order]<class T>(TypeTag<T>, const KernelRequest& r) {
                               return prepare_sequence_gradient<T>(r, cell_of<T>(r, order));
                             })},
      .examples = {{.inputs = std::move(example),
                    .attrs = {{"use_peephole", false}},
                    .outputs = {sequence({0, 0}), floats({1, 1}, {0.875F}), floats({1, 1}, {0}),
                                Tensor::of<float>({2, 4}, std::span<const float>(weights)),
                                floats({0}), floats({0}), floats({0}),
                                Tensor::of<float>({4}, bias_grad)}}},
      .is_not_differentiable = true,
  };
}

const Op sequence_v1_op{sequence_op("BlockLSTM", "whose weights are those of [i, ci, f, o]",
                                    {"forget_bias: float = 1.0", "cell_clip: float = 3.0"}, icfo,
                                    {{"forget_bias", 0.0}})};
const Op sequence_v2_op{sequence_op("BlockLSTMV2",
                                    "whose weights are those of [i, f, ci, o], without a bias of f",
                                    {"cell_clip: float = 0.0"}, ifco, {})};
const Op sequence_gradient_v1_op{sequence_gradient_op("BlockLSTMGrad", icfo)};
const Op sequence_gradient_v2_op{sequence_gradient_op("BlockLSTMGradV2", ifco)};

}  // namespace
}  // namespace leat::lstm
