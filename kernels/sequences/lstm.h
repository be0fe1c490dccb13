// A cell of long short-term memory (Hochreiter and Schmidhuber, 1997), with optional peepholes
// (Gers and Schmidhuber, 2000): shared by its ops and those on sequences.
#pragma once

#include "graph/shape_inference.h"
#include "kernels/sequences/recurrent.h"

namespace leat::lstm {

using CellTypes = Types<float, half>;
inline const char* const types = "T: {half, float}";

// The columns of the four gates in the weights.
struct GateOrder {
  int input, candidate, forget, output;
};
inline constexpr GateOrder icfo{0, 1, 2, 3}, ifco{0, 2, 1, 3};

struct Extents {
  int64_t batch, inputs, cells;
  int64_t states() const { return batch * cells; }
};

// Shared by all kernels. The values of a step are stored one after another.
struct Cell {
  Extents n;
  GateOrder order;
  bool has_peepholes;
  float forget_bias = 0, clip = 0;

  int64_t width() const { return n.inputs + n.cells; }
  Product gates_product() const { return Product({n.batch, 4 * n.cells, width(), false, false}); }

  // i, cs, f, o, ci, co, h from the products `gates` [batch, 4 cells] of [x, h] and the weights.
  void forward(const float* gates, const float* cs_prev, const float* const (&peepholes)[3],
               const float* bias, float* const (&out)[7]) const {
    const int64_t cells = n.cells;
    const auto [wci, wcf, wco] = peepholes;
    for (int64_t r = 0; r < n.batch; ++r) {
      const float* row = gates + r * 4 * cells;
      const auto gate = [&](int which, int64_t j) {
        return row[which * cells + j] + bias[which * cells + j];
      };
      for (int64_t j = 0; j < cells; ++j) {
        const int64_t at = r * cells + j;
        const float before = cs_prev[at];
        const float i = logistic(gate(order.input, j) + (has_peepholes ? wci[j] * before : 0));
        const float f =
            logistic(gate(order.forget, j) + forget_bias + (has_peepholes ? wcf[j] * before : 0));
        const float ci = std::tanh(gate(order.candidate, j));
        float cs = ci * i + before * f;
        if (clip > 0) cs = cs < -clip ? -clip : cs > clip ? clip : cs;
        const float o = logistic(gate(order.output, j) + (has_peepholes ? wco[j] * cs : 0));
        const float co = std::tanh(cs);
        const float values[7] = {i, cs, f, o, ci, co, o * co};
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
    const auto [wci, wcf, wco] = peepholes;
    for (int64_t r = 0; r < n.batch; ++r) {
      float* row = gates_grad + r * 4 * cells;
      for (int64_t j = 0; j < cells; ++j) {
        const int64_t at = r * cells + j;
        const float i = values[0][at], cs = values[1][at], f = values[2][at], o = values[3][at],
                    ci = values[4][at], co = values[5][at];
        const float d_o = o * (1 - o) * h_grad[at] * co;
        float d_cs = (1 - co * co) * h_grad[at] * o + cs_grad[at];
        if (has_peepholes) d_cs += d_o * wco[j];
        const float d_ci = (1 - ci * ci) * d_cs * i, d_f = f * (1 - f) * d_cs * cs_prev[at],
                    d_i = i * (1 - i) * d_cs * ci;
        row[order.input * cells + j] = d_i;
        row[order.candidate * cells + j] = d_ci;
        row[order.forget * cells + j] = d_f;
        row[order.output * cells + j] = d_o;
        const float before = cs_prev[at];  // cs_prev_grad may be the same memory as cs_grad
        cs_prev_grad[at] = d_cs * f;
        if (!has_peepholes) continue;
        cs_prev_grad[at] += d_i * wci[j] + d_f * wcf[j];
        peephole_grads[0][j] += d_i * before;
        peephole_grads[1][j] += d_f * before;
        peephole_grads[2][j] += d_o * cs;
      }
    }
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
