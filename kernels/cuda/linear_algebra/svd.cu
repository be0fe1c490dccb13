// Svd and SelfAdjointEigV2 on the GPU, by Jacobi's rotations (jacobi.cuh). A matrix that is not
// finite has a result of NaN.
#include "kernels/cuda/linear_algebra/svd.cuh"

#include <algorithm>
#include <cmath>

#include "kernels/cuda/row_reduce.cuh"

namespace leat {
namespace cuda {
namespace {

// A block per matrix. Squares are of numbers that are at most 1: those of others might overflow.
template <class T>
__global__ void __launch_bounds__(threads_per_block)
    measure_kernel(int64_t m, int64_t n, bool symmetric, const T* in, JacobiState* states,
                   int32_t* failures) {
  __shared__ double shared[threads_per_block];
  const T* const matrix = in + blockIdx.x * m * n;
  double largest = 0;
  bool is_finite = true;
  for (int64_t i = threadIdx.x; i < m * n; i += blockDim.x) {
    if (symmetric && i % n > i / n) continue;
    largest = std::fmax(largest, std::abs(static_cast<double>(matrix[i])));
    is_finite = is_finite && std::isfinite(matrix[i]);
  }
  largest = reduce_block(largest, shared, [](double x, double y) { return std::fmax(x, y); });
  const bool all_finite = __syncthreads_and(is_finite ? 1 : 0) != 0;
  double sum = 0;
  for (int64_t i = threadIdx.x; largest > 0 && i < m * n; i += blockDim.x) {
    if (symmetric && i % n > i / n) continue;
    const double x = static_cast<double>(matrix[i]) / largest;
    sum += (symmetric && i % n < i / n ? 2 : 1) * x * x;
  }
  sum = reduce_block(sum, shared, [](double x, double y) { return x + y; });
  if (threadIdx.x != 0) return;
  const int32_t failed = all_finite ? 0 : 1;
  states[blockIdx.x] = {largest > 0 ? largest * std::sqrt(sum) : 1, failed, failed, 0, 0};
  failures[blockIdx.x] = failed;
}

template <class T>
__global__ void __launch_bounds__(threads_per_block)
    divide_kernel(int64_t elements, int64_t of_each, const JacobiState* states, const T* from,
                  double* to) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < elements) to[i] = static_cast<double>(from[i]) / states[i / of_each].norm;
}

__global__ void __launch_bounds__(threads_per_block)
    values_kernel(int64_t elements, int64_t of_each, const JacobiState* states,
                  const double* lengths, const int32_t* places, double* values) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < elements)
    values[i / of_each * of_each + places[i]] = lengths[i] * states[i / of_each].norm;
}

template <class To>
__global__ void __launch_bounds__(threads_per_block)
    narrow_kernel(int64_t elements, const double* from, To* to) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < elements) to[i] = static_cast<To>(from[i]);
}

}  // namespace

SvdPlan plan_svd(WorkspaceParts& parts, const MatrixBatch& matrices, bool full,
                 bool wants_vectors) {
  const int64_t vectors = std::min(matrices.m, matrices.n),
                length = std::max(matrices.m, matrices.n), kept = full ? length : vectors;
  const auto doubles = [&](int64_t of_each) {
    return parts.add(static_cast<size_t>(matrices.count * of_each) * sizeof(double));
  };
  const auto if_vectors = [&](int64_t of_each) { return doubles(wants_vectors ? of_each : 0); };
  const auto count = static_cast<size_t>(matrices.count);
  return {.shape = {matrices.count, vectors, length},
          .is_tall = matrices.m >= matrices.n,
          .wants_vectors = wants_vectors,
          .kept = kept,
          .states = parts.add(count * sizeof(JacobiState)),
          .failures = parts.add(count * sizeof(int32_t)),
          .w = doubles(vectors * length),
          .v = if_vectors(vectors * vectors),
          .lengths = doubles(vectors),
          .places = parts.add(count * static_cast<size_t>(vectors) * sizeof(int32_t)),
          .values = doubles(vectors),
          .space = if_vectors(length + kept),
          .longer = if_vectors(kept * length),
          .square = if_vectors(vectors * vectors)};
}

template <class T>
void enqueue_measurement(const Arguments& a, int64_t count, int64_t m, int64_t n, bool symmetric,
                         const T* in, JacobiState* states, int32_t* failures) {
  launch(measure_kernel<T>, as_blocks(count), threads_per_block, 0, cuda_stream(a), m, n, symmetric,
         in, states, failures);
}

template <class T>
void enqueue_svd(const Arguments& a, const SvdPlan& plan, const T* in) {
  const cudaStream_t stream = cuda_stream(a);
  const auto [count, vectors, length] = plan.shape;
  JacobiState* const states = part_of<JacobiState>(a, plan.states);
  double *const w = part_of<double>(a, plan.w), *const lengths = part_of<double>(a, plan.lengths);
  double* const v = plan.wants_vectors ? part_of<double>(a, plan.v) : nullptr;
  int32_t* const places = part_of<int32_t>(a, plan.places);
  const int64_t m = plan.is_tall ? length : vectors, n = plan.is_tall ? vectors : length;
  enqueue_measurement(a, count, m, n, false, in, states, part_of<int32_t>(a, plan.failures));
  const int64_t elements = count * m * n;
  if (plan.is_tall) {
    enqueue_transposed(a, count, m, n, m * n, in, w);
    launch(divide_kernel<double>, blocks_for(elements), threads_per_block, 0, stream, elements,
           m * n, states, w, w);
  } else {
    launch(divide_kernel<T>, blocks_for(elements), threads_per_block, 0, stream, elements, m * n,
           states, in, w);
  }
  if (v != nullptr) enqueue_unit(a, count * vectors * vectors, vectors, vectors, v);
  enqueue_jacobi(a, plan.shape, w, v, states);
  enqueue_lengths(a, plan.shape, w, lengths, places, states);
  launch(values_kernel, blocks_for(count * vectors), threads_per_block, 0, stream, count * vectors,
         vectors, states, lengths, places, part_of<double>(a, plan.values));
  if (v == nullptr) return;
  enqueue_left_vectors(a, plan.shape, plan.kept, w, lengths, places, states,
                       part_of<double>(a, plan.space), part_of<double>(a, plan.longer));
  enqueue_right_vectors(a, plan.shape, false, v, places, part_of<double>(a, plan.square));
}

template void enqueue_svd(const Arguments&, const SvdPlan&, const float*);
template void enqueue_svd(const Arguments&, const SvdPlan&, const double*);

}  // namespace cuda

namespace {

using cuda::part_of;

// ---- Svd

template <class T>
BoundKernel prepare_svd(TypeTag<T>, const KernelRequest& r) {
  const MatrixBatch e(r.inputs[0].shape);
  const bool wants_vectors = r.attr<bool>("compute_uv");
  const int64_t k = std::min(e.m, e.n);
  const int64_t of_u = r.outputs[1].shape.elements(), of_v = r.outputs[2].shape.elements();
  if (r.outputs[0].shape.elements() == 0) {  // of nothing: unit matrices
    if (of_u == 0 && of_v == 0) return {};
    const int64_t m = e.m, n = e.n;
    return BoundKernel::of([=](const Arguments& a) {
      if (of_u > 0) cuda::enqueue_unit(a, of_u, m, m, a.output<T>(1));
      if (of_v > 0) cuda::enqueue_unit(a, of_v, n, n, a.output<T>(2));
    });
  }
  cuda::WorkspaceParts parts;
  const cuda::SvdPlan plan =
      cuda::plan_svd(parts, e, wants_vectors && r.attr<bool>("full_matrices"), wants_vectors);
  return BoundKernel::of([=](const Arguments& a) {
           cuda::enqueue_svd(a, plan, a.input<T>(0));
           const int32_t* const failures = cuda::svd_failures(a, plan);
           const int64_t count = plan.shape.count;
           cuda::launch(cuda::narrow_kernel<T>, cuda::blocks_for(count * k),
                        cuda::threads_per_block, 0, cuda_stream(a), count * k,
                        cuda::singular_values(a, plan), a.output<T>(0));
           cuda::enqueue_invalidation(a, count, k, failures, a.output<T>(0));
           if (!wants_vectors) return;
           const auto [matrices, vectors, length] = plan.shape;
           const int longer = plan.is_tall ? 1 : 2, square = plan.is_tall ? 2 : 1;
           cuda::enqueue_transposed(a, count, plan.kept, length, plan.kept * length,
                                    cuda::longer_vectors(a, plan), a.output<T>(longer));
           cuda::enqueue_transposed(a, count, vectors, vectors, vectors * vectors,
                                    cuda::square_vectors(a, plan), a.output<T>(square));
           cuda::enqueue_invalidation(a, count, plan.kept * length, failures, a.output<T>(longer));
           cuda::enqueue_invalidation(a, count, vectors * vectors, failures, a.output<T>(square));
         })
      .with_workspace(parts.bytes());
}

const OpKernels svd{"Svd", solver_kernels([]<class T>(TypeTag<T> t, const KernelRequest& r) {
                      return prepare_svd(t, r);
                    })};

// ---- SelfAdjointEigV2

// The matrix divided by its norm, which no eigenvalue exceeds, plus twice the unit matrix: the
// eigenvalues lie between 1 and 3. So they are the singular values, and none is close to another of
// the opposite sign.
constexpr double eigen_shift = 2;

template <class T>
__global__ void __launch_bounds__(cuda::threads_per_block)
    shift_kernel(int64_t elements, int64_t n, const cuda::JacobiState* states, const T* in,
                 double* w) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= elements) return;
  const int64_t matrix = at / (n * n), i = at / n % n, j = at % n;
  const int64_t row = i > j ? i : j, column = i > j ? j : i;
  w[at] = static_cast<double>(in[(matrix * n + row) * n + column]) / states[matrix].norm +
          (i == j ? eigen_shift : 0);
}

template <class T>
__global__ void __launch_bounds__(cuda::threads_per_block)
    eigenvalues_kernel(int64_t elements, int64_t n, const cuda::JacobiState* states,
                       const double* lengths, const int32_t* places, T* values) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= elements) return;
  const int64_t matrix = i / n;
  values[matrix * n + n - 1 - places[i]] =
      static_cast<T>((lengths[i] - eigen_shift) * states[matrix].norm);
}

template <class T>
BoundKernel prepare_eigen(TypeTag<T>, const KernelRequest& r) {
  if (r.outputs[0].shape.elements() == 0) return {};
  const MatrixBatch e(r.inputs[0].shape);
  const bool wants_vectors = r.attr<bool>("compute_v");
  const int64_t n = e.n, count = e.count, elements = count * n * n;
  const cuda::JacobiShape shape{count, n, n};
  const auto vectors_bytes = static_cast<size_t>(elements) * sizeof(double);
  cuda::WorkspaceParts parts;
  const size_t states_at = parts.add(static_cast<size_t>(count) * sizeof(cuda::JacobiState)),
               failures_at = parts.add(static_cast<size_t>(count) * sizeof(int32_t)),
               lengths_at = parts.add(static_cast<size_t>(count * n) * sizeof(double)),
               places_at = parts.add(static_cast<size_t>(count * n) * sizeof(int32_t)),
               w_at = parts.add(vectors_bytes), v_at = parts.add(wants_vectors ? vectors_bytes : 0);
  return BoundKernel::of([=](const Arguments& a) {
           const cudaStream_t stream = cuda_stream(a);
           auto* const states = part_of<cuda::JacobiState>(a, states_at);
           int32_t* const failures = part_of<int32_t>(a, failures_at);
           int32_t* const places = part_of<int32_t>(a, places_at);
           double *const w = part_of<double>(a, w_at), *const lengths =
                                                           part_of<double>(a, lengths_at);
           double* const v = wants_vectors ? part_of<double>(a, v_at) : nullptr;
           cuda::enqueue_measurement(a, count, n, n, true, a.input<T>(0), states, failures);
           cuda::launch(shift_kernel<T>, cuda::blocks_for(elements), cuda::threads_per_block, 0,
                        stream, elements, n, states, a.input<T>(0), w);
           if (v != nullptr) cuda::enqueue_unit(a, elements, n, n, v);
           cuda::enqueue_jacobi(a, shape, w, v, states);
           cuda::enqueue_lengths(a, shape, w, lengths, places, states);
           cuda::launch(eigenvalues_kernel<T>, cuda::blocks_for(count * n), cuda::threads_per_block,
                        0, stream, count * n, n, states, lengths, places, a.output<T>(0));
           cuda::enqueue_invalidation(a, count, n, failures, a.output<T>(0));
           if (v == nullptr) return;
           cuda::enqueue_right_vectors(a, shape, true, v, places, w);
           cuda::enqueue_transposed(a, count, n, n, n * n, w, a.output<T>(1));
           cuda::enqueue_invalidation(a, count, n * n, failures, a.output<T>(1));
         })
      .with_workspace(parts.bytes());
}

const OpKernels eigen{"SelfAdjointEigV2",
                      solver_kernels([]<class T>(TypeTag<T> t, const KernelRequest& r) {
                        return prepare_eigen(t, r);
                      })};

}  // namespace
}  // namespace leat
