// A layer of cells (lstm_cell.h) on a CPU: shared by the ops of one step and those on sequences.
#pragma once

#include "graph/shape_inference.h"
#include "kernels/sequences/lstm_cell.h"
#include "kernels/sequences/recurrent.h"

namespace leat::lstm {

inline const char* const types = "T: {half, float}";

// Shared by all kernels. The values of a step are stored one after another.
struct Cell {
  Extents n;
  GateOrder order;
  CellRules rules;

  int64_t width() const { return n.width(); }
  Product gates_product() const { return Product({n.batch, 4 * n.cells, width(), false, false}); }

  // i, cs, f, o, ci, co, h from the products `gates` [batch, 4 cells] of [x, h] and the weights.
  void forward(const float* gates, const float* cs_prev, const float* const (&peepholes)[3],
               const float* bias, float* const (&out)[7]) const {
    const int64_t cells = n.cells;
    for (int64_t r = 0; r < n.batch; ++r) {
      const float* row = gates + r * 4 * cells;
      const auto gate = [&](int which, int64_t j) {
        return row[which * cells + j] + bias[which * cells + j];
      };
      for (int64_t j = 0; j < cells; ++j) {
        const int64_t at = r * cells + j;
        const CellStep step = CellStep::of(rules,
                                           {gate(order.input, j), gate(order.candidate, j),
                                            gate(order.forget, j), gate(order.output, j)},
                                           cs_prev[at], of_cell(peepholes, j));
        const float values[7] = {step.i, step.cs, step.f, step.o, step.ci, step.co, step.h};
        for (int k = 0; k < 7; ++k) out[k][at] = values[k];
      }
    }
  }

  // Computes the gradients of the gates [batch, 4 cells] and of the previous state; adds up those
  // of the peepholes.
  void backward(const float* cs_prev, const float* const (&peepholes)[3],
                const float* const (&values)[6], const float* cs_grad, const float* h_grad,
                float* gates_grad, float* cs_prev_grad, float* const (&peephole_grads)[3]) const {
    const int64_t cells = n.cells;
    for (int64_t r = 0; r < n.batch; ++r) {
      float* row = gates_grad + r * 4 * cells;
      for (int64_t j = 0; j < cells; ++j) {
        const int64_t at = r * cells + j;
        const CellStep step{values[0][at],
                            values[1][at],
                            values[2][at],
                            values[3][at],
                            values[4][at],
                            values[5][at],
                            0};
        const float before = cs_prev[at];  // cs_prev_grad may be the same memory as cs_grad
        const CellGradient d =
            CellGradient::of(rules, step, before, of_cell(peepholes, j), cs_grad[at], h_grad[at]);
        row[order.input * cells + j] = d.input;
        row[order.candidate * cells + j] = d.candidate;
        row[order.forget * cells + j] = d.forget;
        row[order.output * cells + j] = d.output;
        cs_prev_grad[at] = d.cs_prev;
        if (!rules.has_peepholes) continue;
        peephole_grads[0][j] += d.input * before;
        peephole_grads[1][j] += d.forget * before;
        peephole_grads[2][j] += d.output * step.cs;
      }
    }
  }

 private:
  Peepholes of_cell(const float* const (&weights)[3], int64_t j) const {
    if (!rules.has_peepholes) return {};
    return {weights[0][j], weights[1][j], weights[2][j]};
  }
};

// Checks the inputs x, cs_prev, h_prev, w, wci, wcf, wco, b, from `first` on. Returns {batch,
// cells}.
inline Shape infer_cell(ShapeContext& c, int first, const Shape& x, bool has_peepholes) {
  const Shape cs_prev = c.with_rank(first + 1, 2);
  const int64_t batch = x[0] == any ? cs_prev[0] : x[0], cells = cs_prev[1];
  for (const int i : {1, 2}) expect_shape(c, first + i, {batch, cells});
  expect_shape(c, first + 3, {plus(x[1], cells), times(4, cells)});
  for (const int i : {4, 5, 6})
    expect_shape(c, first + i, has_peepholes ? Shape{cells} : Shape{any});
  expect_shape(c, first + 7, {times(4, cells)});
  return {batch, cells};
}

}  // namespace leat::lstm
