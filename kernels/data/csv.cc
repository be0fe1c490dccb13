// DecodeCSV: converts records of comma separated values (RFC 4180) to a tensor per column.
#include <cmath>
#include <cstdlib>
#include <limits>

#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/data/csv_field.h"
#include "kernels/examples.h"

namespace leat {
namespace {

struct Dialect {
  char delimiter;
  bool has_quotes;
  std::string missing;
  std::vector<int64_t> columns;  // the selected ones, in order; empty: all
};

// One field from `at` on; `at` moves past its delimiter.
std::string next_field(const std::string& record, size_t& at, const Dialect& dialect) {
  std::string field;
  const size_t n = record.size();
  if (!dialect.has_quotes || record[at] != '"') {
    for (; at < n && record[at] != dialect.delimiter; ++at) {
      check((!dialect.has_quotes || record[at] != '"') && record[at] != '\n' && record[at] != '\r',
            "Unquoted fields cannot have quotes/CRLFs inside");
      field += record[at];
    }
    ++at;
    return field;
  }
  ++at;
  while (at + 1 < n && (record[at] != '"' || record[at + 1] != dialect.delimiter)) {
    if (record[at] == '"') {
      check(record[at + 1] == '"', "Quote inside a string has to be escaped by another quote");
      ++at;
    }
    field += record[at++];
  }
  check(at < n && record[at] == '"' && (at + 1 == n || record[at + 1] == dialect.delimiter),
        "Quoted field has to end with quote followed by delim or end");
  at += 2;
  return field;
}

std::vector<std::string> fields_of(const std::string& record, const Dialect& dialect) {
  std::vector<std::string> fields;
  int64_t column = 0;
  const auto is_wanted = [&] {
    return dialect.columns.empty() ||
           (fields.size() < dialect.columns.size() && dialect.columns[fields.size()] == column);
  };
  for (size_t at = 0; at < record.size();) {
    if (record[at] == '\n' || record[at] == '\r') {
      ++at;
      continue;
    }
    std::string field = next_field(record, at, dialect);
    if (is_wanted()) fields.push_back(std::move(field));
    ++column;
    if (!dialect.columns.empty() && fields.size() == dialect.columns.size()) return fields;
  }
  if (!record.empty() && record.back() == dialect.delimiter && is_wanted()) fields.emplace_back();
  return fields;
}

BoundKernel prepare(const KernelRequest& r) {
  const std::string& delimiter = r.attr<std::string>("field_delim");
  check(delimiter.size() == 1, "field_delim should be only 1 char, got \"", delimiter, "\"");
  Dialect dialect{.delimiter = delimiter[0],
                  .has_quotes = r.attr<bool>("use_quote_delim"),
                  .missing = r.attr<std::string>("na_value"),
                  .columns = r.attr<std::vector<int64_t>>("select_cols")};
  const size_t count = r.outputs.size();
  check(dialect.columns.empty() || dialect.columns.size() == count,
        "select_cols should match output size: ", dialect.columns.size(), " and ", count);
  for (size_t i = 0; i < dialect.columns.size(); ++i) {
    check(dialect.columns[i] >= 0, "select_cols should be non-negative indices");
    check(i == 0 || dialect.columns[i - 1] < dialect.columns[i],
          "select_cols should be strictly increasing indices");
  }
  std::vector<TensorSpec> defaults(r.inputs.begin() + 1, r.inputs.end());
  for (const TensorSpec& value : defaults) check_field_default(value.shape);
  return BoundKernel::of(
      [=, dialect = std::move(dialect), n = r.inputs[0].shape.elements()](const Arguments& a) {
        for (int64_t i = 0; i < n; ++i) {
          StepEnd::pace(64 * static_cast<int64_t>(count));
          const std::vector<std::string> fields = fields_of(a.input<std::string>(0)[i], dialect);
          check(fields.size() == count, "Expect ", count, " fields but have ", fields.size(),
                " in record ", i);
          for (size_t f = 0; f < count; ++f) {
            const int input = static_cast<int>(f) + 1;
            visit_type(FieldTypes{}, defaults[f].dtype, [&]<class T>(TypeTag<T>) {
              const T* otherwise = defaults[f].shape.elements() == 1 ? a.input<T>(input) : nullptr;
              read_field(fields[f], dialect.missing, otherwise, f, i,
                         a.output<T>(static_cast<int>(f))[i]);
              return 0;
            });
          }
        }
      });
}

const Op decode_csv_op{{
    .name = "DecodeCSV",
    .doc =
        "output[f][i…] = field f of records[i…], converted to the type of record_defaults[f], or "
        "that default where the field is empty or na_value; a default without elements makes "
        "the field required. select_cols: the columns that are wanted.",
    .inputs = {"records: string", "record_defaults: OUT_TYPE"},
    .outputs = {"output: OUT_TYPE"},
    .attrs = {"OUT_TYPE: list({float, double, int32, int64, string}) >= 1",
              "field_delim: string = ','", "use_quote_delim: bool = true", "na_value: string = ''",
              "select_cols: list(int) = []"},
    .shape =
        [](ShapeContext& c) {
          for (int i = 1; i < c.num_inputs(); ++i) {
            const Shape& shape = c.input(i);
            check(!shape.has_rank() || shape.rank() <= 1,
                  "Shape of a default must be a length-0 or length-1 vector, or a scalar, got ",
                  shape);
            check(shape.rank() != 1 || shape[0] <= 1,
                  "Shape of a default must be a length-0 or length-1 vector, or a scalar, got ",
                  shape);
          }
          for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, c.input(0));
        },
    .kernels = {cpu_kernel(prepare)},
    .examples = {{.inputs = {Tensor::of<std::string>({2}, {"1,\"a,b\"", "2.5,"}), floats({}),
                             Tensor::of<std::string>({1}, {"none"})},
                  .outputs = {floats({1, 2.5f}), Tensor::of<std::string>({2}, {"a,b", "none"})}}},
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
