// Products of matrices on a GPU, whoever computes them: cuBLASLt in the plug-in
// (cublas_product.cu), loops where tests run the plug-in on the host
// (tests/support/cuda/host_product.cc). Kernels see only this.
#pragma once

#include <cstdint>
#include <memory>

#include "core/device.h"
#include "core/dtype.h"

namespace leat {

// out[m, n] = op(a)[m, k] op(b)[k, n], all row-major and dense; op transposes if asked to.
struct ProductShape {
  DType dtype = DType::f32;     // of a, b and out: f32, f64, f16 or bf16. 16 bits add up as f32
  int64_t m = 0, n = 0, k = 0;  // at least 1
  bool transpose_a = false, transpose_b = false;
  bool takes_tf32 = false;  // of f32: operands may be rounded to TensorFloat-32
  // Elements from one product of a batch to the next; 0: all have the same operand.
  int64_t batch = 1;
  int64_t stride_a = 0, stride_b = 0, stride_out = 0;
  bool has_bias = false;  // a vector of n elements is added to each row

  bool operator==(const ProductShape&) const = default;
};

struct ProductOperands {
  const void* a;
  const void* b;
  void* out;
  const void* bias = nullptr;
};

// All that is chosen once for a shape. Thread-safe.
class Product {
 public:
  virtual ~Product() = default;
  virtual size_t workspace_bytes() const = 0;
  // Only enqueues. Operands may lie at any multiple of their element's size, the workspace at one
  // of 256 bytes.
  virtual void run(const ProductOperands& operands, void* workspace, Stream& stream) const = 0;
};

// Null if it has a bias, and the library has no algorithm that adds one.
std::unique_ptr<Product> make_product(Device& device, const ProductShape& shape);

}  // namespace leat
