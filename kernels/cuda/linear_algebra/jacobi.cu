#include "kernels/cuda/linear_algebra/jacobi.cuh"

#include <algorithm>
#include <cmath>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/row_reduce.cuh"
#include "kernels/cuda_launch.cuh"

namespace leat::cuda {
namespace {

// Vectors are rotated in blocks of this many. A CUDA block takes two of them, and rotates all pairs
// among their vectors.
constexpr int block_vectors = 16;
constexpr int pair_vectors = 2 * block_vectors;
constexpr int jacobi_threads = 256;
constexpr int groups = jacobi_threads / pair_vectors;  // threads per vector of a tile
// Six to nine sweeps over all pairs are usual; eigenvalues that differ by many powers of ten need
// about fifteen.
constexpr int most_sweeps = 32;
constexpr int inner_sweeps = 2;

template <class Index>
struct Pair {
  Index first, second;
};

// Pair `i` of a round in which each of `players` (an even number) meets another one; it meets all
// in players - 1 rounds.
template <class Index>
LEAT_DEVICE Pair<Index> pair_of(Index players, Index round, Index i) {
  const Index others = players - 1;
  if (i == 0) return {round, others};
  return {(round + i) % others, (round - i + others) % others};
}

using Tile = double[pair_vectors][pair_vectors + 1];

// The vectors that a CUDA block works on: those of two blocks.
struct Chosen {
  Pair<int64_t> blocks;
  int64_t vectors;  // there are no others
  // -1: none
  LEAT_DEVICE int64_t index(int i) const {
    const int64_t vector =
        (i < block_vectors ? blocks.first : blocks.second) * block_vectors + i % block_vectors;
    return vector < vectors ? vector : -1;
  }
};

// tile[i][e] = element begin + e of vector i.
LEAT_DEVICE void load_tile(const Chosen& chosen, const double* from, int64_t length, int64_t begin,
                           Tile& tile) {
  const int e = threadIdx.x % pair_vectors;
  for (int i = threadIdx.x / pair_vectors; i < pair_vectors; i += groups) {
    const int64_t vector = chosen.index(i);
    tile[i][e] = vector >= 0 && begin + e < length ? from[vector * length + begin + e] : 0;
  }
}

// The products of all pairs of vectors.
LEAT_DEVICE void multiply(const Chosen& chosen, const double* w, int64_t length, Tile& tile,
                          Tile& products) {
  const int j = threadIdx.x % pair_vectors, first = threadIdx.x / pair_vectors;
  double sums[pair_vectors / groups] = {};
  for (int64_t begin = 0; begin < length; begin += pair_vectors) {
    load_tile(chosen, w, length, begin, tile);
    __syncthreads();
    for (int e = 0; e < pair_vectors; ++e) {
      const double x = tile[j][e];
      for (int k = 0; k < pair_vectors / groups; ++k) sums[k] += tile[first + k * groups][e] * x;
    }
    __syncthreads();
  }
  for (int k = 0; k < pair_vectors / groups; ++k) products[first + k * groups][j] = sums[k];
}

// The angle between two vectors differs from a right one.
LEAT_DEVICE bool is_oblique(double first, double second, double product, double tolerance) {
  constexpr double floor = jacobi_floor * jacobi_floor;
  return first > floor && second > floor &&
         std::abs(product) > tolerance * std::sqrt(first) * std::sqrt(second);
}

// Makes the matrix of products diagonal, but for `inner_sweeps` being few: by rotations, which it
// collects.
LEAT_DEVICE void diagonalise(Tile& products, Tile& rotations, double* sines, double* halves) {
  const int pair = threadIdx.x / block_vectors;
  for (int round = 0; round < inner_sweeps * (pair_vectors - 1); ++round) {
    const auto [p, q] = pair_of(pair_vectors, round % (pair_vectors - 1), pair);
    if (threadIdx.x % block_vectors == 0) {
      const double product = products[p][q];
      double sine = 0, half = 0;
      if (is_oblique(products[p][p], products[q][q], product, jacobi_floor)) {
        const double zeta = (products[q][q] - products[p][p]) / (2 * product);
        const double tangent = (zeta >= 0 ? 1 : -1) / (std::abs(zeta) + std::sqrt(1 + zeta * zeta));
        const double cosine = 1 / std::sqrt(1 + tangent * tangent);
        sine = cosine * tangent;
        half = sine / (1 + cosine);
      }
      sines[pair] = sine;
      halves[pair] = half;
    }
    __syncthreads();
    // By the sine and the tangent of half the angle: cosines that are rounded would make all
    // vectors longer, a little at each rotation.
    const double sine = sines[pair], half = halves[pair];
    const auto rotate = [&](double& x, double& y) {
      const double old = x;
      x -= sine * (y + half * old);
      y += sine * (old - half * y);
    };
    for (int e = threadIdx.x % block_vectors; e < pair_vectors; e += block_vectors) {
      rotate(products[e][p], products[e][q]);
      rotate(rotations[e][p], rotations[e][q]);
    }
    __syncthreads();
    for (int e = threadIdx.x % block_vectors; e < pair_vectors; e += block_vectors)
      rotate(products[p][e], products[q][e]);
    __syncthreads();
  }
}

// The vectors = the vectors times the rotations.
LEAT_DEVICE void rotate_vectors(const Chosen& chosen, double* vectors, int64_t length, Tile& tile,
                                const Tile& rotations) {
  const int e = threadIdx.x % pair_vectors;
  for (int64_t begin = 0; begin < length; begin += pair_vectors) {
    load_tile(chosen, vectors, length, begin, tile);
    __syncthreads();
    for (int i = threadIdx.x / pair_vectors; i < pair_vectors; i += groups) {
      double sum = 0;
      for (int j = 0; j < pair_vectors; ++j) sum += tile[j][e] * rotations[j][i];
      const int64_t vector = chosen.index(i);
      if (vector >= 0 && begin + e < length) vectors[vector * length + begin + e] = sum;
    }
    __syncthreads();
  }
}

// A block for each pair of blocks of vectors of a round.
__global__ void __launch_bounds__(jacobi_threads)
    rotate_kernel(JacobiShape shape, int64_t blocks, int64_t round, int repeats, double tolerance,
                  double* w, double* v, JacobiState* states) {
  __shared__ Tile tile, products, rotations;
  __shared__ double sines[block_vectors], halves[block_vectors];
  const int64_t pairs = blocks / 2, matrix = blockIdx.x / pairs;
  if (states[matrix].done != 0) return;
  const Chosen chosen{pair_of<int64_t>(blocks, round, blockIdx.x % pairs), shape.vectors};
  double* const mine = w + matrix * shape.vectors * shape.length;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    multiply(chosen, mine, shape.length, tile, products);
    __syncthreads();
    bool rotates = false;
    for (int at = threadIdx.x; at < pair_vectors * pair_vectors; at += jacobi_threads) {
      const int i = at / pair_vectors, j = at % pair_vectors;
      rotates |= i < j && is_oblique(products[i][i], products[j][j], products[i][j], tolerance);
      rotations[i][j] = i == j ? 1 : 0;
    }
    if (__syncthreads_or(rotates ? 1 : 0) == 0) return;
    if (threadIdx.x == 0) states[matrix].rotated = 1;
    diagonalise(products, rotations, sines, halves);
    rotate_vectors(chosen, mine, shape.length, tile, rotations);
    if (v != nullptr) {
      rotate_vectors(chosen, v + matrix * shape.vectors * shape.vectors, shape.vectors, tile,
                     rotations);
    }
  }
}

__global__ void __launch_bounds__(threads_per_block)
    end_sweep_kernel(int64_t count, JacobiState* states) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  if (states[i].rotated == 0) states[i].done = 1;
  states[i].rotated = 0;
}

// ---- The vectors in their order

// A block per vector.
__global__ void __launch_bounds__(threads_per_block)
    lengths_kernel(JacobiShape shape, const double* w, double* lengths, JacobiState* states) {
  __shared__ double shared[threads_per_block];
  const double* const vector = w + blockIdx.x * shape.length;
  double sum = 0;
  for (int64_t e = threadIdx.x; e < shape.length; e += blockDim.x) sum += vector[e] * vector[e];
  sum = reduce_block(sum, shared, [](double x, double y) { return x + y; });
  if (threadIdx.x != 0) return;
  const double length = std::sqrt(sum);
  lengths[blockIdx.x] = length;
  if (length > jacobi_floor) atomicAdd(&states[blockIdx.x / shape.vectors].rank, 1);
}

// A thread per vector counts those that are longer.
__global__ void __launch_bounds__(threads_per_block)
    places_kernel(JacobiShape shape, const double* lengths, int32_t* places) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= shape.count * shape.vectors) return;
  const int64_t first = i / shape.vectors * shape.vectors;
  int32_t place = 0;
  for (int64_t j = first; j < first + shape.vectors; ++j)
    place += lengths[j] > lengths[i] || (lengths[j] == lengths[i] && j < i) ? 1 : 0;
  places[i] = place;
}

// A thread per element of W.
__global__ void __launch_bounds__(threads_per_block)
    left_kernel(JacobiShape shape, int64_t kept, const double* w, const double* lengths,
                const int32_t* places, double* to) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= shape.count * shape.vectors * shape.length) return;
  const int64_t vector = i / shape.length, matrix = vector / shape.vectors;
  to[(matrix * kept + places[vector]) * shape.length + i % shape.length] = w[i] / lengths[vector];
}

__global__ void __launch_bounds__(threads_per_block)
    right_kernel(JacobiShape shape, bool rising, const double* v, const int32_t* places,
                 double* to) {
  const int64_t n = shape.vectors, i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= shape.count * n * n) return;
  const int64_t vector = i / n, place = rising ? n - 1 - places[vector] : places[vector];
  to[(vector / n * n + place) * n + i % n] = v[i];
}

struct Candidate {
  double rest;
  int64_t axis;
};

// A block per matrix adds the vectors behind its rank, one after the other. Each begins as the axis
// of which the vectors so far have least; the rest of it that is orthogonal to them is not short.
// Taking away what they have of it twice makes it orthogonal to full precision.
__global__ void __launch_bounds__(threads_per_block)
    complete_kernel(JacobiShape shape, int64_t kept, const JacobiState* states, double* space,
                    double* to) {
  __shared__ Candidate candidates[threads_per_block];
  __shared__ double shared[threads_per_block];
  const int64_t length = shape.length, matrix = blockIdx.x;
  if (states[matrix].failed != 0) return;
  double* const rests = space + matrix * (length + kept);  // of each axis, squared
  double* const products = rests + length;                 // with the vectors so far
  double* const vectors = to + matrix * kept * length;
  const int64_t rank = states[matrix].rank;
  for (int64_t e = threadIdx.x; rank < kept && e < length; e += blockDim.x) {
    double rest = 1;
    for (int64_t c = 0; c < rank; ++c) rest -= vectors[c * length + e] * vectors[c * length + e];
    rests[e] = rest;
  }
  for (int64_t j = rank; j < kept; ++j) {
    double* const vector = vectors + j * length;
    __syncthreads();
    Candidate best{-1, 0};
    for (int64_t e = threadIdx.x; e < length; e += blockDim.x)
      if (rests[e] > best.rest) best = {rests[e], e};
    best = reduce_block(best, candidates, [](const Candidate& x, const Candidate& y) {
      return y.rest > x.rest || (y.rest == x.rest && y.axis < x.axis) ? y : x;
    });
    for (int64_t e = threadIdx.x; e < length; e += blockDim.x) vector[e] = e == best.axis ? 1 : 0;
    for (int pass = 0; pass < 2; ++pass) {
      __syncthreads();
      // A warp per vector.
      for (int64_t c = threadIdx.x / 32; c < j; c += blockDim.x / 32) {
        double product = 0;
        for (int64_t e = threadIdx.x % 32; e < length; e += 32)
          product += vectors[c * length + e] * vector[e];
        for (int lanes = 16; lanes > 0; lanes /= 2)
          product += __shfl_xor_sync(0xffffffffu, product, lanes);
        if (threadIdx.x % 32 == 0) products[c] = product;
      }
      __syncthreads();
      for (int64_t e = threadIdx.x; e < length; e += blockDim.x) {
        double rest = vector[e];
        for (int64_t c = 0; c < j; ++c) rest -= products[c] * vectors[c * length + e];
        vector[e] = rest;
      }
    }
    double square = 0;
    for (int64_t e = threadIdx.x; e < length; e += blockDim.x) square += vector[e] * vector[e];
    square = reduce_block(square, shared, [](double x, double y) { return x + y; });
    for (int64_t e = threadIdx.x; e < length; e += blockDim.x) {
      vector[e] /= std::sqrt(square);
      rests[e] -= vector[e] * vector[e];
    }
  }
}

}  // namespace

void enqueue_jacobi(const Arguments& a, const JacobiShape& shape, double* w, double* v,
                    JacobiState* states) {
  const cudaStream_t stream = cuda_stream(a);
  const int64_t needed = (shape.vectors + block_vectors - 1) / block_vectors,
                blocks = std::max<int64_t>(2, (needed + 1) / 2 * 2);
  const double tolerance = 4 * jacobi_floor * std::sqrt(static_cast<double>(shape.length));
  const auto rotate = [&](int64_t round, int repeats) {
    launch(rotate_kernel, as_blocks(shape.count * (blocks / 2)), jacobi_threads, 0, stream, shape,
           blocks, round, repeats, tolerance, w, v, states);
  };
  if (blocks == 2) return rotate(0, most_sweeps);  // one block has all vectors
  for (int sweep = 0; sweep < most_sweeps; ++sweep) {
    for (int64_t round = 0; round < blocks - 1; ++round) rotate(round, 1);
    launch(end_sweep_kernel, blocks_for(shape.count), threads_per_block, 0, stream, shape.count,
           states);
  }
}

void enqueue_lengths(const Arguments& a, const JacobiShape& shape, const double* w, double* lengths,
                     int32_t* places, JacobiState* states) {
  const cudaStream_t stream = cuda_stream(a);
  const int64_t vectors = shape.count * shape.vectors;
  launch(lengths_kernel, as_blocks(vectors), threads_per_block, 0, stream, shape, w, lengths,
         states);
  launch(places_kernel, blocks_for(vectors), threads_per_block, 0, stream, shape, lengths, places);
}

void enqueue_left_vectors(const Arguments& a, const JacobiShape& shape, int64_t kept,
                          const double* w, const double* lengths, const int32_t* places,
                          const JacobiState* states, double* space, double* to) {
  const cudaStream_t stream = cuda_stream(a);
  launch(left_kernel, blocks_for(shape.count * shape.vectors * shape.length), threads_per_block, 0,
         stream, shape, kept, w, lengths, places, to);
  launch(complete_kernel, as_blocks(shape.count), threads_per_block, 0, stream, shape, kept, states,
         space, to);
}

void enqueue_right_vectors(const Arguments& a, const JacobiShape& shape, bool rising,
                           const double* v, const int32_t* places, double* to) {
  launch(right_kernel, blocks_for(shape.count * shape.vectors * shape.vectors), threads_per_block,
         0, cuda_stream(a), shape, rising, v, places, to);
}

}  // namespace leat::cuda
