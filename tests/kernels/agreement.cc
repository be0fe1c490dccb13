#include "tests/kernels/agreement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "graph/ops.h"
#include "graph/refused_ops.h"
#include "tests/kernels/rows.h"

namespace leat {
namespace {

std::string describe(const OpDef& op, const Device& device) {
  return op.name + " on " + device.name().to_string();
}

// Columns of matrices [..., rows, columns], which have either sign: by a number for each column,
// whose sign they take.
std::vector<double> weights_of_columns(const Tensor& matrices) {
  const int rank = matrices.shape().rank();
  const int64_t rows = matrices.shape()[rank - 2], columns = matrices.shape()[rank - 1];
  const std::vector<double> values = to_doubles(matrices);
  std::vector<double> out(values.size() / rows, 0.0);
  for (size_t i = 0; i < values.size(); ++i) {
    const auto row = static_cast<double>(i / columns % rows);
    out[i / (rows * columns) * columns + i % columns] += std::sin(row + 1) * values[i];
  }
  return out;
}
Tensor with_signs(const Tensor& matrices, const std::vector<double>& signs) {
  const int rank = matrices.shape().rank();
  const int64_t rows = matrices.shape()[rank - 2], columns = matrices.shape()[rank - 1];
  std::vector<double> values = to_doubles(matrices);
  check_internal(signs.size() * rows == values.size(), "vectors without a sign");
  for (size_t i = 0; i < values.size(); ++i)
    if (signs[i / (rows * columns) * columns + i % columns] < 0) values[i] = -values[i];
  return from_doubles(matrices.dtype(), matrices.shape(), values);
}

}  // namespace

std::vector<Tensor> with_chosen_signs(const std::string& op, std::vector<Tensor> outputs) {
  if (op != "SelfAdjointEigV2" && op != "Svd") return outputs;
  if (outputs[1].shape().rank() < 2) return outputs;  // without vectors
  const std::vector<double> signs = weights_of_columns(outputs[1]);
  for (size_t i = 1; i < outputs.size(); ++i) outputs[i] = with_signs(outputs[i], signs);
  return outputs;
}

bool close(double a, double b, double tolerance) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return std::abs(a - b) <= tolerance * std::max({1.0, std::abs(a), std::abs(b)});
}

void expect_equal(const Tensor& actual, const Tensor& expected, double tolerance,
                  const std::string& what) {
  ASSERT_EQ(actual.dtype(), expected.dtype()) << what;
  ASSERT_EQ(actual.shape(), expected.shape()) << what;
  if (actual.dtype() == DType::string) {
    const auto a = actual.span<std::string>(), b = expected.span<std::string>();
    EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin()))
        << what << ": " << actual << " is not " << expected;
    return;
  }
  const std::vector<double> a = to_doubles(actual), b = to_doubles(expected);
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_TRUE(close(a[i], b[i], tolerance))
        << what << ", element " << i << ": " << a[i] << " is not " << b[i] << "\n  " << actual
        << "\n  " << expected;
  }
}

std::vector<const OpDef*> tested_ops() {
  std::vector<const OpDef*> out;
  for (const OpDef* op : all_ops()) {
    if (refusal(op->name).empty() && !op->name.starts_with("Test")) out.push_back(op);
  }
  return out;
}

double tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::complex128:
      return 1e-12;
    case DType::f32:
    case DType::complex64:
      return 1e-5;
    case DType::f16:
      return 4e-3;
    case DType::bf16:
      return 3e-2;
    default:
      return 0;
  }
}

std::vector<DType> dtypes_of(const OpDef& op, DeviceType device) {
  std::vector<DType> out;
  const AttrDef* attr = op.schema.attr("T");
  if (attr == nullptr) return out;
  for (const Kernel& kernel : op.kernels) {
    if (kernel.device != device) continue;
    for (const TypeConstraint& constraint : kernel.types) {
      if (constraint.attr != "T") continue;
      for (DType dtype : constraint.allowed) {
        const bool allowed = attr->allowed_types.empty() || contains(attr->allowed_types, dtype);
        if (allowed && dtype_size(dtype) > 0 && dtype != DType::string && !contains(out, dtype))
          out.push_back(dtype);
      }
    }
  }
  return out;
}

int expect_examples_hold(Device& device, const RunChoices& choices) {
  int ran = 0;
  for (const OpDef* op : tested_ops()) {
    for (size_t e = 0; e < op->examples.size(); ++e) {
      const Example& example = op->examples[e];
      const std::string what = concat(describe(*op, device), ", example ", e);
      try {
        Graph graph;
        const Node& node = add_call(graph, op->name, example.inputs, example.attrs);
        // The runtime copies a constant to its device; the kernel does nothing.
        if (op->name == "Const" && device.type() != DeviceType::cpu) continue;
        if (!has_kernel(node, device.type())) {
          EXPECT_NE(device.type(), DeviceType::cpu) << what << ": no kernel";
          continue;
        }
        for (bool in_place : {false, true}) {
          const std::vector<Tensor> outputs =
              run_node(node, example.inputs, device, {in_place, choices.allocate});
          ++ran;
          EXPECT_EQ(outputs.size(), example.outputs.size()) << what;
          if (outputs.size() != example.outputs.size()) continue;
          for (size_t i = 0; i < outputs.size(); ++i) {
            EXPECT_TRUE(node.outputs.empty() ||
                        node.outputs[i].shape.is_compatible(example.outputs[i].shape()))
                << what << ": inferred " << node.outputs[i].shape;
            expect_equal(outputs[i], example.outputs[i], 1e-5,
                         concat(what, ", output ", i, in_place ? ", in place" : ""));
          }
        }
      } catch (const Error& error) {
        ADD_FAILURE() << what << ": " << error.message();
      }
    }
  }
  return ran;
}

int expect_agreement_with_the_cpu(Device& device, const RunChoices& choices) {
  int ran = 0;
  for (const OpDef* op : tested_ops()) {
    for (const Row& row : rows_for(*op)) {
      for (DType dtype : dtypes_of(*op, device.type())) {
        const std::string what = concat(describe(*op, device), " of ", dtype);
        try {
          const std::vector<Tensor> inputs = inputs_of(row, dtype);
          // A second type may have to match T, as in Complex; recurrent layers in 16 bits are for
          // GPUs alone (tests/cuda/recurrent_layers_test.cc).
          Graph graph;
          const Node& call = add_call(graph, op->name, inputs, row.attrs);
          if (!has_kernel(call, device.type()) || !has_kernel(call, DeviceType::cpu)) continue;
          const std::vector<Tensor> expected =
              with_chosen_signs(op->name, run_op(op->name, inputs, row.attrs));
          for (const bool in_place : {false, true}) {
            const std::vector<Tensor> actual = with_chosen_signs(
                op->name,
                run_op(op->name, inputs, row.attrs, device, {in_place, choices.allocate}));
            for (size_t i = 0; i < actual.size(); ++i) {
              // Floating-point results of integers are as inexact as others.
              const double tolerance =
                  std::max(tolerance_of(dtype), tolerance_of(expected[i].dtype()));
              expect_equal(actual[i], expected[i], tolerance,
                           in_place ? what + ", in place" : what);
            }
            ++ran;
          }
        } catch (const Error& error) {
          ADD_FAILURE() << what << ": " << error.message();
        }
      }
    }
  }
  return ran;
}

}  // namespace leat
