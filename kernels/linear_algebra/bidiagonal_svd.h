// The singular value decomposition of a bidiagonal matrix, for dense_eigen.h, which includes it
// into its version. By implicit QR steps (G. Golub, W. Kahan, "Calculating the singular values and
// pseudo-inverse of a matrix", 1965; Golub and Van Loan, "Matrix computations", 8.6). Eigen 3.4
// divides the matrix instead (BDCSVD): of matrices of low rank its vectors may not be orthonormal,
// or be NaN, and of some floats it reads outside its memory.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/linear_algebra/dense.h"

namespace leat {
namespace LEAT_VERSION {

// B = Q diag(d) P', B with `diagonal` d and, above it, e. Real matrices Q and P, [n, n], are
// multiplied by the vectors from the right; their columns are contiguous. Either may be null.
template <class R>
class BidiagonalSvd {
 public:
  BidiagonalSvd(std::vector<double>& d, std::vector<double>& e, R* q, R* p)
      : n_(static_cast<int64_t>(d.size())), d_(d), e_(e), q_(q), p_(p) {}

  // Makes d the singular values, in falling order. False if it did not converge.
  bool run() {
    double largest = 0;
    for (const double x : d_) largest = std::max(largest, std::abs(x));
    for (const double x : e_) largest = std::max(largest, std::abs(x));
    tiny_ = epsilon_ * largest;
    int64_t left = 60 * n_;  // steps; two or three per value are usual
    for (int64_t last = n_ - 1; last > 0;) {
      if (--left < 0) return false;
      ask_for_step_end();
      for (int64_t i = 0; i < last; ++i)
        if (std::abs(e_[i]) <= epsilon_ * (std::abs(d_[i]) + std::abs(d_[i + 1]))) e_[i] = 0;
      if (e_[last - 1] == 0) {
        --last;
        continue;
      }
      int64_t first = last - 1;
      while (first > 0 && e_[first - 1] != 0) --first;
      if (!split_at_zero(first, last)) step(first, last);
    }
    sort();
    return true;
  }

 private:
  struct Rotation {
    double cosine = 1, sine = 0, length;
    Rotation(double x, double y) : length(std::hypot(x, y)) {
      if (length == 0) return;
      cosine = x / length;
      sine = y / length;
    }
  };

  // Columns i and j become cosine i + sine j and cosine j - sine i.
  void rotate(R* vectors, int64_t i, int64_t j, const Rotation& by) const {
    if (vectors == nullptr) return;
    R* __restrict x = vectors + i * n_;
    R* __restrict y = vectors + j * n_;
    const R c = static_cast<R>(by.cosine), s = static_cast<R>(by.sine);
    for (int64_t k = 0; k < n_; ++k) {
      const R before = x[k];
      x[k] = c * before + s * y[k];
      y[k] = c * y[k] - s * before;
    }
  }

  // Where the diagonal of the block is zero, what stands beside it is turned to zero.
  bool split_at_zero(int64_t first, int64_t last) {
    for (int64_t k = first; k < last; ++k) {
      if (std::abs(d_[k]) > tiny_) continue;
      d_[k] = 0;
      double rest = std::exchange(e_[k], 0);
      for (int64_t j = k + 1; j <= last && rest != 0; ++j) {
        const Rotation turn(d_[j], rest);
        d_[j] = turn.length;
        rest = 0;
        if (j < last) {
          rest = -turn.sine * e_[j];
          e_[j] *= turn.cosine;
        }
        rotate(q_, j, k, turn);
      }
      return true;
    }
    if (std::abs(d_[last]) > tiny_) return false;
    d_[last] = 0;
    double rest = std::exchange(e_[last - 1], 0);
    for (int64_t j = last - 1; j >= first && rest != 0; --j) {
      const Rotation turn(d_[j], rest);
      d_[j] = turn.length;
      rest = 0;
      if (j > first) {
        rest = -turn.sine * e_[j - 1];
        e_[j - 1] *= turn.cosine;
      }
      rotate(p_, j, last, turn);
    }
    return true;
  }

  // The eigenvalue of the last two rows and columns of B' B that is closer to its last element.
  double shift(int64_t first, int64_t last) const {
    const double above = last - 1 > first ? e_[last - 2] : 0;
    const double a = d_[last - 1] * d_[last - 1] + above * above, b = d_[last - 1] * e_[last - 1],
                 c = d_[last] * d_[last] + e_[last - 1] * e_[last - 1];
    const double half = (a - c) / 2, root = std::hypot(half, b);
    const double divisor = half + std::copysign(root, half);
    return divisor == 0 ? c : c - b * b / divisor;
  }

  void step(int64_t first, int64_t last) {
    double y = d_[first] * d_[first] - shift(first, last), z = d_[first] * e_[first];
    for (int64_t k = first; k < last; ++k) {
      const Rotation right(y, z);
      if (k > first) e_[k - 1] = right.length;
      y = right.cosine * d_[k] + right.sine * e_[k];
      e_[k] = right.cosine * e_[k] - right.sine * d_[k];
      z = right.sine * d_[k + 1];
      d_[k + 1] *= right.cosine;
      rotate(p_, k, k + 1, right);
      const Rotation left(y, z);
      d_[k] = left.length;
      y = left.cosine * e_[k] + left.sine * d_[k + 1];
      d_[k + 1] = left.cosine * d_[k + 1] - left.sine * e_[k];
      if (k + 1 < last) {
        z = left.sine * e_[k + 1];
        e_[k + 1] *= left.cosine;
      }
      rotate(q_, k, k + 1, left);
    }
    e_[last - 1] = y;
  }

  // Makes all values positive and puts them in order.
  void sort() {
    for (int64_t k = 0; k < n_; ++k) {
      if (std::signbit(d_[k])) {
        d_[k] = -d_[k];
        for (int64_t i = 0; p_ != nullptr && i < n_; ++i) p_[k * n_ + i] = -p_[k * n_ + i];
      }
    }
    for (int64_t k = 0; k + 1 < n_; ++k) {
      const int64_t largest = std::max_element(d_.begin() + k, d_.end()) - d_.begin();
      if (largest == k) continue;
      std::swap(d_[k], d_[largest]);
      for (R* vectors : {q_, p_}) {
        if (vectors != nullptr)
          std::swap_ranges(vectors + k * n_, vectors + (k + 1) * n_, vectors + largest * n_);
      }
    }
  }

  const int64_t n_;
  const double epsilon_ = sizeof(R) == sizeof(float) ? 1e-9 : 2.3e-16;  // of d and e
  std::vector<double>&d_, &e_;
  R *const q_, *const p_;
  double tiny_ = 0;  // what counts as zero on the diagonal
};

}  // namespace LEAT_VERSION
}  // namespace leat
