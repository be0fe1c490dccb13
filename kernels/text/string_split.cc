// StringSplit and StringSplitV2: the parts of each string as a row of a sparse matrix.
#include <algorithm>
#include <string_view>

#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"

namespace leat {
namespace {

using Text = std::string_view;

class ByteSet {
 public:
  constexpr explicit ByteSet(Text bytes) {
    for (const char byte : bytes) has_[static_cast<uint8_t>(byte)] = true;
  }
  // The first place from `at` on whose byte is in the set, or is not; the text's end if none is.
  size_t find(Text text, size_t at) const { return find(text, at, true); }
  size_t find_other(Text text, size_t at) const { return find(text, at, false); }

 private:
  size_t find(Text text, size_t at, bool in) const {
    while (at < text.size() && has_[static_cast<uint8_t>(text[at])] != in) ++at;
    return at;
  }
  bool has_[256] = {};
};

// Calls add(part) for the parts between bytes in `separators`.
template <class Add>
void split_at_any(Text text, const ByteSet& separators, bool skip_empty, Add add) {
  if (text.empty()) return;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = separators.find(text, begin);
    if (!skip_empty || end > begin) add(text.substr(begin, end - begin));
    begin = end + 1;
  }
}

template <class Add>
void split_into_bytes(Text text, Add add) {
  for (size_t i = 0; i < text.size(); ++i) add(text.substr(i, 1));
}

// Splits at white space, without empty parts; after `most` cuts, unless that is negative, the rest
// is one more part, even if it is empty.
template <class Add>
void split_at_spaces(Text text, int64_t most, Add add) {
  static constexpr ByteSet spaces(" \t\n\r\f\v");
  if (most == 0) return add(text);
  size_t begin = spaces.find_other(text, 0);
  for (int64_t cuts = 1; begin < text.size(); ++cuts) {
    const size_t end = spaces.find(text, begin);
    add(text.substr(begin, end - begin));
    begin = spaces.find_other(text, end);
    if (cuts == most) return add(text.substr(begin));
  }
}

// Splits at every `separator`, with empty parts; at most `most` times unless it is negative.
template <class Add>
void split_at(Text text, Text separator, int64_t most, Add add) {
  if (separator.empty()) return split_at_spaces(text, most, add);
  const auto find = [&](size_t begin) {  // a search for one byte is a single memchr
    return separator.size() == 1 ? text.find(separator[0], begin) : text.find(separator, begin);
  };
  size_t begin = 0;
  for (int64_t cuts = 0; cuts != most; ++cuts) {
    const size_t end = find(begin);
    if (end == Text::npos) break;
    add(text.substr(begin, end - begin));
    begin = end + separator.size();
  }
  add(text.substr(begin));
}

// split(text, add) calls add(part) for the parts of a text. All texts are split twice, to count
// the parts and to write them: to keep the places of all parts in between would take longer.
template <class Split>
void set_outputs(ExecuteContext& c, Split split) {
  const Tensor& input = c.input(0);
  check(input.shape().rank() == 1, "input must be a vector, got shape: ", input.shape());
  const auto texts = input.span<std::string>();
  int64_t count = 0, longest = 0;
  for (const std::string& text : texts) {
    StepEnd::pace(64);
    int64_t parts = 0;
    split(text, [&](Text) { ++parts; });
    count += parts;
    longest = std::max(longest, parts);
  }
  Tensor indices(DType::i64, {count, 2}), values(DType::string, {count});
  auto* index = indices.data<int64_t>();
  auto* value = values.data<std::string>();
  int64_t row = 0;
  for (const std::string& text : texts) {
    StepEnd::pace(64);
    int64_t column = 0;
    split(text, [&](Text part) {
      *index++ = row;
      *index++ = column++;
      (value++)->assign(part);
    });
    ++row;
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
                       const Text separators = *delimiter.data<std::string>();
                       if (separators.empty()) {
                         return set_outputs(
                             c, [](Text text, auto add) { split_into_bytes(text, add); });
                       }
                       set_outputs(c, [&, set = ByteSet(separators)](Text text, auto add) {
                         split_at_any(text, set, skip_empty, add);
                       });
                     }}},
    .examples = {{.inputs = {texts({"a b", "", "c"}), Tensor::scalar(" ")},
                  .outputs = {longs({3, 2}, {0, 0, 0, 1, 2, 0}), texts({"a", "b", "c"}),
                              longs({3, 2})}},
                 {.inputs = {texts({"a,.b", ",", ""}), Tensor::scalar(".,")},
                  .attrs = {{"skip_empty", false}},
                  .outputs = {longs({5, 2}, {0, 0, 0, 1, 0, 2, 1, 0, 1, 1}),
                              texts({"a", "", "b", "", ""}), longs({3, 3})}},
                 {.inputs = {texts({"ab"}), Tensor::scalar("")},
                  .outputs = {longs({2, 2}, {0, 0, 0, 1}), texts({"a", "b"}), longs({1, 2})}}},
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
                       set_outputs(c, [&](Text text, auto add) { split_at(text, at, most, add); });
                     }}},
    .examples = {{.inputs = {texts({"a,,b", "c"}), Tensor::scalar(",")},
                  .outputs = {longs({4, 2}, {0, 0, 0, 1, 0, 2, 1, 0}), texts({"a", "", "b", "c"}),
                              longs({2, 3})}},
                 {.inputs = {texts({"a, b, c", ""}), Tensor::scalar(", ")},
                  .attrs = {{"maxsplit", int64_t{1}}},
                  .outputs = {longs({3, 2}, {0, 0, 0, 1, 1, 0}), texts({"a", "b, c", ""}),
                              longs({2, 2})}},
                 {.inputs = {texts({" a\t b ", "c ", " "}), Tensor::scalar("")},
                  .attrs = {{"maxsplit", int64_t{1}}},
                  .outputs = {longs({4, 2}, {0, 0, 0, 1, 1, 0, 1, 1}), texts({"a", "b ", "c", ""}),
                              longs({3, 2})}}},
    .has_data_dependent_shape = true,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
