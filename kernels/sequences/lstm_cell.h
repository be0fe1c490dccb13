// The arithmetic of a cell of long short-term memory (Hochreiter and Schmidhuber, 1997), with
// optional peepholes (Gers and Schmidhuber, 2000), shared by the kernels for CPUs and GPUs of
// LSTMBlockCell and BlockLSTM. All of it is in float.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/neural/functors.h"
#include "kernels/types.h"

namespace leat::lstm {

using CellTypes = Types<float, half>;

// The columns of the four gates in the weights.
struct GateOrder {
  int input, candidate, forget, output;
};
inline constexpr GateOrder icfo{0, 1, 2, 3}, ifco{0, 2, 1, 3};

struct Extents {
  int64_t batch, inputs, cells;
  constexpr int64_t states() const { return batch * cells; }
  constexpr int64_t width() const { return inputs + cells; }
};

// What one cell reads: the sums of its gates (products and bias), its state before, and its weights
// of the peepholes.
struct CellSums {
  float input, candidate, forget, output;
};
struct Peepholes {
  float input, forget, output;
};

// All cells of a kernel follow these.
struct CellRules {
  bool has_peepholes = false;
  float forget_bias = 0, clip = 0;
};

inline CellRules rules_of(const KernelRequest& r) {
  CellRules out{.has_peepholes = r.attr<bool>("use_peephole")};
  if (r.node.has("forget_bias")) out.forget_bias = r.attr<float>("forget_bias");
  if (r.node.has("cell_clip")) out.clip = r.attr<float>("cell_clip");
  return out;
}

struct CellStep {
  float i, cs, f, o, ci, co, h;  // in the order of the ops' outputs

  LEAT_DEVICE static CellStep of(const CellRules& rules, const CellSums& sums, float cs_prev,
                                 const Peepholes& w) {
    const bool peeps = rules.has_peepholes;
    const float i = Sigmoid{}(sums.input + (peeps ? w.input * cs_prev : 0));
    const float f = Sigmoid{}(sums.forget + rules.forget_bias + (peeps ? w.forget * cs_prev : 0));
    const float ci = std::tanh(sums.candidate);
    float cs = ci * i + cs_prev * f;
    if (rules.clip > 0) cs = cs < -rules.clip ? -rules.clip : cs > rules.clip ? rules.clip : cs;
    const float o = Sigmoid{}(sums.output + (peeps ? w.output * cs : 0));
    const float co = std::tanh(cs);
    return {i, cs, f, o, ci, co, o * co};
  }
};

// The gradients of the sums and of the state before, from those of cs and h.
struct CellGradient {
  float input, candidate, forget, output, cs_prev;

  LEAT_DEVICE static CellGradient of(const CellRules& rules, const CellStep& step, float cs_prev,
                                     const Peepholes& w, float cs_grad, float h_grad) {
    const auto [i, cs, f, o, ci, co, h] = step;
    const float d_o = o * (1 - o) * h_grad * co;
    float d_cs = (1 - co * co) * h_grad * o + cs_grad;
    if (rules.has_peepholes) d_cs += d_o * w.output;
    const float d_ci = (1 - ci * ci) * d_cs * i, d_f = f * (1 - f) * d_cs * cs_prev,
                d_i = i * (1 - i) * d_cs * ci;
    float d_before = d_cs * f;
    if (rules.has_peepholes) d_before += d_i * w.input + d_f * w.forget;
    return {d_i, d_ci, d_f, d_o, d_before};
  }
};

}  // namespace leat::lstm
