// StringSplit and StringSplitV2: the parts of each string as a row of a sparse matrix.
#include <algorithm>
#include <string_view>
#include <vector>

#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"

namespace leat {
namespace {

using Text = std::string_view;
using Parts = std::vector<Text>;

// Adds the parts between bytes that are one of `separators`; every byte if `separators` is empty.
void split_at_any(Text text, Text separators, bool skip_empty, Parts& parts) {
  const auto add = [&](Text part) {
    if (!skip_empty || !part.empty()) parts.push_back(part);
  };
  if (text.empty()) return;
  if (separators.empty()) {
    for (size_t i = 0; i < text.size(); ++i) parts.push_back(text.substr(i, 1));
    return;
  }
  size_t begin = 0;
  for (size_t end; (end = text.find_first_of(separators, begin)) != Text::npos; begin = end + 1)
    add(text.substr(begin, end - begin));
  add(text.substr(begin));
}

// Splits at white space, without empty parts; after `most` cuts, unless that is negative, the rest
// is one more part, even if it is empty.
void split_at_spaces(Text text, int64_t most, Parts& parts) {
  const Text spaces = " \t\n\r\f\v";
  if (most == 0) return parts.push_back(text);
  const size_t before = parts.size();
  size_t begin = text.find_first_not_of(spaces);
  while (begin != Text::npos) {
    const size_t end = std::min(text.find_first_of(spaces, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(spaces, end);
    if (static_cast<int64_t>(parts.size() - before) != most) continue;
    parts.push_back(text.substr(std::min(begin, text.size())));
    break;
  }
}

// Splits at every `separator`, with empty parts; at most `most` times unless it is negative.
void split_at(Text text, Text separator, int64_t most, Parts& parts) {
  if (separator.empty()) return split_at_spaces(text, most, parts);
  const size_t before = parts.size();
  size_t begin = 0;
  for (size_t end; (end = text.find(separator, begin)) != Text::npos;
       begin = end + separator.size()) {
    if (most >= 0 && static_cast<int64_t>(parts.size() - before) == most) break;
    parts.push_back(text.substr(begin, end - begin));
  }
  parts.push_back(text.substr(begin));
}

// `split` adds the parts of a text.
template <class Split>
void set_outputs(ExecuteContext& c, Split split) {
  const Tensor& input = c.input(0);
  check(input.shape().rank() == 1, "input must be a vector, got shape: ", input.shape());
  Parts parts;  // of all texts
  std::vector<size_t> ends;
  ends.reserve(input.elements());
  for (const std::string& text : input.span<std::string>()) {
    StepEnd::pace(64);
    split(text, parts);
    ends.push_back(parts.size());
  }
  const auto count = static_cast<int64_t>(parts.size());
  Tensor indices(DType::i64, {count, 2}), values(DType::string, {count});
  auto* index = indices.data<int64_t>();
  auto* value = values.data<std::string>();
  size_t longest = 0, begin = 0;
  for (size_t row = 0; row < ends.size(); begin = ends[row++]) {
    StepEnd::pace(64);
    longest = std::max(longest, ends[row] - begin);
    for (size_t i = begin; i < ends[row]; ++i) {
      *index++ = static_cast<int64_t>(row);
      *index++ = static_cast<int64_t>(i - begin);
      (value++)->assign(parts[i]);
    }
  }
  c.set_output(0, std::move(indices));
  c.set_output(1, std::move(values));
  c.set_output(2, Tensor::of<int64_t>({2}, {input.elements(), static_cast<int64_t>(longest)}));
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
                       const Text separators = *delimiter.data<std::string>();
                       set_outputs(c, [&](Text text, Parts& parts) {
                         split_at_any(text, separators, skip_empty, parts);
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
                       const Text at = *separator.data<std::string>();
                       set_outputs(
                           c, [&](Text text, Parts& parts) { split_at(text, at, most, parts); });
                     }}},
    .examples = {{.inputs = {texts({"a,,b", "c"}), Tensor::scalar(",")},
                  .outputs = {longs({4, 2}, {0, 0, 0, 1, 0, 2, 1, 0}), texts({"a", "", "b", "c"}),
                              longs({2, 3})}}},
    .has_data_dependent_shape = true,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
