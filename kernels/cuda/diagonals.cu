// Diagonals and bands of matrices on the GPU: Diag, DiagPart, MatrixBandPart, MatrixDiag,
// MatrixDiagPart and MatrixSetDiag in all versions. A thread moves one element of the output.
#include "graph/op_def.h"
#include "kernels/cuda_launch.cuh"
#include "kernels/linear_algebra/matrix_band.h"
#include "kernels/moves/moves.h"

namespace leat {
namespace {

// ---- Diag, DiagPart

template <class T>
struct OnDiagonal {
  int64_t n;
  LEAT_DEVICE void operator()(int64_t i, const Pointers& p) const {
    p.output<T>()[i] = i / n == i % n ? p.input<T>(0)[i / n] : T{};
  }
};

template <class T>
struct FromDiagonal {
  int64_t n;
  LEAT_DEVICE void operator()(int64_t i, const Pointers& p) const {
    p.output<T>()[i] = p.input<T>(0)[i * (n + 1)];
  }
};

const OpKernels diag{"Diag", moving_kernels("T", []<class T>(TypeTag<T>, const KernelRequest& r) {
                       const int64_t n = r.inputs[0].shape.elements();
                       return bind_indexed(r, n * n, 0, OnDiagonal<T>{n});
                     })};
const OpKernels diag_part{"DiagPart",
                          moving_kernels("T", []<class T>(TypeTag<T>, const KernelRequest& r) {
                            const int64_t n = r.outputs[0].shape.elements();
                            return bind_indexed(r, n, 0, FromDiagonal<T>{n});
                          })};

// ---- MatrixBandPart

template <class T>
struct KeepBand {
  int64_t rows, cols, lower, upper;  // a negative number keeps all
  LEAT_DEVICE void operator()(int64_t i, const Pointers& p) const {
    const int64_t m = i / cols % rows, n = i % cols;
    const bool keeps = (lower < 0 || m - n <= lower) && (upper < 0 || n - m <= upper);
    p.output<T>()[i] = keeps ? p.input<T>(0)[i] : T{};
  }
};

const OpKernels band_part{
    "MatrixBandPart", moving_kernels("T", []<class T>(TypeTag<T>, const KernelRequest& r) {
      const Shape& shape = r.inputs[0].shape;
      const int64_t rows = shape[shape.rank() - 2], cols = shape[shape.rank() - 1];
      const int64_t lower = to_int64s(*r.inputs[1].value).at(0);
      const int64_t upper = to_int64s(*r.inputs[2].value).at(0);
      check(lower <= rows, "num_lower must be negative or less or equal to number of rows (", rows,
            ") got: ", lower);
      check(upper <= cols, "num_upper must be negative or less or equal to number of columns (",
            cols, ") got: ", upper);
      return bind_indexed(r, shape.elements(), 0, KeepBand<T>{rows, cols, lower, upper})
          .sharing(0, 0);
    })};

// ---- Matrices and packed diagonals

// An element of the packed diagonals: input 0 is the matrix. `padding` is an input; -1: there are
// no places to pad.
template <class T>
struct TakeDiagonals {
  Band band;
  int padding;
  LEAT_DEVICE void operator()(int64_t i, const Pointers& p) const {
    const int64_t longest = band.longest(), row = i / longest;
    const int64_t d = band.high - row % band.count(), at = i % longest - band.offset(d);
    if (at < 0 || at >= band.length(d)) {
      p.output<T>()[i] = padding < 0 ? T{} : p.input<T>(padding)[0];
      return;
    }
    const int64_t first = d >= 0 ? d : -d * band.cols;
    const int64_t matrix = row / band.count() * band.rows * band.cols;
    p.output<T>()[i] = p.input<T>(0)[matrix + first + at * (band.cols + 1)];
  }
};

// An element of the matrices: from the packed diagonals, or what is there otherwise.
template <class T, bool sets>
struct PutDiagonals {
  Band band;
  int diagonals, padding;  // inputs; a padding of -1 is 0. With `sets`, input 0 is kept instead.
  LEAT_DEVICE void operator()(int64_t i, const Pointers& p) const {
    const int64_t m = i / band.cols % band.rows, n = i % band.cols, d = n - m;
    if (d < band.low || d > band.high) {
      if constexpr (sets) {
        p.output<T>()[i] = p.input<T>(0)[i];
      } else {
        p.output<T>()[i] = padding < 0 ? T{} : p.input<T>(padding)[0];
      }
      return;
    }
    const int64_t matrix = i / (band.rows * band.cols), along = d >= 0 ? m : n;
    p.output<T>()[i] =
        p.input<T>(diagonals)[(matrix * band.count() + band.high - d) * band.longest() +
                              band.offset(d) + along];
  }
};

std::vector<Kernel> part_kernels() {
  return moving_kernels("T", []<class T>(TypeTag<T>, const KernelRequest& r) {
    const bool has = has_band(r.node.op);
    const Band band = band_in(r.node, has ? r.inputs[1].value : nullptr, r.inputs[0].shape);
    return bind_indexed(r, r.outputs[0].shape.elements(), 0, TakeDiagonals<T>{band, has ? 2 : -1});
  });
}

std::vector<Kernel> diag_kernels() {
  return moving_kernels("T", []<class T>(TypeTag<T>, const KernelRequest& r) {
    const bool has = has_band(r.node.op);
    const auto value = [&](int i) { return has ? r.inputs[i].value : nullptr; };
    const Band band = diag_band(r.node, r.inputs[0].shape, value(1), value(2), value(3));
    return bind_indexed(r, r.outputs[0].shape.elements(), 0,
                        PutDiagonals<T, false>{band, 0, has ? 4 : -1});
  });
}

std::vector<Kernel> set_kernels() {
  return moving_kernels("T", []<class T>(TypeTag<T>, const KernelRequest& r) {
    const bool has = has_band(r.node.op);
    const Band band = band_in(r.node, has ? r.inputs[2].value : nullptr, r.inputs[0].shape);
    return bind_indexed(r, r.outputs[0].shape.elements(), 0, PutDiagonals<T, true>{band, 1, -1})
        .sharing(0, 0);
  });
}

const OpKernels part_v1{"MatrixDiagPart", part_kernels()};
const OpKernels part_v2{"MatrixDiagPartV2", part_kernels()};
const OpKernels part_v3{"MatrixDiagPartV3", part_kernels()};
const OpKernels diag_v1{"MatrixDiag", diag_kernels()};
const OpKernels diag_v2{"MatrixDiagV2", diag_kernels()};
const OpKernels diag_v3{"MatrixDiagV3", diag_kernels()};
const OpKernels set_v1{"MatrixSetDiag", set_kernels()};
const OpKernels set_v2{"MatrixSetDiagV2", set_kernels()};
const OpKernels set_v3{"MatrixSetDiagV3", set_kernels()};

}  // namespace
}  // namespace leat
