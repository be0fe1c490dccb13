#include "frontends/cpp/data/csv.h"

#include "graph/ops/graph_of.h"

namespace leat {

std::vector<Output> decode_csv(Output lines, const std::vector<CsvColumn>& columns,
                               const DecodeCsvOptions& options, Location at) {
  Graph& graph = graph_of(lines, at);
  check(lines.dtype() == DType::string, "decode_csv (", at, "): the lines, '", lines.name(),
        "', are ", lines.dtype(), ", not strings");
  check(!columns.empty(), "decode_csv (", at, "): there are no columns");
  check(options.columns.empty() || options.columns.size() == columns.size(), "decode_csv (", at,
        "): options.columns selects ", options.columns.size(), " columns, but ", columns.size(),
        " have a dtype or a default");
  for (size_t i = 0; i < options.columns.size(); ++i) {
    check(options.columns[i] >= 0 && (i == 0 || options.columns[i - 1] < options.columns[i]),
          "decode_csv (", at, "): options.columns must increase and not be negative");
  }
  std::vector<Output> inputs = {lines};
  for (size_t i = 0; i < columns.size(); ++i) {
    const DType dtype = columns[i].dtype();
    check(
        dtype == f32 || dtype == f64 || dtype == i32 || dtype == i64 || dtype == DType::string,
        "decode_csv (", at, "): column ", i, " is ", dtype,
        ", but a column is float32, float64, int32, int64 or string: use cast() for other dtypes");
    const Tensor value = columns[i].default_value();
    check(value.elements() <= 1, "decode_csv (", at, "): the default of column ", i, " has shape ",
          value.shape(), "; it must be a scalar");
    inputs.push_back(constant(graph, value, "default", at));
  }
  return op_outputs("DecodeCSV", inputs,
                    {{"field_delim", std::string(1, options.delimiter)},
                     {"use_quote_delim", options.quotes},
                     {"na_value", options.na_value},
                     {"select_cols", options.columns}},
                    at);
}

}  // namespace leat
