// StringNGrams: n-grams of every row of a ragged tensor of words.
#include <algorithm>
#include <limits>

#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/examples.h"
#include "kernels/execute.h"

namespace leat {
namespace {

struct Options {
  std::string separator, left_pad, right_pad;
  int64_t pad_width;
  bool preserves_short;
  std::vector<int64_t> widths;

  explicit Options(const NodeView& node)
      : separator(node.attr<std::string>("separator")),
        left_pad(node.attr<std::string>("left_pad")),
        right_pad(node.attr<std::string>("right_pad")),
        pad_width(node.attr<int64_t>("pad_width")),
        preserves_short(node.attr<bool>("preserve_short_sequences")),
        widths(node.attr<std::vector<int64_t>>("ngram_widths")) {
    constexpr int64_t most = std::numeric_limits<int32_t>::max();
    for (const int64_t width : widths) {
      check(width > 0, "ngram_widths must contain positive values, not ", width);
      check(width <= most, "ngram_widths contains ", width, ", which is more than ", most);
    }
    check(pad_width >= -most && pad_width <= most, "pad_width ", pad_width, " is too large");
  }

  // The number of padding words that an n-gram may have at an end: at least one word is not
  // padding.
  int64_t padding(int64_t width) const {
    return std::min(pad_width < 0 ? width - 1 : pad_width, width - 1);
  }
  int64_t count(int64_t words, int64_t width) const {
    return std::max<int64_t>(0, words + 2 * padding(width) - width + 1);
  }
};

// Appends to `out` the n-grams of `width` words.
void add_ngrams(const Options& options, const std::string* words, int64_t num_words, int64_t width,
                int64_t count, std::vector<std::string>& out) {
  const int64_t padding = options.padding(width);
  for (int64_t i = 0; i < count; ++i) {
    StepEnd::pace(64);
    std::string ngram;
    for (int64_t at = i - padding; at < i - padding + width; ++at) {
      if (at > i - padding) ngram += options.separator;
      ngram += at < 0 ? options.left_pad : at < num_words ? words[at] : options.right_pad;
    }
    out.push_back(std::move(ngram));
  }
}

template <class T>
void check_splits(const Tensor& splits, int64_t num_words) {
  T last = 0;
  for (int64_t i = 0; i < splits.elements(); ++i) {
    const T split = splits.data<T>()[i];
    check(i > 0 || split == 0, "First split value must be 0, got ", split);
    check(split >= last && split <= num_words, "Invalid split value ", split, ", must be in [",
          last, ", ", num_words, "]");
    last = split;
  }
  check(splits.elements() == 0 || last == num_words,
        "Last split value must be data size. Expected ", num_words, ", got ", last);
}

template <class T>
void make_ngrams(ExecuteContext& c) {
  constexpr int64_t most_words = int64_t{1} << 32;  // in all n-grams together
  const Options options(c.node());
  const Tensor &data = c.input(0), &splits = c.input(1);
  check(data.shape().rank() == 1, "data must be a vector, got shape ", data.shape());
  check(splits.shape().rank() == 1, "data_splits must be a vector, got shape ", splits.shape());
  check_splits<T>(splits, data.elements());
  Tensor out_splits(splits.dtype(), splits.shape());
  if (data.elements() == 0 || splits.elements() == 0) {
    std::fill_n(out_splits.data<T>(), splits.elements(), T(0));
    c.set_output(0, Tensor(DType::string, data.shape()));
    c.set_output(1, std::move(out_splits));
    return;
  }
  std::vector<std::string> ngrams;
  out_splits.data<T>()[0] = 0;
  int64_t total_words = 0;
  for (int64_t row = 0; row + 1 < splits.elements(); ++row) {
    const int64_t start = splits.data<T>()[row], words = splits.data<T>()[row + 1] - start;
    const size_t before = ngrams.size();
    const auto add = [&](int64_t width, int64_t count) {
      int64_t more = 0;
      if (__builtin_mul_overflow(count, width, &more) || (total_words += more) > most_words) {
        fail(Code::resource_exhausted, "the n-grams of ", width, " words of row ", row,
             ", which has ", words, " words, have too many words in total");
      }
      add_ngrams(options, data.data<std::string>() + start, words, width, count, ngrams);
    };
    for (const int64_t width : options.widths) add(width, options.count(words, width));
    if (options.preserves_short && words > 0 && ngrams.size() == before) {
      check(options.pad_width >= 0,
            "Pad width should be >= 0 when preserve_short_sequences is True and ngram_widths are "
            "not provided, got ",
            options.pad_width);
      add(words + 2 * options.pad_width, 1);
    }
    const auto end = static_cast<int64_t>(ngrams.size());
    check(end <= std::numeric_limits<T>::max(), end, " n-grams are too many for ", splits.dtype(),
          " splits");
    out_splits.data<T>()[row + 1] = static_cast<T>(end);
  }
  c.set_output(0,
               Tensor::of<std::string>({std::ssize(ngrams)}, std::span<const std::string>(ngrams)));
  c.set_output(1, std::move(out_splits));
}

const Op ngrams_op{{
    .name = "StringNGrams",
    .doc =
        "ngrams = for each row of data and each of ngram_widths, all runs of so many words, joined "
        "by separator; data_splits says where rows start and end. A row is as if pad_width words "
        "left_pad and right_pad were around it (one less than the width, if that is less or "
        "pad_width is -1). A row without any is one n-gram if preserve_short_sequences.",
    .inputs = {"data: string", "data_splits: Tsplits"},
    .outputs = {"ngrams: string", "ngrams_splits: Tsplits"},
    .attrs = {"separator: string", "ngram_widths: list(int) >= 0", "left_pad: string",
              "right_pad: string", "pad_width: int", "preserve_short_sequences: bool",
              "Tsplits: {int32, int64} = int64"},
    .shape =
        [](ShapeContext& c) {
          c.with_rank(0, 1);
          c.set_output(0, Shape{any});
          c.set_output(1, c.with_rank(1, 1));
        },
    .kernels = {execute_kernel("Tsplits", Types<int32_t, int64_t>{},
                               []<class T>(TypeTag<T>, ExecuteContext& c) { make_ngrams<T>(c); })},
    .examples = {{.inputs = {texts({"a", "b", "c", "d"}), longs({0, 3, 4})},
                  .attrs = {{"separator", "-"},
                            {"ngram_widths", std::vector<int64_t>{2}},
                            {"left_pad", "<"},
                            {"right_pad", ">"},
                            {"pad_width", 1},
                            {"preserve_short_sequences", false}},
                  .outputs = {texts({"<-a", "a-b", "b-c", "c->", "<-d", "d->"}),
                              longs({0, 4, 6})}}},
    .has_data_dependent_shape = true,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
