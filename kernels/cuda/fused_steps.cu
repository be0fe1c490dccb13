#include "kernels/cuda/fused_steps.cuh"

#include <type_traits>

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
enum Code : uint8_t {
  code_load = Step::load,
  code_store = Step::store,
  code_move = Step::move,
  LEAT_FUSED_FUNCTORS(LEAT_CODE)
};
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

// `width` elements per thread, threads_per_block apart: what a step is, is found out once for all.
template <int width>
__global__ void __launch_bounds__(threads_per_block) steps_kernel(Steps steps, uint32_t n) {
  float values[most_registers][width];
  const uint32_t first = blockIdx.x * (threads_per_block * width) + threadIdx.x;
  for (int s = 0; s < steps.count; ++s) {
    const Step& step = steps.list[s];
    float* const out = values[step.out];
    void* const memory = steps.memory[step.memory];
    const float *const a = values[step.a], *const b = values[step.b], *const c = values[step.c];
    switch (step.code) {
      case code_load:
        for (int j = 0; j < width; ++j) {
          const uint32_t e = first + j * threads_per_block;
          const uint32_t at = step.period == 0 ? e : e / step.inner % step.period;
          out[j] = e < n ? read(memory, step.format, at) : 0.0F;
        }
        continue;
      case code_store:
        for (int j = 0; j < width; ++j) {
          const uint32_t e = first + j * threads_per_block;
          if (e < n) write(memory, step.format, e, out[j]);
        }
        continue;
      case code_move:
        for (int j = 0; j < width; ++j) out[j] = a[j];
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
  Code code;
};
template <class... Names>
void add(std::vector<Named>& out, Code code, Names... names) {
  (out.push_back({names, code}), ...);
}

// With fewer, one element per thread keeps more of the GPU busy.
constexpr int64_t many_elements = 512 << 10;

}  // namespace

int step_of(std::string_view op) {
  static const std::vector<Named> all = [] {
    std::vector<Named> out;
#define LEAT_NAMES(functor, ...) add(out, code_##functor, __VA_ARGS__);
    LEAT_FUSED_FUNCTORS(LEAT_NAMES)
#undef LEAT_NAMES
    return out;
  }();
  for (const Named& each : all)
    if (each.op == op) return each.code;
  return op == "Cast" ? code_move : -1;
}

void run_steps(const Steps& steps, int64_t elements, cudaStream_t stream) {
  const bool is_large = elements >= many_elements;
  const int64_t per_block = threads_per_block * (is_large ? 4 : 1);
  launch(is_large ? steps_kernel<4> : steps_kernel<1>,
         as_blocks((elements + per_block - 1) / per_block), threads_per_block, 0, stream, steps,
         static_cast<uint32_t>(elements));
}

}  // namespace leat::cuda
