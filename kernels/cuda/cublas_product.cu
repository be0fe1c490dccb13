// leat: cuda-library
// Products by cuBLASLt. Descriptors and algorithms are chosen once, and the workspace is the
// caller's, so a product only enqueues.
#include <cublasLt.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>

#include "kernels/cuda/device/cuda_device.cuh"
#include "kernels/cuda/product.h"

namespace leat {
namespace {

void check_blas(cublasStatus_t status, const char* what) {
  check_internal(status == CUBLAS_STATUS_SUCCESS, "cuBLASLt: ", what,
                 " failed: ", cublasLtGetStatusString(status));
}

// One handle per GPU, for the life of the process.
cublasLtHandle_t handle_of(Device& device) {
  static std::mutex mutex;
  static std::map<int, cublasLtHandle_t> handles;
  const int ordinal = cuda_ordinal(device);
  // Also needed for the next use of the handle, the choice of an algorithm.
  cuda::check_cuda(cudaSetDevice(ordinal), "cudaSetDevice");
  const std::lock_guard lock(mutex);
  cublasLtHandle_t& handle = handles[ordinal];
  if (handle == nullptr) {
    check_blas(cublasLtCreate(&handle), "cublasLtCreate");
  }
  return handle;
}

// The size that NVIDIA recommends for Hopper.
constexpr size_t most_workspace = size_t{32} << 20;
// What the faster algorithms require of all operands, and what our own blocks have.
constexpr uintptr_t usual_alignment = 16;

struct TypesOf {
  cudaDataType_t data;
  cudaDataType_t scale;
  cublasComputeType_t compute;
};

TypesOf types_of(const ProductShape& shape) {
  switch (shape.dtype) {
    case DType::f64:
      return {CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F};
    case DType::f16:
      return {CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    case DType::bf16:
      return {CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    default:
      return {CUDA_R_32F, CUDA_R_32F,
              shape.takes_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F};
  }
}

// How one call is described to cuBLASLt. It is column-major, where our row-major matrix is its
// transpose: it computes outᵀ = op(b)ᵀ op(a)ᵀ.
class Description {
 public:
  explicit Description(const ProductShape& shape)
      : types_(types_of(shape)), batch_(static_cast<int32_t>(shape.batch)) {
    check(shape.batch <= INT32_MAX, "cuBLASLt: ", shape.batch, " products in one batch");
    check_blas(cublasLtMatmulDescCreate(&operation_, types_.compute, types_.scale),
               "cublasLtMatmulDescCreate");
    set(CUBLASLT_MATMUL_DESC_TRANSA, shape.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, shape.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    if (shape.has_bias) set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    first_ = layout(shape.transpose_b ? shape.n : shape.k, shape.transpose_b ? shape.k : shape.n,
                    shape.stride_b);
    second_ = layout(shape.transpose_a ? shape.k : shape.m, shape.transpose_a ? shape.m : shape.k,
                     shape.stride_a);
    product_ = layout(shape.m, shape.n, shape.stride_out);
  }
  ~Description() {
    (void)cublasLtMatrixLayoutDestroy(first_);
    (void)cublasLtMatrixLayoutDestroy(second_);
    (void)cublasLtMatrixLayoutDestroy(product_);
    (void)cublasLtMatmulDescDestroy(operation_);
  }
  Description(const Description&) = delete;

  std::optional<cublasLtMatmulHeuristicResult_t> algorithm(cublasLtHandle_t handle,
                                                           uint32_t alignment) const {
    cublasLtMatmulPreference_t preference = nullptr;
    check_blas(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
      check_blas(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
                 "cublasLtMatmulPreferenceSetAttribute");
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{most_workspace});
    for (auto operand :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      prefer(operand, alignment);
    }
    cublasLtMatmulHeuristicResult_t best{};
    int found = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        handle, operation_, first_, second_, product_, product_, preference, 1, &best, &found);
    (void)cublasLtMatmulPreferenceDestroy(preference);
    if (status != CUBLAS_STATUS_NOT_SUPPORTED) check_blas(status, "cublasLtMatmulAlgoGetHeuristic");
    if (found == 0) return {};
    return best;
  }

  void run(cublasLtHandle_t handle, const cublasLtMatmulHeuristicResult_t& algorithm,
           const ProductOperands& operands, void* workspace, cudaStream_t stream) const {
    const double one_double = 1, zero_double = 0;
    const float one_float = 1, zero_float = 0;
    const bool wide = types_.scale == CUDA_R_64F;
    const void* one = wide ? static_cast<const void*>(&one_double) : &one_float;
    const void* zero = wide ? static_cast<const void*>(&zero_double) : &zero_float;
    std::unique_lock<std::mutex> lock;
    if (operands.bias != nullptr) {  // it is part of the description
      lock = std::unique_lock(mutex_);
      set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias);
    }
    check_blas(cublasLtMatmul(handle, operation_, one, operands.b, first_, operands.a, second_,
                              zero, operands.out, product_, operands.out, product_, &algorithm.algo,
                              workspace, algorithm.workspaceSize, stream),
               "cublasLtMatmul");
  }

 private:
  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, T value) const {
    check_blas(cublasLtMatmulDescSetAttribute(operation_, attribute, &value, sizeof value),
               "cublasLtMatmulDescSetAttribute");
  }

  cublasLtMatrixLayout_t layout(int64_t rows, int64_t columns, int64_t stride) const {
    cublasLtMatrixLayout_t out = nullptr;
    check_blas(cublasLtMatrixLayoutCreate(&out, types_.data, columns, rows, columns),
               "cublasLtMatrixLayoutCreate");
    check_blas(cublasLtMatrixLayoutSetAttribute(out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch_,
                                                sizeof batch_),
               "cublasLtMatrixLayoutSetAttribute");
    check_blas(cublasLtMatrixLayoutSetAttribute(out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                &stride, sizeof stride),
               "cublasLtMatrixLayoutSetAttribute");
    return out;
  }

  mutable std::mutex mutex_;
  TypesOf types_;
  int32_t batch_;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t first_ = nullptr, second_ = nullptr, product_ = nullptr;
};

class CublasProduct : public Product {
 public:
  CublasProduct(Device& device, const ProductShape& shape)
      : handle_(handle_of(device)), description_(shape) {
    const auto element = static_cast<uint32_t>(dtype_size(shape.dtype));
    aligned_ = description_.algorithm(handle_, usual_alignment);
    any_ = description_.algorithm(handle_, element);
    if (!aligned_) aligned_ = any_;
    check_internal(aligned_.has_value() || shape.has_bias,
                   "cuBLASLt has no algorithm for a product of ", shape.m, " x ", shape.k, " and ",
                   shape.k, " x ", shape.n, " in ", shape.dtype);
    // Strides of a batch may lead from an aligned matrix to one that is not.
    for (const int64_t stride : {shape.stride_a, shape.stride_b, shape.stride_out})
      strides_are_aligned_ = strides_are_aligned_ && stride * element % usual_alignment == 0;
  }

  bool has_algorithm() const { return aligned_.has_value() && any_.has_value(); }

  size_t workspace_bytes() const override {
    return std::max(aligned_->workspaceSize, any_ ? any_->workspaceSize : 0);
  }

  void run(const ProductOperands& operands, void* workspace, Stream& stream) const override {
    bool is_aligned = strides_are_aligned_;
    for (const void* pointer : {operands.a, operands.b, static_cast<const void*>(operands.out)})
      is_aligned = is_aligned && reinterpret_cast<uintptr_t>(pointer) % usual_alignment == 0;
    check_internal(is_aligned || any_.has_value(),
                   "cuBLASLt has no algorithm for matrices that do not start on a multiple of ",
                   usual_alignment, " bytes");
    description_.run(handle_, is_aligned ? *aligned_ : *any_, operands, workspace,
                     cuda_stream(stream));
  }

 private:
  cublasLtHandle_t handle_;
  bool strides_are_aligned_ = true;
  const Description description_;
  std::optional<cublasLtMatmulHeuristicResult_t> aligned_, any_;
};

}  // namespace

std::unique_ptr<Product> make_product(Device& device, const ProductShape& shape) {
  auto product = std::make_unique<CublasProduct>(device, shape);
  if (shape.has_bias && !product->has_algorithm()) return nullptr;
  return product;
}

}  // namespace leat
