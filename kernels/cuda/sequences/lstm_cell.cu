// LSTMBlockCell, BlockLSTM and their gradients on the GPU. Of a sequence, the products of x and its
// weights are made at once; then each step is a product of h and a launch, as in lstm_layer.cu.
// All steps are enqueued, whatever seq_len_max says: it lies in the GPU's memory. A step from
// seq_len_max on writes zeros. One beyond the length of x, an error on the CPU, is none here.
#include "kernels/sequences/lstm_cell.h"

#include <algorithm>
#include <vector>

#include "kernels/cuda/sequences/layer.cuh"
#include "kernels/cuda/zeros.cuh"
#include "kernels/extents.h"

namespace leat::lstm {
namespace {

using cuda::threads_per_block;

LEAT_DEVICE int64_t thread_number() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

// ---- Floats: inputs and outputs of 16 bits are copied in and out, as on the CPU

template <class From, class To>
__global__ void __launch_bounds__(threads_per_block)
    convert_kernel(int64_t n, const From* from, To* to) {
  const int64_t i = thread_number();
  if (i < n) to[i] = static_cast<To>(cuda::widened(from[i]));
}

template <class T>
class Floats {
 public:
  static constexpr bool copies = !std::is_same_v<T, float>;

  // How many floats the copies of some tensors take.
  static int64_t elements(std::span<const TensorSpec> tensors) {
    int64_t sum = 0;
    for (const TensorSpec& tensor : tensors) {
      if (copies && tensor.dtype == dtype_of<T>) sum += tensor.shape.elements();
    }
    return sum;
  }

  Floats(const Arguments& arguments, float* memory)
      : arguments_(arguments), stream_(cuda_stream(arguments)), next_(memory) {}

  const float* input(int i, int64_t n) {
    if constexpr (!copies) return arguments_.input<float>(i);
    float* const to = take(n);
    convert(n, arguments_.input<T>(i), to);
    return to;
  }
  float* output(int i, int64_t n) {
    if constexpr (!copies) return arguments_.output<float>(i);
    outputs_.push_back({i, n, next_});
    return take(n);
  }
  // When the outputs are there.
  void copy_out() const {
    for (const auto& [i, n, from] : outputs_) convert(n, from, arguments_.output<T>(i));
  }

 private:
  struct Copy {
    int output;
    int64_t elements;
    const float* from;
  };

  float* take(int64_t n) {
    float* const out = next_;
    next_ += n;
    return out;
  }
  template <class From, class To>
  void convert(int64_t n, const From* from, To* to) const {
    if (n == 0) return;
    cuda::launch(convert_kernel<From, To>, cuda::blocks_for(n), threads_per_block, 0, stream_, n,
                 from, to);
  }

  const Arguments& arguments_;
  cudaStream_t stream_;
  float* next_;
  std::vector<Copy> outputs_;
};

// ---- What all kernels know

struct PeepholePointers {
  const float *input, *forget, *output;

  LEAT_DEVICE Peepholes of_cell(bool are_there, int64_t j) const {
    if (!are_there) return {};
    return {input[j], forget[j], output[j]};
  }
};

struct Cells {
  Extents n;
  GateOrder order;
  CellRules rules;
  int64_t time = 1;
  const int64_t* steps = nullptr;  // seq_len_max; null: all take part

  LEAT_DEVICE bool takes_part(int64_t step) const { return steps == nullptr || step < *steps; }
  int64_t gates() const { return 4 * n.states(); }
};

template <class T>
PeepholePointers peepholes_of(Floats<T>& floats, const Cells& cells, int first) {
  const int64_t n = cells.rules.has_peepholes ? cells.n.cells : 0;
  const float *const input = floats.input(first, n), *const forget = floats.input(first + 1, n),
                     *const output = floats.input(first + 2, n);
  return {input, forget, output};
}

// Of floats. Null if an extent is 0: then there is nothing to add up.
std::shared_ptr<const Product> product_of(const KernelRequest& r, ProductShape shape) {
  if (shape.m == 0 || shape.n == 0 || shape.k == 0) return nullptr;
  shape.dtype = DType::f32;
  shape.takes_tf32 = r.node.has(tensor_float_32_attr);
  return make_product(r.device, shape);
}
int64_t partials_of(const layer::ColumnSums<float>& sums) {
  return static_cast<int64_t>(sums.partial_bytes() / sizeof(float));
}
size_t workspace_of(const std::shared_ptr<const Product>& product) {
  return product == nullptr ? 0 : product->workspace_bytes();
}

// ---- Forward

struct ForwardStep {
  Cells cells;
  int64_t step;
  const float *of_x, *of_h;  // [batch, 4 cells]; of_x is null without inputs
  const float *bias, *cs_prev;
  PeepholePointers peepholes;
  float* out[7];
};

// A thread per cell of a row.
__global__ void __launch_bounds__(threads_per_block) forward_kernel(ForwardStep s) {
  const int64_t at = thread_number();
  if (at >= s.cells.n.states()) return;
  CellStep step{};
  if (s.cells.takes_part(s.step)) {
    const int64_t cells = s.cells.n.cells, j = at % cells, first = 4 * (at - j) + j;
    const auto sum = [&](int gate) {
      const int64_t i = first + gate * cells;
      return (s.of_x == nullptr ? 0 : s.of_x[i]) + s.of_h[i] + s.bias[gate * cells + j];
    };
    const GateOrder order = s.cells.order;
    step = CellStep::of(
        s.cells.rules,
        CellSums{sum(order.input), sum(order.candidate), sum(order.forget), sum(order.output)},
        s.cs_prev[at], s.peepholes.of_cell(s.cells.rules.has_peepholes, j));
  }
  const float values[7] = {step.i, step.cs, step.f, step.o, step.ci, step.co, step.h};
  for (int k = 0; k < 7; ++k) s.out[k][at] = values[k];
}

// `x` is the input x, which the other inputs follow. Without steps in the first input, there is
// one.
template <class T>
BoundKernel prepare_forward(const KernelRequest& r, const Cells& cells, int x) {
  if (are_empty(r.outputs)) return {};
  const Extents n = cells.n;
  const auto of_x = product_of(r, {.m = cells.time * n.batch, .n = 4 * n.cells, .k = n.inputs}),
             of_h = product_of(r, {.m = n.batch, .n = 4 * n.cells, .k = n.cells});
  const int64_t products_of_x = of_x == nullptr ? 0 : cells.time * cells.gates(),
                copied = Floats<T>::elements(r.inputs) + Floats<T>::elements(r.outputs),
                fixed = cuda::aligned_floats(products_of_x + cells.gates() + copied);
  return BoundKernel::of([=](const Arguments& a) {
           const cudaStream_t stream = cuda_stream(a);
           const int64_t states = n.states();
           float *const xs = static_cast<float*>(a.workspace), *const hs = xs + products_of_x;
           void* const rest = xs + fixed;
           Floats<T> floats(a, hs + cells.gates());
           const float *const input = floats.input(x, cells.time * n.batch * n.inputs),
                              *cs_prev = floats.input(x + 1, states),
                              *h_prev = floats.input(x + 2, states),
                              *const w = floats.input(x + 3, n.width() * 4 * n.cells);
           ForwardStep step{};
           step.cells = cells;
           if (x > 0) step.cells.steps = a.input<int64_t>(0);
           step.peepholes = peepholes_of(floats, cells, x + 4);
           step.bias = floats.input(x + 7, 4 * n.cells);
           step.of_h = hs;
           float* out[7];
           for (int k = 0; k < 7; ++k) out[k] = floats.output(k, cells.time * states);
           if (of_x != nullptr) of_x->run(ProductOperands{input, w, xs}, rest, *a.stream);
           for (int64_t t = 0; t < cells.time; ++t) {
             of_h->run(ProductOperands{h_prev, w + n.inputs * 4 * n.cells, hs}, rest, *a.stream);
             step.step = t;
             step.of_x = of_x == nullptr ? nullptr : xs + t * cells.gates();
             step.cs_prev = cs_prev;
             for (int k = 0; k < 7; ++k) step.out[k] = out[k] + t * states;
             cuda::launch(forward_kernel, cuda::blocks_for(states), threads_per_block, 0, stream,
                          step);
             cs_prev = step.out[1];
             h_prev = step.out[6];
           }
           floats.copy_out();
         })
      .with_workspace(static_cast<size_t>(fixed) * sizeof(float) +
                      std::max(workspace_of(of_x), workspace_of(of_h)));
}

// ---- Backward

struct BackwardStep {
  Cells cells;
  int64_t step;
  const float* values[6];  // i, cs, f, o, ci, co
  const float *cs_prev, *cs_grad, *h_grad;
  const float *cs_later, *h_later;  // their gradients by later steps; null: there are none
  PeepholePointers peepholes;
  float *gates, *cs_prev_grad;  // the latter may be cs_later
  float* of_peepholes[3];       // [batch, cells]: what this step adds; without peepholes unused
};

__global__ void __launch_bounds__(threads_per_block) backward_kernel(BackwardStep s) {
  const int64_t at = thread_number();
  if (at >= s.cells.n.states()) return;
  const int64_t cells = s.cells.n.cells, j = at % cells, first = 4 * (at - j) + j;
  const bool has_peepholes = s.cells.rules.has_peepholes;
  CellGradient d{};
  float before = 0, cs = 0;
  if (s.cells.takes_part(s.step)) {
    const CellStep step{s.values[0][at],
                        s.values[1][at],
                        s.values[2][at],
                        s.values[3][at],
                        s.values[4][at],
                        s.values[5][at],
                        0};
    before = s.cs_prev[at];
    cs = step.cs;
    d = CellGradient::of(s.cells.rules, step, before, s.peepholes.of_cell(has_peepholes, j),
                         s.cs_grad[at] + (s.cs_later == nullptr ? 0 : s.cs_later[at]),
                         s.h_grad[at] + (s.h_later == nullptr ? 0 : s.h_later[at]));
  }
  const GateOrder order = s.cells.order;
  s.gates[first + order.input * cells] = d.input;
  s.gates[first + order.candidate * cells] = d.candidate;
  s.gates[first + order.forget * cells] = d.forget;
  s.gates[first + order.output * cells] = d.output;
  s.cs_prev_grad[at] = d.cs_prev;
  if (!has_peepholes) return;
  s.of_peepholes[0][at] = d.input * before;
  s.of_peepholes[1][at] = d.forget * before;
  s.of_peepholes[2][at] = d.output * cs;
}

// Sums over all rows, for the gradients of the peepholes and of the bias.
void add_rows(int64_t rows, int64_t columns, const float* matrix, float* partials, float* sums,
              cudaStream_t stream) {
  layer::ColumnSums<float>{rows, columns}.run(matrix, partials, sums, stream);
}

template <class T>
BoundKernel prepare_cell_gradient(const KernelRequest& r, const Cells& cells) {
  if (are_empty(r.outputs)) return {};
  const Extents n = cells.n;
  if (n.states() == 0) return cuda::bind_zeros(r);
  const bool has_peepholes = cells.rules.has_peepholes;
  const int64_t of_peepholes = has_peepholes ? 3 * n.states() : 0,
                partials = partials_of({n.batch, n.cells}),
                copied = Floats<T>::elements(r.inputs) + Floats<T>::elements(r.outputs);
  return BoundKernel::of([=](const Arguments& a) {
           const cudaStream_t stream = cuda_stream(a);
           const int64_t states = n.states();
           float *const terms = static_cast<float*>(a.workspace), *const partial_sums =
                                                                      terms + of_peepholes;
           Floats<T> floats(a, partial_sums + partials);
           BackwardStep step{};
           step.cells = cells;
           step.cs_prev = floats.input(1, states);
           step.peepholes = peepholes_of(floats, cells, 4);
           for (int i = 0; i < 6; ++i) step.values[i] = floats.input(8 + i, states);
           step.cs_grad = floats.input(14, states);
           step.h_grad = floats.input(15, states);
           step.cs_prev_grad = floats.output(0, states);
           step.gates = floats.output(1, cells.gates());
           for (int i = 0; i < 3; ++i) step.of_peepholes[i] = terms + i * states;
           cuda::launch(backward_kernel, cuda::blocks_for(states), threads_per_block, 0, stream,
                        step);
           for (int i = 0; i < 3; ++i) {
             float* const sums = floats.output(2 + i, n.cells);
             if (has_peepholes) {
               add_rows(n.batch, n.cells, step.of_peepholes[i], partial_sums, sums, stream);
             } else {
               layer::clear(sums, n.cells, stream);
             }
           }
           floats.copy_out();
         })
      .with_workspace(static_cast<size_t>(of_peepholes + partials + copied) * sizeof(float));
}

// joined[t, b] = [x[t, b], h before step t], and zeros in steps that do not take part.
__global__ void __launch_bounds__(threads_per_block)
    join_kernel(Cells cells, const float* x, const float* h_first, const float* h, float* joined) {
  const int64_t at = thread_number(), width = cells.n.width();
  if (at >= cells.time * cells.n.batch * width) return;
  const int64_t row = at / width, column = at % width, t = row / cells.n.batch;
  float value = 0;
  if (cells.takes_part(t)) {
    const int64_t j = column - cells.n.inputs;
    value = j < 0    ? x[row * cells.n.inputs + column]
            : t == 0 ? h_first[row * cells.n.cells + j]
                     : h[(row - cells.n.batch) * cells.n.cells + j];
  }
  joined[at] = value;
}

template <class T>
BoundKernel prepare_sequence_gradient(const KernelRequest& r, const Cells& cells) {
  if (are_empty(r.outputs)) return {};
  const Extents n = cells.n;
  const int64_t rows = cells.time * n.batch, width = n.width();
  if (rows * n.cells == 0) return cuda::bind_zeros(r);
  const auto of_h =
      product_of(r, {.m = n.batch, .n = n.cells, .k = 4 * n.cells, .transpose_b = true});
  const auto of_x =
      product_of(r, {.m = rows, .n = n.inputs, .k = 4 * n.cells, .transpose_b = true});
  const auto of_w = product_of(r, {.m = width, .n = 4 * n.cells, .k = rows, .transpose_a = true});
  const bool has_peepholes = cells.rules.has_peepholes;
  const int64_t gates = cells.time * cells.gates(), joined = rows * width,
                terms = has_peepholes ? 3 * rows * n.cells : 0,
                partials = static_cast<int64_t>(
                    layer::ColumnSums<float>{rows, 4 * n.cells}.partial_bytes() / sizeof(float)),
                copied = Floats<T>::elements(r.inputs) + Floats<T>::elements(r.outputs),
                fixed = cuda::aligned_floats(gates + joined + terms + partials + copied);
  return BoundKernel::of([=](const Arguments& a) {
           const cudaStream_t stream = cuda_stream(a);
           const int64_t states = n.states(), all = cells.time * states;
           float *const all_gates = static_cast<float*>(a.workspace), *const xh = all_gates + gates,
                        *const of_peepholes = xh + joined,
                        *const partial_sums = of_peepholes + terms;
           void* const rest = all_gates + fixed;
           Floats<T> floats(a, partial_sums + partials);
           const float *const x = floats.input(1, rows * n.inputs),
                              *const cs_first = floats.input(2, states),
                              *const h_first = floats.input(3, states),
                              *const w = floats.input(4, width * 4 * n.cells);
           BackwardStep step{};
           step.cells = cells;
           step.cells.steps = a.input<int64_t>(0);
           step.peepholes = peepholes_of(floats, cells, 5);
           const float* values[6];
           for (int i = 0; i < 6; ++i) values[i] = floats.input(9 + i, all);
           const float *const h = floats.input(15, all), *const cs_grad = floats.input(16, all),
                              *const h_grad = floats.input(17, all);
           float *const x_grad = floats.output(0, rows * n.inputs),
                        *const cs_prev_grad = floats.output(1, states),
                        *const h_prev_grad = floats.output(2, states),
                        *const w_grad = floats.output(3, width * 4 * n.cells);
           step.cs_prev_grad = cs_prev_grad;
           for (int64_t t = cells.time; t-- > 0;) {
             const int64_t at = t * states;
             step.step = t;
             for (int i = 0; i < 6; ++i) step.values[i] = values[i] + at;
             step.cs_prev = t == 0 ? cs_first : values[1] + at - states;
             step.cs_grad = cs_grad + at;
             step.h_grad = h_grad + at;
             step.gates = all_gates + t * cells.gates();
             for (int i = 0; i < 3; ++i)
               step.of_peepholes[i] = of_peepholes + i * rows * n.cells + at;
             cuda::launch(backward_kernel, cuda::blocks_for(states), threads_per_block, 0, stream,
                          step);
             of_h->run(ProductOperands{step.gates, w + n.inputs * 4 * n.cells, h_prev_grad}, rest,
                       *a.stream);
             step.cs_later = cs_prev_grad;
             step.h_later = h_prev_grad;
           }
           if (of_x != nullptr) of_x->run(ProductOperands{all_gates, w, x_grad}, rest, *a.stream);
           cuda::launch(join_kernel, cuda::blocks_for(joined), threads_per_block, 0, stream,
                        step.cells, x, h_first, h, xh);
           of_w->run(ProductOperands{xh, all_gates, w_grad}, rest, *a.stream);
           for (int i = 0; i < 3; ++i) {
             float* const sums = floats.output(4 + i, n.cells);
             if (has_peepholes) {
               add_rows(rows, n.cells, of_peepholes + i * rows * n.cells, partial_sums, sums,
                        stream);
             } else {
               layer::clear(sums, n.cells, stream);
             }
           }
           add_rows(rows, 4 * n.cells, all_gates, partial_sums, floats.output(7, 4 * n.cells),
                    stream);
           floats.copy_out();
         })
      .with_workspace(static_cast<size_t>(fixed) * sizeof(float) +
                      std::max({workspace_of(of_h), workspace_of(of_x), workspace_of(of_w)}));
}

// ---- Kernels

Cells one_step(const KernelRequest& r) {
  const Shape &x = r.inputs[0].shape, &state = r.inputs[1].shape;
  return {.n = {x[0], x[1], state[1]}, .order = icfo, .rules = rules_of(r)};
}
Cells sequence(const KernelRequest& r, const GateOrder& order) {
  const Shape &x = r.inputs[1].shape, &state = r.inputs[2].shape;
  return {.n = {x[1], x[2], state[1]}, .order = order, .rules = rules_of(r), .time = x[0]};
}

template <class F>
std::vector<Kernel> kernels(F prepare) {
  return {{.device = DeviceType::gpu,
           .types = {{"T", CellTypes::list()}},
           .prepare = [prepare](const KernelRequest& r) {
             return visit_type(CellTypes{}, r.attr<DType>("T"),
                               [&](auto tag) { return prepare(tag, r); });
           }}};
}

std::vector<Kernel> sequence_kernels(const GateOrder& order) {
  return kernels([order]<class T>(TypeTag<T>, const KernelRequest& r) {
    return prepare_forward<T>(r, sequence(r, order), 1);
  });
}
std::vector<Kernel> sequence_gradient_kernels(const GateOrder& order) {
  return kernels([order]<class T>(TypeTag<T>, const KernelRequest& r) {
    return prepare_sequence_gradient<T>(r, sequence(r, order));
  });
}

const OpKernels cell{"LSTMBlockCell", kernels([]<class T>(TypeTag<T>, const KernelRequest& r) {
                       return prepare_forward<T>(r, one_step(r), 0);
                     })};
const OpKernels cell_gradient{"LSTMBlockCellGrad",
                              kernels([]<class T>(TypeTag<T>, const KernelRequest& r) {
                                return prepare_cell_gradient<T>(r, one_step(r));
                              })};
const OpKernels sequence_v1{"BlockLSTM", sequence_kernels(icfo)};
const OpKernels sequence_v2{"BlockLSTMV2", sequence_kernels(ifco)};
const OpKernels sequence_gradient_v1{"BlockLSTMGrad", sequence_gradient_kernels(icfo)};
const OpKernels sequence_gradient_v2{"BlockLSTMGradV2", sequence_gradient_kernels(ifco)};

}  // namespace
}  // namespace leat::lstm
