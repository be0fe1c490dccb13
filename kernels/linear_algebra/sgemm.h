// f32 products by oneDNN's sgemm, single-threaded: our pool splits the rows or columns.
#pragma once

#include "kernels/linear_algebra/matmul.h"

namespace leat {

class Sgemm {
 public:
  // Neither m, n nor k is 0.
  explicit Sgemm(const MatMul& extents);

  size_t workspace_bytes() const;
  void run(Stream& stream, const float* a, const float* b, float* product, void* workspace) const;

 private:
  enum class Way {
    plain,
    turned_product,  // computes the transposed product in the workspace, then turns it
    turned_a,        // turns `a` in the workspace first
    turned_b
  };
  static Way way(const MatMul& extents);

  MatMul extents_;
  Way way_;
};

}  // namespace leat
