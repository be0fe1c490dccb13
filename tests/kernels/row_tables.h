// The parts of the table that rows_for() looks ops up in, one file for each.
#pragma once

#include <vector>

#include "tests/kernels/rows.h"
#include "tests/support/run_op.h"

namespace leat {

std::vector<Row> elementwise_rows();  // and reductions
std::vector<Row> neural_rows();       // products, losses, activations, convolutions, pools
std::vector<Row> array_rows();        // images, shapes, parts of tensors
std::vector<Row> matrix_and_sparse_rows();

}  // namespace leat
