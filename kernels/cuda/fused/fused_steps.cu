#include "kernels/cuda/fused/fused_steps.cuh"

#include <limits>
#include <type_traits>
#include <vector>

#include "kernels/cuda/row_reduce.cuh"
#include "kernels/math/functors.h"
#include "kernels/neural/functors.h"

// Each functor with the ops that it computes.
#define LEAT_FUSED_FUNCTORS(X)                           \
  X(Add, "Add", "AddV2", "AddN", "BiasAdd", "BiasAddV1") \
  X(Sub, "Sub")                                          \
  X(Mul, "Mul")                                          \
  X(Neg, "Neg")                                          \
  X(Square, "Square")                                    \
  X(SquaredDifference, "SquaredDifference")              \
  X(Div, "Div", "RealDiv")                               \
  X(DivNoNan, "DivNoNan")                                \
  X(MulNoNan, "MulNoNan")                                \
  X(Xdivy, "Xdivy")                                      \
  X(Xlogy, "Xlogy")                                      \
  X(Xlog1py, "Xlog1py")                                  \
  X(Abs, "Abs")                                          \
  X(Sign, "Sign")                                        \
  X(Maximum, "Maximum")                                  \
  X(Minimum, "Minimum")                                  \
  X(Clip, "ClipByValue")                                 \
  X(Floor, "Floor")                                      \
  X(Ceil, "Ceil")                                        \
  X(Round, "Rint", "Round")                              \
  X(Sqrt, "Sqrt")                                        \
  X(SqrtGrad, "SqrtGrad")                                \
  X(Rsqrt, "Rsqrt")                                      \
  X(RsqrtGrad, "RsqrtGrad")                              \
  X(Reciprocal, "Inv", "Reciprocal")                     \
  X(ReciprocalGrad, "InvGrad", "ReciprocalGrad")         \
  X(Exp, "Exp")                                          \
  X(Log, "Log")                                          \
  X(Expm1, "Expm1")                                      \
  X(Log1p, "Log1p")                                      \
  X(Erf, "Erf")                                          \
  X(Erfc, "Erfc")                                        \
  X(Pow, "Pow")                                          \
  X(Sin, "Sin")                                          \
  X(Cos, "Cos")                                          \
  X(Equal, "Equal")                                      \
  X(NotEqual, "NotEqual")                                \
  X(Less, "Less")                                        \
  X(LessEqual, "LessEqual")                              \
  X(Greater, "Greater")                                  \
  X(GreaterEqual, "GreaterEqual")                        \
  X(IsFinite, "IsFinite")                                \
  X(IsInf, "IsInf")                                      \
  X(IsNan, "IsNan")                                      \
  X(Not, "LogicalNot")                                   \
  X(And, "LogicalAnd")                                   \
  X(Or, "LogicalOr")                                     \
  X(Choose, "Select", "SelectV2")                        \
  X(Relu, "Relu")                                        \
  X(ReluGrad, "ReluGrad")                                \
  X(Relu6, "Relu6")                                      \
  X(Relu6Grad, "Relu6Grad")                              \
  X(LeakyRelu, "LeakyRelu")                              \
  X(LeakyReluGrad, "LeakyReluGrad")                      \
  X(Elu, "Elu")                                          \
  X(EluGrad, "EluGrad")                                  \
  X(Selu, "Selu")                                        \
  X(SeluGrad, "SeluGrad")                                \
  X(Softplus, "Softplus")                                \
  X(SoftplusGrad, "SoftplusGrad")                        \
  X(Softsign, "Softsign")                                \
  X(SoftsignGrad, "SoftsignGrad")                        \
  X(Sigmoid, "Sigmoid")                                  \
  X(SigmoidGrad, "SigmoidGrad")                          \
  X(Tanh, "Tanh")                                        \
  X(TanhGrad, "TanhGrad")

namespace leat::cuda {
namespace {

#define LEAT_CODE(functor, ...) code_##functor,
enum Code : uint8_t { before_functors = Step::smallest, LEAT_FUSED_FUNCTORS(LEAT_CODE) };
#undef LEAT_CODE

template <class F>
LEAT_DEVICE F functor_of(float parameter) {
  if constexpr (std::is_empty_v<F>) {
    return F{};
  } else {
    return __builtin_bit_cast(F, parameter);  // std::bit_cast is for constants in device code
  }
}

// A functor of up to three values. Bools are 0 and 1.
template <class F>
LEAT_DEVICE float applied(float parameter, float a, float b, float c) {
  const F f = functor_of<F>(parameter);
  if constexpr (std::is_invocable_v<F, float, float, float>) {
    return f(a, b, c);
  } else if constexpr (std::is_invocable_v<F, float, float>) {
    return f(a, b);
  } else {
    return f(a);
  }
}

LEAT_DEVICE float read(const void* memory, Format format, uint32_t at) {
  switch (format) {
    case Format::f16:
      return widened(static_cast<const half*>(memory)[at]);
    case Format::bf16:
      return widened(static_cast<const bfloat16*>(memory)[at]);
    case Format::boolean:
      return static_cast<const bool*>(memory)[at];
    default:
      return static_cast<const float*>(memory)[at];
  }
}

LEAT_DEVICE void write(void* memory, Format format, uint32_t at, float value) {
  switch (format) {
    case Format::f16:
      static_cast<half*>(memory)[at] = static_cast<half>(value);
      break;
    case Format::bf16:
      static_cast<bfloat16*>(memory)[at] = static_cast<bfloat16>(value);
      break;
    case Format::boolean:
      static_cast<bool*>(memory)[at] = value != 0;
      break;
    default:
      static_cast<float*>(memory)[at] = value;
  }
}

LEAT_DEVICE float rounded(Format format, float value) {
  switch (format) {
    case Format::f16:
      return widened(static_cast<half>(value));
    case Format::bf16:
      return widened(static_cast<bfloat16>(value));
    case Format::boolean:
      return value != 0;
    default:
      return value;
  }
}

// Of the elements that this thread has of its row.
template <int width, class Combine>
LEAT_DEVICE float reduced(const float* values, uint32_t columns, float identity, float* shared,
                          Combine combine) {
  float out = identity;
  for (int j = 0; j < width; ++j)
    if (threadIdx.x + j * blockDim.x < columns) out = combine(out, values[j]);
  return reduce_block(out, shared, combine);
}

template <int width>
LEAT_DEVICE float reduced(uint8_t code, const float* values, uint32_t columns, float* shared) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  switch (code) {
    case Step::product:
      return reduced<width>(values, columns, 1, shared, Mul{});
    case Step::largest:
      return reduced<width>(values, columns, -infinity, shared, Maximum{});
    case Step::smallest:
      return reduced<width>(values, columns, infinity, shared, Minimum{});
    default:
      const float sum = reduced<width>(values, columns, 0, shared, Add{});
      return code == Step::mean ? sum / static_cast<float>(columns) : sum;
  }
}

// `width` elements per thread, blockDim.x apart: what a step is, is found out once for all. A block
// has a row, or as many of all elements as its threads have.
template <int width, bool by_rows>
__global__ void __launch_bounds__(by_rows ? max_row_threads : threads_per_block)
    steps_kernel(Steps steps, uint32_t n, uint32_t columns) {
  __shared__ float shared[by_rows ? max_row_threads : 1];
  float values[most_registers][width];
  const uint32_t first = blockIdx.x * (by_rows ? columns : blockDim.x * width);
  const uint32_t end = by_rows ? columns : n - first;  // of what the block may have
  for (int s = 0; s < steps.count; ++s) {
    const Step& step = steps.list[s];
    float* const out = values[step.out];
    void* const memory = steps.memory[step.memory];
    const float *const a = values[step.a], *const b = values[step.b], *const c = values[step.c];
    switch (step.code) {
      case Step::load:
        for (int j = 0; j < width; ++j) {
          const uint32_t own = threadIdx.x + j * blockDim.x, e = first + own;
          const uint32_t at = step.period == 0 ? e : e / step.inner % step.period;
          out[j] = own < end ? read(memory, step.format, at) : 0.0F;
        }
        continue;
      case Step::store:
        for (int j = 0; j < width; ++j) {
          const uint32_t own = threadIdx.x + j * blockDim.x;
          if (own < end) write(memory, step.format, first + own, out[j]);
        }
        continue;
      case Step::store_of_row:
        if (threadIdx.x == 0) write(memory, step.format, blockIdx.x, out[0]);
        continue;
      case Step::move:
        for (int j = 0; j < width; ++j) out[j] = a[j];
        break;
      case Step::sum:
      case Step::mean:
      case Step::product:
      case Step::largest:
      case Step::smallest:
        if constexpr (by_rows) {
          const float value = reduced<width>(step.code, a, columns, shared);
          for (int j = 0; j < width; ++j) out[j] = value;
        }
        break;
#define LEAT_CASE(functor, ...)                                                                  \
  case code_##functor:                                                                           \
    for (int j = 0; j < width; ++j) out[j] = applied<functor>(step.parameter, a[j], b[j], c[j]); \
    break;
        LEAT_FUSED_FUNCTORS(LEAT_CASE)
#undef LEAT_CASE
    }
    if (step.format != Format::f32)
      for (int j = 0; j < width; ++j) out[j] = rounded(step.format, out[j]);
  }
}

struct Named {
  std::string_view op;
  uint8_t code;
};
template <class... Names>
void add(std::vector<Named>& out, uint8_t code, Names... names) {
  (out.push_back({names, code}), ...);
}

// With fewer, one element per thread keeps more of the GPU busy.
constexpr int64_t many_elements = 512 << 10;

}  // namespace

int step_of(std::string_view op) {
  static const std::vector<Named> all = [] {
    std::vector<Named> out = {{"Cast", Step::move},   {"Sum", Step::sum},
                              {"Mean", Step::mean},   {"Prod", Step::product},
                              {"Max", Step::largest}, {"Min", Step::smallest}};
#define LEAT_NAMES(functor, ...) add(out, code_##functor, __VA_ARGS__);
    LEAT_FUSED_FUNCTORS(LEAT_NAMES)
#undef LEAT_NAMES
    return out;
  }();
  for (const Named& each : all)
    if (each.op == op) return each.code;
  return -1;
}

void run_steps(const Steps& steps, int64_t rows, int64_t columns, cudaStream_t stream) {
  const auto elements = static_cast<uint32_t>(rows);
  if (columns > 0) {
    launch(steps_kernel<4, true>, as_blocks(rows), row_threads(columns), 0, stream, steps, elements,
           static_cast<uint32_t>(columns));
    return;
  }
  const bool is_large = rows >= many_elements;
  const int64_t per_block = threads_per_block * (is_large ? 4 : 1);
  launch(is_large ? steps_kernel<4, false> : steps_kernel<1, false>,
         as_blocks((rows + per_block - 1) / per_block), threads_per_block, 0, stream, steps,
         elements, uint32_t{0});
}

}  // namespace leat::cuda
