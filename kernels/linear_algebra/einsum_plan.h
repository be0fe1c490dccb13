// What an einsum does, whoever does it: its equation, and how operands are transposed to
// [batch, rows, summed] and [batch, summed, columns], multiplied as matrices, and the product
// transposed to the output's order.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/kernel.h"
#include "kernels/moves/strided_copy.h"

namespace leat {

struct Equation {
  static constexpr char ellipsis = '.';  // one character stands for "..."

  std::vector<std::string> inputs;  // labels of each operand's axes
  std::string output;

  // INVALID_ARGUMENT if it is none for so many operands.
  static Equation parse(const std::string& text, size_t num_inputs);
  // Replaces all ellipses by labels of their own. False if a rank that is needed is unknown.
  bool expand(const std::vector<Shape>& shapes);
  // The extent of every label, once expanded. Axes of an ellipsis are broadcast.
  std::map<char, int64_t> extents(const std::vector<Shape>& shapes) const;
};

struct EinsumPlan {
  // Between a tensor and the dense order of its labels in the product.
  struct Packing {
    StridedCopy copy;
    size_t bytes = 0;         // of the dense elements, rounded up to multiples of 64
    bool is_identity = true;  // the elements lie in this order already
  };
  int64_t batches = 1, m = 1, n = 1, k = 1;
  std::vector<Packing> operands;  // one or two; beside a single one the other is k ones
  Packing result;
  bool clears_output = false;  // a label appears twice: the result is a part of it
};

EinsumPlan plan_einsum(const KernelRequest& request);

}  // namespace leat
