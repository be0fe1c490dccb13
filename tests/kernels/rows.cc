#include "tests/kernels/rows.h"

#include <cmath>

#include "tests/kernels/row_tables.h"

namespace leat {
namespace {

std::vector<Row> table() {
  std::vector<Row> rows;
  for (const auto& part : {elementwise_rows, neural_rows, array_rows, matrix_and_sparse_rows}) {
    for (Row& row : part()) rows.push_back(std::move(row));
  }
  return rows;
}

// Numbers in [0, 1) that are the same on every machine.
class Numbers {
 public:
  double next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state_ >> 11) / 9007199254740992.0;
  }

 private:
  uint64_t state_ = 20250101;
};

// The dtype of an input: `dtype`, unless the op's schema says float or another floating-point type.
DType input_dtype(const Row& row, int input, DType dtype) {
  const std::vector<ArgDef>& inputs = op_named(row.op).schema.inputs;
  for (int i = 0; i < static_cast<int>(inputs.size()) && !inputs[i].is_list(); ++i) {
    if (i == input && inputs[i].dtype != DType::invalid && is_floating(inputs[i].dtype))
      return inputs[i].dtype;
  }
  return dtype;
}

bool is_unsigned(DType dtype) {
  return dtype == u8 || dtype == u16 || dtype == u32 || dtype == u64;
}

}  // namespace

std::vector<Row> rows_for(const OpDef& op) {
  static const std::vector<Row> all = table();
  std::vector<Row> found;
  for (const Row& row : all) {
    if (row.op == op.name) found.push_back(row);
  }
  if (!found.empty()) return found;
  const size_t num_inputs = op.schema.inputs.size();
  if (num_inputs < 1 || num_inputs > 2) return {};
  for (const ArgDef& input : op.schema.inputs) {
    if (input.type_attr != "T" || input.is_list() || input.is_ref) return {};
  }
  for (const AttrDef& attr : op.schema.attrs) {
    if (attr.name != "T" && !attr.default_value) return {};
  }
  return {{.op = op.name, .shapes = std::vector<Shape>(num_inputs, {3, 4})}};
}

std::vector<Tensor> inputs_of(const Row& row, DType requested) {
  Numbers numbers;
  std::vector<Tensor> inputs;
  for (int i = 0; i < static_cast<int>(row.shapes.size()); ++i) {
    const DType dtype = input_dtype(row, i, requested);
    const auto fixed = row.fixed.find(i);
    if (fixed != row.fixed.end()) {
      const Tensor& value = fixed->second;
      inputs.push_back(value.dtype() == f32 ? from_doubles(dtype, value.shape(), to_doubles(value))
                                            : value);
      continue;
    }
    std::vector<double> values(row.shapes[i].elements());
    for (double& value : values) {
      value = row.low + (row.high - row.low) * numbers.next();
      for (double kink : row.avoid) {
        if (std::abs(value - kink) < 0.1) value = kink + (value < kink ? -0.1 : 0.1);
      }
      if (is_integer(dtype)) value = std::round(is_unsigned(dtype) ? std::abs(value) : value);
    }
    inputs.push_back(from_doubles(dtype, row.shapes[i], values));
  }
  return inputs;
}

}  // namespace leat
