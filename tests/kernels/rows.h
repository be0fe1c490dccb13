// The table behind every_op_test: how to call an op with more than its examples. A tolerance or a
// kink belongs to the op's row here, not to the test that happened to fail.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "graph/op_def.h"

namespace leat {

struct Row {
  std::string op;
  std::vector<Shape> shapes;  // of the inputs
  AttrMap attrs = {};
  // Inputs with given elements: axes, shapes, conditions. Floats are converted to the requested
  // dtype.
  std::map<int, Tensor> fixed = {};
  double low = -2, high = 2;          // of the other inputs' elements
  std::vector<double> avoid = {};     // kinks and poles: elements keep 0.1 away from these
  double tolerance = 1e-5;            // of the gradient, relative to max(1, |gradient|)
  int output = 0;                     // the differentiated output
  bool needs_rank = false;            // the gradient exists only where ranks are known
  std::vector<int> no_gradient = {};  // floating inputs without a gradient
};

// Rows for this op: those of the table, or one with all inputs of shape [3, 4] if the op takes one
// or two tensors of type T and nothing else. Empty if it needs a row and has none.
std::vector<Row> rows_for(const OpDef& op);

// The inputs of a call by this row, in `requested` unless the op has another for them. The same for
// equal rows on every machine.
std::vector<Tensor> inputs_of(const Row& row, DType requested);

}  // namespace leat
