// StringSplit and StringSplitV2: the parts of each string as a row of a sparse matrix.
#include <functional>

#include "core/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"

namespace leat {
namespace {

using Parts = std::vector<std::string>;

// Splits at every byte that is one of `separators`; between all bytes if `separators` is empty.
Parts split_at_any(const std::string& text, const std::string& separators, bool skip_empty) {
  Parts parts;
  const auto add = [&](std::string part) {
    if (!skip_empty || !part.empty()) parts.push_back(std::move(part));
  };
  if (text.empty()) return parts;
  if (separators.empty()) {
    for (char c : text) parts.emplace_back(1, c);
    return parts;
  }
  size_t begin = 0;
  for (size_t end; (end = text.find_first_of(separators, begin)) != std::string::npos;
       begin = end + 1) {
    add(text.substr(begin, end - begin));
  }
  add(text.substr(begin));
  return parts;
}

// Splits at white space, without empty parts; after `most` cuts, unless that is negative, the rest
// is one more part, even if it is empty.
Parts split_at_spaces(const std::string& text, int64_t most) {
  const char* const spaces = " \t\n\r\f\v";
  if (most == 0) return {text};
  Parts parts;
  size_t begin = text.find_first_not_of(spaces);
  while (begin != std::string::npos) {
    const size_t end = std::min(text.find_first_of(spaces, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(spaces, end);
    if (static_cast<int64_t>(parts.size()) != most) continue;
    parts.push_back(text.substr(std::min(begin, text.size())));
    break;
  }
  return parts;
}

// Splits at every `separator`, with empty parts; at most `most` times unless it is negative.
Parts split_at(const std::string& text, const std::string& separator, int64_t most) {
  if (separator.empty()) return split_at_spaces(text, most);
  Parts parts;
  size_t begin = 0;
  for (size_t end; (end = text.find(separator, begin)) != std::string::npos;
       begin = end + separator.size()) {
    if (most >= 0 && static_cast<int64_t>(parts.size()) == most) break;
    parts.push_back(text.substr(begin, end - begin));
  }
  parts.push_back(text.substr(begin));
  return parts;
}

void set_outputs(ExecuteContext& c, const std::function<Parts(const std::string&)>& split) {
  const Tensor& input = c.input(0);
  check(input.shape().rank() == 1, "input must be a vector, got shape: ", input.shape());
  std::vector<Parts> rows;
  int64_t count = 0, longest = 0;
  for (const std::string& text : input.span<std::string>()) {
    StepEnd::pace(64);
    rows.push_back(split(text));
    count += static_cast<int64_t>(rows.back().size());
    longest = std::max(longest, static_cast<int64_t>(rows.back().size()));
  }
  Tensor indices(DType::i64, {count, 2}), values(DType::string, {count});
  auto* index = indices.data<int64_t>();
  auto* value = values.data<std::string>();
  for (size_t row = 0; row < rows.size(); ++row) {
    for (size_t i = 0; i < rows[row].size(); ++i) {
      *index++ = static_cast<int64_t>(row);
      *index++ = static_cast<int64_t>(i);
      *value++ = std::move(rows[row][i]);
    }
  }
  c.set_output(0, std::move(indices));
  c.set_output(1, std::move(values));
  c.set_output(2, Tensor::of<int64_t>({2}, {input.elements(), longest}));
}

void infer(ShapeContext& c) {
  c.with_rank(0, 1);
  c.set_output(0, {any, 2});
  c.set_output(1, {any});
  c.set_output(2, {2});
}

const Op split_op{{
    .name = "StringSplit",
    .doc = "The parts of each string between the bytes of delimiter, as a sparse matrix with a row "
           "per string; empty ones left out if skip_empty.",
    .inputs = {"input: string", "delimiter: string"},
    .outputs = {"indices: int64", "values: string", "shape: int64"},
    .attrs = {"skip_empty: bool = true"},
    .shape =
        [](ShapeContext& c) {
          c.with_rank(1, 0);
          infer(c);
        },
    .kernels = {{.execute =
                     [](ExecuteContext& c) {
                       const Tensor& delimiter = c.input(1);
                       check(delimiter.shape().rank() == 0,
                             "delimiter must be a scalar, got shape: ", delimiter.shape());
                       const bool skip_empty = c.node().attr<bool>("skip_empty");
                       set_outputs(c, [&](const std::string& text) {
                         return split_at_any(text, delimiter.item<std::string>(), skip_empty);
                       });
                     }}},
    .examples = {{.inputs = {texts({"a b", "", "c"}), Tensor::scalar(" ")},
                  .outputs = {longs({3, 2}, {0, 0, 0, 1, 2, 0}), texts({"a", "b", "c"}),
                              longs({3, 2})}}},
    .has_data_dependent_shape = true,
    .is_not_differentiable = true,
}};

const Op split_v2_op{{
    .name = "StringSplitV2",
    .doc = "The parts of each string between occurrences of sep, or of white space if it is empty, "
           "as a sparse matrix with a row per string; at most maxsplit cuts unless that is "
           "negative.",
    .inputs = {"input: string", "sep: string"},
    .outputs = {"indices: int64", "values: string", "shape: int64"},
    .attrs = {"maxsplit: int = -1"},
    .shape =
        [](ShapeContext& c) {
          c.with_rank(1, 0);
          infer(c);
        },
    .kernels = {{.execute =
                     [](ExecuteContext& c) {
                       const Tensor& separator = c.input(1);
                       check(separator.shape().rank() == 0,
                             "sep must be a scalar, got shape: ", separator.shape());
                       const int64_t most = c.node().attr<int64_t>("maxsplit");
                       set_outputs(c, [&](const std::string& text) {
                         return split_at(text, separator.item<std::string>(), most);
                       });
                     }}},
    .examples = {{.inputs = {texts({"a,,b", "c"}), Tensor::scalar(",")},
                  .outputs = {longs({4, 2}, {0, 0, 0, 1, 0, 2, 1, 0}), texts({"a", "", "b", "c"}),
                              longs({2, 3})}}},
    .has_data_dependent_shape = true,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
