// What every device must do with every op: shared by the tests of the devices of this machine
// (every_op_test.cc) and of the GPU plug-in on the host (tests/cuda/).
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "graph/op_def.h"
#include "tests/support/run_op.h"

namespace leat {

template <class List, class T>
bool contains(const List& list, const T& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// All ops except those that Leat rejects and the ops of tests.
std::vector<const OpDef*> tested_ops();

// The tolerance of a dtype's arithmetic, relative to the largest number involved.
double tolerance_of(DType dtype);
// Relative to the larger number, or to 1. NaN equals NaN.
bool close(double a, double b, double tolerance);
void expect_equal(const Tensor& actual, const Tensor& expected, double tolerance,
                  const std::string& what);

// The outputs, but eigenvectors and singular vectors of real matrices with signs that every device
// and dtype chooses alike.
std::vector<Tensor> with_chosen_signs(const std::string& op, std::vector<Tensor> outputs);

// The dtypes that the op's T may have and some kernel of this device takes; none if no attribute is
// called T.
std::vector<DType> dtypes_of(const OpDef& op, DeviceType device);

// Every op that has a kernel there gives what its examples say, in place too. Returns the number of
// runs.
int expect_examples_hold(Device& device, const RunChoices& choices = {});

// Every op gives the CPU's results for its rows, in every dtype, in place too. Returns the number
// of runs.
int expect_agreement_with_the_cpu(Device& device, const RunChoices& choices = {});

// `_Attention` and its gradient, of which the CPU has no kernel, give what their parts give there
// (rows_attention.cc). Returns the number of runs.
int expect_attention_agrees_with_its_parts(Device& device, const RunChoices& choices = {});

// Kernels for matrices give the CPU's results for large ones, too (rows_large_matrices.cc). Returns
// the number of runs.
int expect_large_matrices_agree_with_the_cpu(Device& device, const RunChoices& choices = {});

}  // namespace leat
