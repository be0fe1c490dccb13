// MatMul on the GPU: cuBLASLt. `prepare` chooses descriptors and the algorithm, and the workspace
// is ours, so the call itself only enqueues.
#include <cublasLt.h>

#include <map>
#include <memory>
#include <mutex>

#include "graph/op_def.h"
#include "kernels/cuda_launch.cuh"

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

struct TypesOf {
  cudaDataType_t data;
  cudaDataType_t scale;
  cublasComputeType_t compute;
};

TypesOf types_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return {CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F};
    case DType::f16:
      return {CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    case DType::bf16:
      return {CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    default:
      return {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F};
  }
}

// cuBLASLt is column-major, where our row-major matrix is its transpose: it computes productᵀ =
// op(b)ᵀ op(a)ᵀ.
class MatMul {
 public:
  explicit MatMul(const KernelRequest& request)
      : handle_(handle_of(request.device)), types_(types_of(request.inputs[0].dtype)) {
    const Shape& a = request.inputs[0].shape;
    const Shape& b = request.inputs[1].shape;
    const Shape& product = request.outputs[0].shape;
    const cublasOperation_t op_a = request.attr<bool>("transpose_a") ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t op_b = request.attr<bool>("transpose_b") ? CUBLAS_OP_T : CUBLAS_OP_N;
    check_blas(cublasLtMatmulDescCreate(&operation_, types_.compute, types_.scale),
               "cublasLtMatmulDescCreate");
    set_operation(CUBLASLT_MATMUL_DESC_TRANSA, op_b);
    set_operation(CUBLASLT_MATMUL_DESC_TRANSB, op_a);
    first_ = layout(b);
    second_ = layout(a);
    product_ = layout(product);
    choose_algorithm();
  }
  ~MatMul() {
    (void)cublasLtMatrixLayoutDestroy(first_);
    (void)cublasLtMatrixLayoutDestroy(second_);
    (void)cublasLtMatrixLayoutDestroy(product_);
    (void)cublasLtMatmulDescDestroy(operation_);
  }
  MatMul(const MatMul&) = delete;
  MatMul& operator=(const MatMul&) = delete;

  size_t workspace() const { return workspace_; }

  void run(const Arguments& arguments) const {
    const cudaStream_t stream = cuda_stream(arguments);
    const double one_double = 1, zero_double = 0;
    const float one_float = 1, zero_float = 0;
    const bool wide = types_.scale == CUDA_R_64F;
    const void* one = wide ? static_cast<const void*>(&one_double) : &one_float;
    const void* zero = wide ? static_cast<const void*>(&zero_double) : &zero_float;
    void* product = arguments.outputs[0];
    check_blas(cublasLtMatmul(handle_, operation_, one, arguments.inputs[1], first_,
                              arguments.inputs[0], second_, zero, product, product_, product,
                              product_, &algorithm_, arguments.workspace, workspace_, stream),
               "cublasLtMatmul");
  }

 private:
  void set_operation(cublasLtMatmulDescAttributes_t attribute, cublasOperation_t operation) {
    check_blas(cublasLtMatmulDescSetAttribute(operation_, attribute, &operation, sizeof operation),
               "cublasLtMatmulDescSetAttribute");
  }

  cublasLtMatrixLayout_t layout(const Shape& rows_by_columns) const {
    cublasLtMatrixLayout_t out = nullptr;
    check_blas(cublasLtMatrixLayoutCreate(&out, types_.data, rows_by_columns[1], rows_by_columns[0],
                                          rows_by_columns[1]),
               "cublasLtMatrixLayoutCreate");
    return out;
  }

  void choose_algorithm() {
    cublasLtMatmulPreference_t preference = nullptr;
    check_blas(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
    const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
      check_blas(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
                 "cublasLtMatmulPreferenceSetAttribute");
    };
    set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{most_workspace});
    for (auto alignment :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      set(alignment, uint32_t{16});
    }
    cublasLtMatmulHeuristicResult_t best{};
    int found = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        handle_, operation_, first_, second_, product_, product_, preference, 1, &best, &found);
    (void)cublasLtMatmulPreferenceDestroy(preference);
    check_blas(status, "cublasLtMatmulAlgoGetHeuristic");
    check_internal(found > 0, "cuBLASLt has no algorithm for this product");
    algorithm_ = best.algo;
    workspace_ = best.workspaceSize;
  }

  cublasLtHandle_t handle_;
  TypesOf types_;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t first_ = nullptr, second_ = nullptr, product_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_{};
  size_t workspace_ = 0;
};

BoundKernel prepare(const KernelRequest& request) {
  const Shape& product = request.outputs[0].shape;
  if (product.elements() == 0) return {};
  if (request.inputs[0].shape.elements() == 0) {  // an empty sum
    const size_t bytes =
        static_cast<size_t>(product.elements()) * dtype_size(request.outputs[0].dtype);
    return BoundKernel::of([bytes](const Arguments& arguments) {
      cuda::check_cuda(cudaMemsetAsync(arguments.outputs[0], 0, bytes, cuda_stream(arguments)),
                       "cudaMemsetAsync");
    });
  }
  const auto matmul = std::make_shared<const MatMul>(request);
  return BoundKernel::of([matmul](const Arguments& arguments) { matmul->run(arguments); })
      .with_workspace(matmul->workspace());
}

std::vector<Kernel> kernels() {
  Kernel kernel;
  kernel.device = DeviceType::gpu;
  kernel.types = {{"T", FloatTypes::list()}};
  kernel.prepare = prepare;
  return {kernel};
}

const OpKernels matmul{"MatMul", kernels()};

}  // namespace
}  // namespace leat
