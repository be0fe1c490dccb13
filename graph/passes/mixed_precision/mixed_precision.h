// Which number format a step computes in.
#pragma once

#include <cstdint>
#include <string_view>

namespace leat {

// A step may compute products and convolutions, and what stands between them, in a format of 16
// bits (Micikevicius et al.: Mixed Precision Training, arXiv:1710.03740). Variables, their updates,
// statistics, softmax and losses stay float32. Types of fetched values do not change.
//
// bfloat16 has the range of float32 and 8 bits of precision. float16 has 11 bits, but its smallest
// number is 6e-8: small gradients become 0, so the loss needs a scale
// (frontends/cpp/optimizers/loss_scale.h).
//
// TensorFloat-32 is no format of tensors: products and convolutions of float32 on GPUs round their
// operands to 11 bits of precision and add up in float32, where the GPU is faster so. The range is
// that of float32, and everything else stays as it is.
enum class MixedPrecision : uint8_t {
  nothing,  // the dtypes of the graph
  bfloat16,
  float16,
  float16_on_gpus,  // CPUs keep float32
  tensor_float_32,
};

// "none", "bf16", "f16", "gpu_f16" or "tf32". INVALID_ARGUMENT, which lists these, for another
// text.
MixedPrecision mixed_precision_from_text(std::string_view text);
// The attribute of nodes whose kernel may round its operands to TensorFloat-32: true.
inline constexpr std::string_view tensor_float_32_attr = "_tf32";

}  // namespace leat
