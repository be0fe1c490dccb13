// Products of matrices where there is no cuBLASLt: plain loops, in stream order. The model for what
// stands in for other libraries.
#include <algorithm>
#include <vector>

#include "core/visit_dtype.h"
#include "kernels/cuda/product.h"
#include "kernels/types.h"
#include "tests/support/cuda/include/cuda_runtime.h"
#include "tests/support/cuda/tensor_float.h"

namespace leat {
namespace {

template <class T>
void multiply(const ProductShape& shape, const ProductOperands& operands) {
  std::vector<double> row(static_cast<size_t>(shape.n));
  for (int64_t batch = 0; batch < shape.batch; ++batch) {
    const T* a = static_cast<const T*>(operands.a) + batch * shape.stride_a;
    const T* b = static_cast<const T*>(operands.b) + batch * shape.stride_b;
    T* out = static_cast<T*>(operands.out) + batch * shape.stride_out;
    for (int64_t i = 0; i < shape.m; ++i) {
      std::fill(row.begin(), row.end(), 0.0);
      for (int64_t k = 0; k < shape.k; ++k) {
        const double x =
            as_operand(a[shape.transpose_a ? k * shape.m + i : i * shape.k + k], shape.takes_tf32);
        for (int64_t j = 0; j < shape.n; ++j) {
          row[j] += x * as_operand(b[shape.transpose_b ? j * shape.k + k : k * shape.n + j],
                                   shape.takes_tf32);
        }
      }
      for (int64_t j = 0; j < shape.n; ++j) {
        auto sum = static_cast<ComputeType<T>>(row[j]);
        if (shape.has_bias)
          sum += static_cast<ComputeType<T>>(static_cast<const T*>(operands.bias)[j]);
        out[i * shape.n + j] = static_cast<T>(sum);
      }
    }
  }
}

class HostProduct : public Product {
 public:
  explicit HostProduct(const ProductShape& shape) : shape_(shape) {}

  // Unused, but there, so that callers are seen to provide it.
  size_t workspace_bytes() const override { return 64; }

  void run(const ProductOperands& operands, void* workspace, Stream& stream) const override {
    check_internal(workspace != nullptr && reinterpret_cast<uintptr_t>(workspace) % 256 == 0,
                   "a product was given a workspace at ", workspace);
    const cudaError_t error = cuda_on_host::enqueue(
        static_cast<cudaStream_t>(stream.native()), [shape = shape_, operands, workspace] {
          std::fill_n(static_cast<unsigned char*>(workspace), 64, 0xff);
          (void)visit_type(FloatTypes{}, shape.dtype, [&](auto tag) {
            multiply<typename decltype(tag)::type>(shape, operands);
            return 0;
          });
        });
    check_internal(error == cudaSuccess, "a product: ", cudaGetErrorString(error));
  }

 private:
  const ProductShape shape_;
};

}  // namespace

std::unique_ptr<Product> make_product(Device&, const ProductShape& shape) {
  check_internal(shape.m > 0 && shape.n > 0 && shape.k > 0 && shape.batch > 0,
                 "a product without elements: ", shape.m, " x ", shape.k, " x ", shape.n);
  return std::make_unique<HostProduct>(shape);
}

}  // namespace leat
