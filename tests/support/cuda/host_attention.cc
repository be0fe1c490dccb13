// Attention where there is no cuDNN: plain loops, in stream order.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "core/visit_dtype.h"
#include "kernels/cuda/attention/library_attention.h"
#include "kernels/types.h"
#include "tests/support/cuda/control.h"
#include "tests/support/cuda/include/cuda_runtime.h"

namespace leat {
namespace {

std::atomic<bool> is_refused{false};
std::atomic<int64_t> runs{0};

using Vector = std::vector<double>;

// One matrix of rows of equal length, as numbers.
template <class T>
Vector read(const void* from, int64_t matrix, int64_t elements) {
  const T* const first = static_cast<const T*>(from) + matrix * elements;
  return Vector(first, first + elements);
}

template <class T>
void write(const Vector& from, void* to, int64_t matrix) {
  std::transform(from.begin(), from.end(),
                 static_cast<T*>(to) + matrix * static_cast<int64_t>(from.size()),
                 [](double value) { return static_cast<T>(static_cast<float>(value)); });
}

double dot(const Vector& a, int64_t row_a, const Vector& b, int64_t row_b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i)
    sum += a[static_cast<size_t>(row_a * n + i)] * b[static_cast<size_t>(row_b * n + i)];
  return sum;
}

// to[row_to] += factor · from[row_from]
void add_row(Vector& to, int64_t row_to, double factor, const Vector& from, int64_t row_from,
             int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    to[static_cast<size_t>(row_to * n + i)] += factor * from[static_cast<size_t>(row_from * n + i)];
}

// Scaled scores with the bias; those that a causal row does not see are -∞.
template <class T>
Vector scores_of(const LibraryAttentionShape& s, const AttentionOperands& o, int64_t matrix,
                 const Vector& q, const Vector& k) {
  const int64_t b = s.bias_batch == 1 ? 0 : matrix / s.heads,
                h = s.bias_heads == 1 ? 0 : matrix % s.heads;
  const T* const bias = static_cast<const T*>(o.bias) + (b * s.bias_heads + h) * s.queries * s.keys;
  Vector out;
  for (int64_t i = 0; i < s.queries; ++i) {
    for (int64_t j = 0; j < s.keys; ++j) {
      double score = dot(q, i, k, j, s.size) * s.scale;
      if (s.has_bias()) score += static_cast<double>(bias[i * s.keys + j]);
      out.push_back(s.causal && j > i ? -INFINITY : score);
    }
  }
  return out;
}

template <class T>
void attend(const LibraryAttentionShape& s, const AttentionOperands& o, int64_t matrix) {
  const Vector q = read<T>(o.q, matrix, s.queries * s.size),
               k = read<T>(o.k, matrix, s.keys * s.size),
               v = read<T>(o.v, matrix, s.keys * s.value_size);
  const Vector scores = scores_of<T>(s, o, matrix, q, k);
  Vector output(static_cast<size_t>(s.queries * s.value_size));
  for (int64_t i = 0; i < s.queries; ++i) {
    const auto first = scores.begin() + i * s.keys;
    const double max = *std::max_element(first, first + s.keys);
    double sum = 0;
    for (int64_t j = 0; j < s.keys; ++j) sum += std::exp(first[j] - max);
    for (int64_t j = 0; j < s.keys; ++j)
      add_row(output, i, std::exp(first[j] - max) / sum, v, j, s.value_size);
    static_cast<float*>(o.statistics)[matrix * s.queries + i] =
        static_cast<float>(max + std::log(sum));
  }
  write<T>(output, o.output, matrix);
}

// From the output and the statistics, as cuDNN does it.
template <class T>
void differentiate(const LibraryAttentionShape& s, const AttentionOperands& o, int64_t matrix) {
  const Vector q = read<T>(o.q, matrix, s.queries * s.size),
               k = read<T>(o.k, matrix, s.keys * s.size),
               v = read<T>(o.v, matrix, s.keys * s.value_size),
               output = read<T>(o.output, matrix, s.queries * s.value_size),
               doutput = read<T>(o.doutput, matrix, s.queries * s.value_size);
  const float* const statistics = static_cast<const float*>(o.statistics) + matrix * s.queries;
  const Vector scores = scores_of<T>(s, o, matrix, q, k);
  Vector dq(q.size()), dk(k.size()), dv(v.size());
  for (int64_t i = 0; i < s.queries; ++i) {
    const double inner = dot(doutput, i, output, i, s.value_size);
    for (int64_t j = 0; j < s.keys; ++j) {
      const double weight = std::exp(scores[static_cast<size_t>(i * s.keys + j)] - statistics[i]);
      const double dscore = (dot(doutput, i, v, j, s.value_size) - inner) * weight * s.scale;
      add_row(dv, j, weight, doutput, i, s.value_size);
      add_row(dq, i, dscore, k, j, s.size);
      add_row(dk, j, dscore, q, i, s.size);
    }
  }
  write<T>(dq, o.dq, matrix);
  write<T>(dk, o.dk, matrix);
  write<T>(dv, o.dv, matrix);
}

class HostAttention : public LibraryAttention {
 public:
  HostAttention(AttentionPass pass, const LibraryAttentionShape& shape)
      : pass_(pass), shape_(shape) {}

  // Unused, but there, so that callers are seen to provide it.
  size_t workspace_bytes() const override { return 64; }

  void run(const AttentionOperands& operands, void* workspace, Stream& stream) const override {
    check_internal(workspace != nullptr, "attention was given no workspace");
    for (const void* each :
         {operands.q, operands.k, operands.v, operands.bias,
          static_cast<const void*>(operands.output), static_cast<const void*>(operands.statistics),
          operands.doutput, static_cast<const void*>(operands.dq),
          static_cast<const void*>(operands.dk), static_cast<const void*>(operands.dv)}) {
      check_internal(reinterpret_cast<uintptr_t>(each) % 16 == 0,
                     "cuDNN would not take an operand of attention at ", each);
    }
    ++runs;
    const cudaError_t error = cuda_on_host::enqueue(
        static_cast<cudaStream_t>(stream.native()),
        [pass = pass_, shape = shape_, operands, workspace] {
          std::fill_n(static_cast<unsigned char*>(workspace), 64, 0xff);
          (void)visit_type(Types<half, bfloat16>{}, shape.dtype, [&]<class T>(TypeTag<T>) {
            for (int64_t matrix = 0; matrix < shape.batch * shape.heads; ++matrix) {
              pass == AttentionPass::forward ? attend<T>(shape, operands, matrix)
                                             : differentiate<T>(shape, operands, matrix);
            }
            return 0;
          });
        });
    check_internal(error == cudaSuccess, "attention: ", cudaGetErrorString(error));
  }

 private:
  const AttentionPass pass_;
  const LibraryAttentionShape shape_;
};

}  // namespace

// As cuDNN: heads of multiples of 8, and no single score.
std::shared_ptr<const LibraryAttention> library_attention(Device&, AttentionPass pass,
                                                          const LibraryAttentionShape& shape) {
  const bool has_vectors = shape.size % 8 == 0 && shape.value_size % 8 == 0;
  if (is_refused || !has_vectors || shape.queries * shape.keys == 1) return nullptr;
  return std::make_shared<const HostAttention>(pass, shape);
}

}  // namespace leat

extern "C" {
__attribute__((visibility("default"))) void leat_cuda_on_host_refuse_attention(bool refuse) {
  leat::is_refused = refuse;
}
__attribute__((visibility("default"))) int64_t leat_cuda_on_host_count_attention() {
  return leat::runs;
}
}
