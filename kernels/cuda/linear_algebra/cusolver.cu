// leat: cuda-library
// Solvers by cuSOLVER, and triangles by cuBLAS. Both are opened at run time: the plug-in must load
// where they are not installed. One handle per GPU serves all threads, one after the other, because
// a handle has one stream. cuSOLVER does not promise that its work may be recorded as a graph.
#include <cublas_v2.h>
#include <cusolverDn.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <vector>

#include "core/error.h"
#include "core/visit_dtype.h"
#include "kernels/cuda/device/cuda_device.cuh"
#include "kernels/cuda/device/refuse_recording.h"
#include "kernels/cuda/device/runtime_library.h"
#include "kernels/cuda/linear_algebra/solver.h"
#include "kernels/cuda/workspace.cuh"
#include "kernels/cuda_launch.cuh"

namespace leat {
namespace {

// ---- The libraries

// Their functions for one type, of the types that the headers give them.
template <class T>
struct Routines {
  decltype(&cublasStrsm_v2_64) trsm = nullptr;
  decltype(&cublasStrsmBatched) trsm_batched = nullptr;
  decltype(&cublasSgetrfBatched) getrf_batched = nullptr;
  decltype(&cublasSgetrsBatched) getrs_batched = nullptr;
  decltype(&cusolverDnSpotrfBatched) potrf_batched = nullptr;
  decltype(&cusolverDnSorgqr_bufferSize) orgqr_buffer = nullptr;
  decltype(&cusolverDnSorgqr) orgqr = nullptr;
};
template <>
struct Routines<double> {
  decltype(&cublasDtrsm_v2_64) trsm = nullptr;
  decltype(&cublasDtrsmBatched) trsm_batched = nullptr;
  decltype(&cublasDgetrfBatched) getrf_batched = nullptr;
  decltype(&cublasDgetrsBatched) getrs_batched = nullptr;
  decltype(&cusolverDnDpotrfBatched) potrf_batched = nullptr;
  decltype(&cusolverDnDorgqr_bufferSize) orgqr_buffer = nullptr;
  decltype(&cusolverDnDorgqr) orgqr = nullptr;
};

struct Functions {
  decltype(&cublasCreate_v2) create_blas = nullptr;
  decltype(&cublasSetStream_v2) set_blas_stream = nullptr;
  decltype(&cublasSetWorkspace_v2) set_blas_workspace = nullptr;
  decltype(&cusolverDnCreate) create_solver = nullptr;
  decltype(&cusolverDnSetStream) set_solver_stream = nullptr;
  decltype(&cusolverDnCreateParams) create_params = nullptr;
  decltype(&cusolverDnXpotrf_bufferSize) potrf_buffer = nullptr;
  decltype(&cusolverDnXpotrf) potrf = nullptr;
  decltype(&cusolverDnXgetrf_bufferSize) getrf_buffer = nullptr;
  decltype(&cusolverDnXgetrf) getrf = nullptr;
  decltype(&cusolverDnXgetrs) getrs = nullptr;
  decltype(&cusolverDnXgeqrf_bufferSize) geqrf_buffer = nullptr;
  decltype(&cusolverDnXgeqrf) geqrf = nullptr;
  Routines<float> of_float;
  Routines<double> of_double;

  template <class T>
  const Routines<T>& of() const {
    if constexpr (std::is_same_v<T, double>) {
      return of_double;
    } else {
      return of_float;
    }
  }
};

template <class T>
bool find_routines(const cuda::RuntimeLibrary& blas, const cuda::RuntimeLibrary& solver,
                   const std::string& letter, Routines<T>& routines) {
  return blas.find("cublas" + letter + "trsm_v2_64", routines.trsm) &&
         blas.find("cublas" + letter + "trsmBatched", routines.trsm_batched) &&
         blas.find("cublas" + letter + "getrfBatched", routines.getrf_batched) &&
         blas.find("cublas" + letter + "getrsBatched", routines.getrs_batched) &&
         solver.find("cusolverDn" + letter + "potrfBatched", routines.potrf_batched) &&
         solver.find("cusolverDn" + letter + "orgqr_bufferSize", routines.orgqr_buffer) &&
         solver.find("cusolverDn" + letter + "orgqr", routines.orgqr);
}

// False if the libraries lack one of them.
bool find_functions(Functions& out) {
  const cuda::RuntimeLibrary blas("libcublas.so.13"), solver("libcusolver.so.12");
  return blas.find("cublasCreate_v2", out.create_blas) &&
         blas.find("cublasSetStream_v2", out.set_blas_stream) &&
         blas.find("cublasSetWorkspace_v2", out.set_blas_workspace) &&
         solver.find("cusolverDnCreate", out.create_solver) &&
         solver.find("cusolverDnSetStream", out.set_solver_stream) &&
         solver.find("cusolverDnCreateParams", out.create_params) &&
         solver.find("cusolverDnXpotrf_bufferSize", out.potrf_buffer) &&
         solver.find("cusolverDnXpotrf", out.potrf) &&
         solver.find("cusolverDnXgetrf_bufferSize", out.getrf_buffer) &&
         solver.find("cusolverDnXgetrf", out.getrf) && solver.find("cusolverDnXgetrs", out.getrs) &&
         solver.find("cusolverDnXgeqrf_bufferSize", out.geqrf_buffer) &&
         solver.find("cusolverDnXgeqrf", out.geqrf) &&
         find_routines(blas, solver, "S", out.of_float) &&
         find_routines(blas, solver, "D", out.of_double);
}

// Null if there are none.
const Functions* found_functions() {
  static const auto found = []() -> std::unique_ptr<Functions> {
    auto out = std::make_unique<Functions>();
    return find_functions(*out) ? std::move(out) : nullptr;
  }();
  return found.get();
}
const Functions& functions() {
  check_internal(found_functions() != nullptr, "cuSOLVER or cuBLAS is not there");
  return *found_functions();
}

void check_solver(cusolverStatus_t status, const char* what) {
  check_internal(status == CUSOLVER_STATUS_SUCCESS, "cuSOLVER: ", what, " failed with status ",
                 static_cast<int>(status));
}
void check_blas(cublasStatus_t status, const char* what) {
  check_internal(status == CUBLAS_STATUS_SUCCESS, "cuBLAS: ", what, " failed with status ",
                 static_cast<int>(status));
}

// For the life of the process.
struct Handles {
  std::mutex mutex;  // of their use
  cublasHandle_t blas = nullptr;
  cusolverDnHandle_t solver = nullptr;
  cusolverDnParams_t params = nullptr;
};

Handles& handles_of(Device& device) {
  static std::mutex mutex;
  static std::map<int, Handles> all;  // by ordinal
  const int ordinal = cuda_ordinal(device);
  cuda::check_cuda(cudaSetDevice(ordinal), "cudaSetDevice");
  const std::lock_guard lock(mutex);
  Handles& handles = all[ordinal];
  if (handles.blas == nullptr) check_blas(functions().create_blas(&handles.blas), "cublasCreate");
  if (handles.solver == nullptr)
    check_solver(functions().create_solver(&handles.solver), "cusolverDnCreate");
  if (handles.params == nullptr)
    check_solver(functions().create_params(&handles.params), "cusolverDnCreateParams");
  return handles;
}

// ---- Batches

// Up to this extent one call for the whole batch is faster than a call for each matrix.
constexpr int64_t most_batched = 256;
// The size that NVIDIA recommends for Hopper.
constexpr size_t blas_workspace = size_t{32} << 20;

template <class T>
__global__ void __launch_bounds__(cuda::threads_per_block)
    pointers_kernel(int64_t count, T* first, int64_t step, T** pointers) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) pointers[i] = first + i * step;
}

__global__ void __launch_bounds__(cuda::threads_per_block)
    widen_kernel(int64_t count, const int* from, int64_t* to) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) to[i] = from[i];
}

int as_int(int64_t extent) {
  check(extent <= INT32_MAX, "cuSOLVER: an extent of ", extent, " is too large");
  return static_cast<int>(extent);
}

template <class T>
class CudaSolver : public Solver {
 public:
  CudaSolver(Device& device, const SolverShape& shape)
      : shape_(shape), handles_(handles_of(device)) {
    const bool has_pointers = is_batched();
    const auto count = static_cast<size_t>(shape.batch);
    if (has_pointers) pointers_ = parts(count * sizeof(T*));
    if (has_pointers && has_columns()) right_pointers_ = parts(count * sizeof(T*));
    const auto extent = static_cast<size_t>(shape.n);
    switch (shape.kind) {
      case SolverKind::cholesky:
        if (!is_batched()) ask_cholesky();
        break;
      case SolverKind::lu:
      case SolverKind::solve:
        pivots_ = parts(count * extent * sizeof(int64_t));
        information_ = parts(sizeof(int));
        if (!is_batched()) ask_lu();
        break;
      case SolverKind::solve_triangular:
        break;
      case SolverKind::qr:
        tau_ = parts(static_cast<size_t>(reflections()) * sizeof(T));
        information_ = parts(sizeof(int));
        ask_qr();
        break;
    }
    buffer_ = parts(buffer_bytes_);
    host_buffer_.resize(host_bytes_);
    // Only cuBLAS needs it, which the batches of LU factors use, too.
    if (uses_blas()) blas_workspace_ = parts(blas_workspace);
  }

  size_t workspace_bytes() const override { return bytes_; }

  void run(const SolverOperands& o, void* workspace, Stream& stream) const override {
    const bool is_triangle = shape_.kind == SolverKind::solve_triangular;
    if (!is_triangle) cuda::refuse_recording("cuSOLVER");
    const cudaStream_t there = cuda_stream(stream);
    char* const space = static_cast<char*>(workspace);
    const std::lock_guard lock(handles_.mutex);
    if (uses_blas()) {
      check_blas(functions().set_blas_stream(handles_.blas, there), "cublasSetStream");
      check_blas(
          functions().set_blas_workspace(handles_.blas, space + blas_workspace_, blas_workspace),
          "cublasSetWorkspace");
    }
    if (!is_triangle)
      check_solver(functions().set_solver_stream(handles_.solver, there), "cusolverDnSetStream");
    switch (shape_.kind) {
      case SolverKind::cholesky:
        return run_cholesky(o, space, there);
      case SolverKind::lu:
      case SolverKind::solve:
        return run_lu(o, space, there);
      case SolverKind::solve_triangular:
        return run_triangular(o, space, there);
      case SolverKind::qr:
        return run_qr(o, space, there);
    }
  }

 private:
  static constexpr cudaDataType type = std::is_same_v<T, double> ? CUDA_R_64F : CUDA_R_32F;
  static const Routines<T>& routines() { return functions().of<T>(); }

  bool is_batched() const {
    return shape_.batch > 1 && shape_.n <= most_batched && shape_.kind != SolverKind::qr;
  }
  bool has_columns() const {
    return shape_.kind == SolverKind::solve || shape_.kind == SolverKind::solve_triangular;
  }
  bool uses_blas() const {
    const bool is_lu = shape_.kind == SolverKind::lu || shape_.kind == SolverKind::solve;
    return shape_.kind == SolverKind::solve_triangular || (is_lu && is_batched());
  }
  int64_t reflections() const { return std::min(shape_.m, shape_.n); }
  cublasFillMode_t triangle() const {
    return shape_.upper ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
  }
  cublasOperation_t operation() const { return shape_.transposes ? CUBLAS_OP_T : CUBLAS_OP_N; }

  size_t parts(size_t bytes) { return std::exchange(bytes_, bytes_ + cuda::aligned(bytes)); }

  // ---- The buffers of a call

  void keep(size_t device_bytes, size_t host_bytes) {
    buffer_bytes_ = std::max(buffer_bytes_, device_bytes);
    host_bytes_ = std::max(host_bytes_, host_bytes);
  }
  void ask_cholesky() {
    size_t on_device = 0, on_host = 0;
    check_solver(functions().potrf_buffer(handles_.solver, handles_.params, triangle(), shape_.n,
                                          type, nullptr, shape_.n, type, &on_device, &on_host),
                 "cusolverDnXpotrf_bufferSize");
    keep(on_device, on_host);
  }
  void ask_lu() {
    size_t on_device = 0, on_host = 0;
    check_solver(functions().getrf_buffer(handles_.solver, handles_.params, shape_.n, shape_.n,
                                          type, nullptr, shape_.n, type, &on_device, &on_host),
                 "cusolverDnXgetrf_bufferSize");
    keep(on_device, on_host);
  }
  void ask_qr() {
    size_t on_device = 0, on_host = 0;
    check_solver(
        functions().geqrf_buffer(handles_.solver, handles_.params, shape_.m, shape_.n, type,
                                 nullptr, shape_.m, type, nullptr, type, &on_device, &on_host),
        "cusolverDnXgeqrf_bufferSize");
    keep(on_device, on_host);
    check_solver(routines().orgqr_buffer(handles_.solver, as_int(shape_.m), as_int(shape_.columns),
                                         as_int(reflections()), nullptr, as_int(shape_.m), nullptr,
                                         &orgqr_elements_),
                 "cusolverDn<t>orgqr_bufferSize");
    keep(static_cast<size_t>(orgqr_elements_) * sizeof(T), 0);
  }

  // ---- The calls

  T** pointers_to(T* first, int64_t step, char* to, cudaStream_t stream) const {
    T** const pointers = reinterpret_cast<T**>(to);
    cuda::launch(pointers_kernel<T>, cuda::blocks_for(shape_.batch), cuda::threads_per_block, 0,
                 stream, shape_.batch, first, step, pointers);
    return pointers;
  }

  void run_cholesky(const SolverOperands& o, char* space, cudaStream_t stream) const {
    T* const a = static_cast<T*>(o.a);
    const int64_t step = shape_.n * shape_.n;
    if (is_batched()) {
      return check_solver(
          routines().potrf_batched(handles_.solver, triangle(), as_int(shape_.n),
                                   pointers_to(a, step, space + pointers_, stream),
                                   as_int(shape_.n), o.failures, as_int(shape_.batch)),
          "cusolverDn<t>potrfBatched");
    }
    for (int64_t b = 0; b < shape_.batch; ++b) {
      check_solver(functions().potrf(handles_.solver, handles_.params, triangle(), shape_.n, type,
                                     a + b * step, shape_.n, type, space + buffer_, buffer_bytes_,
                                     host_buffer_.data(), host_bytes_, o.failures + b),
                   "cusolverDnXpotrf");
    }
  }

  void run_lu(const SolverOperands& o, char* space, cudaStream_t stream) const {
    T *const a = static_cast<T*>(o.a), *const b = static_cast<T*>(o.b);
    const int64_t step = shape_.n * shape_.n, right_step = shape_.n * shape_.columns;
    const bool solves = shape_.kind == SolverKind::solve;
    if (is_batched()) {
      const int n = as_int(shape_.n), count = as_int(shape_.batch);
      T** const matrices = pointers_to(a, step, space + pointers_, stream);
      int* const pivots = reinterpret_cast<int*>(space + pivots_);
      check_blas(routines().getrf_batched(handles_.blas, n, matrices, n, pivots, o.failures, count),
                 "cublas<t>getrfBatched");
      if (!solves) {
        return cuda::launch(widen_kernel, cuda::blocks_for(shape_.batch * shape_.n),
                            cuda::threads_per_block, 0, stream, shape_.batch * shape_.n, pivots,
                            o.pivots);
      }
      int wrong_argument = 0;
      return check_blas(routines().getrs_batched(
                            handles_.blas, operation(), n, as_int(shape_.columns), matrices, n,
                            pivots, pointers_to(b, right_step, space + right_pointers_, stream), n,
                            &wrong_argument, count),
                        "cublas<t>getrsBatched");
    }
    for (int64_t i = 0; i < shape_.batch; ++i) {
      int64_t* const pivots =
          solves ? reinterpret_cast<int64_t*>(space + pivots_) : o.pivots + i * shape_.n;
      check_solver(
          functions().getrf(handles_.solver, handles_.params, shape_.n, shape_.n, type,
                            a + i * step, shape_.n, pivots, type, space + buffer_, buffer_bytes_,
                            host_buffer_.data(), host_bytes_, o.failures + i),
          "cusolverDnXgetrf");
      if (!solves) continue;
      check_solver(
          functions().getrs(handles_.solver, handles_.params, operation(), shape_.n, shape_.columns,
                            type, a + i * step, shape_.n, pivots, type, b + i * right_step,
                            shape_.n, reinterpret_cast<int*>(space + information_)),
          "cusolverDnXgetrs");
    }
  }

  void run_triangular(const SolverOperands& o, char* space, cudaStream_t stream) const {
    const T one = 1;
    T *const a = static_cast<T*>(o.a), *const b = static_cast<T*>(o.b);
    const int64_t step = shape_.shares_a ? 0 : shape_.n * shape_.n,
                  right_step = shape_.n * shape_.columns;
    if (is_batched()) {
      T** const triangles = pointers_to(a, step, space + pointers_, stream);
      T** const right = pointers_to(b, right_step, space + right_pointers_, stream);
      return check_blas(
          routines().trsm_batched(handles_.blas, CUBLAS_SIDE_RIGHT, triangle(), operation(),
                                  CUBLAS_DIAG_NON_UNIT, as_int(shape_.columns), as_int(shape_.n),
                                  &one, triangles, as_int(shape_.n), right, as_int(shape_.columns),
                                  as_int(shape_.batch)),
          "cublas<t>trsmBatched");
    }
    for (int64_t i = 0; i < shape_.batch; ++i) {
      check_blas(routines().trsm(handles_.blas, CUBLAS_SIDE_RIGHT, triangle(), operation(),
                                 CUBLAS_DIAG_NON_UNIT, shape_.columns, shape_.n, &one, a + i * step,
                                 shape_.n, b + i * right_step, shape_.columns),
                 "cublas<t>trsm");
    }
  }

  void run_qr(const SolverOperands& o, char* space, cudaStream_t stream) const {
    T* const tau = reinterpret_cast<T*>(space + tau_);
    int* const information = reinterpret_cast<int*>(space + information_);
    const int m = as_int(shape_.m), k = as_int(reflections());
    for (int64_t i = 0; i < shape_.batch; ++i) {
      T* const a = static_cast<T*>(o.a) + i * shape_.m * shape_.n;
      T* const q = static_cast<T*>(o.b) + i * shape_.m * shape_.columns;
      check_solver(functions().geqrf(handles_.solver, handles_.params, shape_.m, shape_.n, type, a,
                                     shape_.m, type, tau, type, space + buffer_, buffer_bytes_,
                                     host_buffer_.data(), host_bytes_, information),
                   "cusolverDnXgeqrf");
      cuda::check_cuda(cudaMemcpyAsync(q, a, static_cast<size_t>(shape_.m) * k * sizeof(T),
                                       cudaMemcpyDeviceToDevice, stream),
                       "cudaMemcpyAsync");
      check_solver(
          routines().orgqr(handles_.solver, m, as_int(shape_.columns), k, q, m, tau,
                           reinterpret_cast<T*>(space + buffer_), orgqr_elements_, information),
          "cusolverDn<t>orgqr");
    }
  }

  const SolverShape shape_;
  Handles& handles_;
  int orgqr_elements_ = 0;
  size_t bytes_ = 0, buffer_bytes_ = 0, host_bytes_ = 0;
  // Where the parts of the workspace begin.
  size_t pointers_ = 0, right_pointers_ = 0, pivots_ = 0, information_ = 0, tau_ = 0, buffer_ = 0,
         blas_workspace_ = 0;
  mutable std::vector<char> host_buffer_;  // guarded by the handles' mutex
};

}  // namespace

bool has_solver_libraries() { return found_functions() != nullptr; }

std::unique_ptr<Solver> make_solver(Device& device, const SolverShape& shape) {
  if (shape.dtype == DType::f64) return std::make_unique<CudaSolver<double>>(device, shape);
  return std::make_unique<CudaSolver<float>>(device, shape);
}

}  // namespace leat
