#include "frontends/cpp/nn/metrics.h"

#include "graph/ops.h"

namespace leat {
namespace {

// The classes of rows of logits: as they are given, or where one-hot rows have their one.
Output classes_of(std::string_view what, const Output& logits, Output labels, Location at) {
  check(logits && labels, what, " (", at, "): an operand is an empty Output");
  const Shape& rows = logits.shape();
  // A column of class numbers, [batch, 1], is no one-hot row.
  const bool are_one_hot = labels.shape().rank() == 2 && labels.shape()[1] > 1 &&
                           rows.rank() == 2 && labels.shape()[1] == rows[1];
  if (are_one_hot) labels = argmax(cast(labels, f32, at), 1, {}, at);
  const Shape& classes = labels.shape();
  const bool fits = is_integer(labels.dtype()) && (!classes.has_rank() || classes.rank() == 1) &&
                    (!rows.has_rank() || rows.rank() == 2);
  const bool are_as_many = !fits || !rows.has_rank() || !classes.has_rank() || rows[0] == any ||
                           classes[0] == any || rows[0] == classes[0];
  check(fits && are_as_many, what, " (", at,
        "): logits must be [batch, classes] and labels class numbers (int32 or "
        "int64, [batch]) or one-hot rows, got ",
        logits.name(), " ", logits.dtype(), rows, " and ", labels.name(), " ", labels.dtype(),
        classes);
  return labels;
}

Output hits(Output logits, Output labels, Location at) {
  const Output guess = cast(argmax(logits, 1, {}, at), labels.dtype(), at);
  return cast(equal({guess, at}, labels), f32, at);
}

}  // namespace
}  // namespace leat

namespace leat::nn {

Output accuracy(Output logits, Output labels, Location at) {
  labels = classes_of("accuracy", logits, labels, at);
  const NameScope scope(logits.graph(), "accuracy");
  return mean(hits(logits, labels, at), {}, {}, at);
}

Output top_k_accuracy(Output logits, Output labels, int k, Location at) {
  labels = classes_of("top_k_accuracy", logits, labels, at);
  check(k > 0, "top_k_accuracy (", at, "): k must be positive, got ", k);
  const NameScope scope(logits.graph(), "top_k_accuracy");
  return mean(cast(in_top_k(logits, labels, k, at), f32, at), {}, {}, at);
}

Output confusion_matrix(Output labels, Output predictions, int64_t classes, Location at) {
  check(labels && predictions, "confusion_matrix (", at, "): an operand is an empty Output");
  check(is_integer(labels.dtype()) && is_integer(predictions.dtype()) &&
            labels.shape().is_compatible(predictions.shape()),
        "confusion_matrix (", at, "): labels and predictions must be class numbers of one shape, ",
        "got ", labels.name(), " ", labels.dtype(), labels.shape(), " and ", predictions.name(),
        " ", predictions.dtype(), predictions.shape());
  check(classes > 0, "confusion_matrix (", at, "): classes must be positive, got ", classes);
  const NameScope scope(labels.graph(), "confusion_matrix");
  const LocationScope line(labels.graph(), at);
  const auto column = [&](Output x) { return cast(reshape(x, {-1}, at), i64, at); };
  const Output pairs = stack({column(labels), column(predictions)}, 1, at);
  const Output ones = ones_like(column(labels), i32, at);
  return scatter_nd(pairs, ones, {classes, classes}, at);
}

Output perplexity(Output losses, Location at) {
  check(bool{losses}, "perplexity (", at, "): its operand is an empty Output");
  const NameScope scope(losses.graph(), "perplexity");
  return exp(mean(losses, {}, {}, at), at);
}

}  // namespace leat::nn

namespace leat::metrics {
namespace {

// Sums over steps.
class Sums {
 public:
  Sums(Graph& graph, std::string_view name, Location at)
      : graph_(graph), scope_(graph, name), line_(graph, at), at_(at) {}

  // The sum so far; each update adds `by`.
  Output add(std::string_view name, const Shape& shape, Output by) {
    const Output total =
        variable(graph_, name, shape, initializers::zeros(), f32, {.trainable = false}, at_);
    graph_.add_to_collection("metric_variables", total);
    updates_.push_back(assign_add(total, by, at_));
    resets_.push_back(assign(total, zeros(graph_, shape, f32, at_), at_));
    return total;
  }
  Node& update() { return group(graph_, updates_, "update", at_); }
  Node& reset() { return group(graph_, resets_, "reset", at_); }

 private:
  Graph& graph_;
  const NameScope scope_;
  const LocationScope line_;
  const Location at_;
  std::vector<Output> updates_, resets_;
};

std::string name_or(const std::string& name, std::string_view otherwise) {
  return name.empty() ? std::string(otherwise) : name;
}

// Of `all`, how many are in both.
Output ratio(Output some, Output all, Location at) { return div_no_nan({some, at}, all); }

struct Binary {
  Output scores, is_true;  // f32 [n], bool [n]
};
Binary flat_pair(std::string_view what, Output predictions, Output labels, Location at) {
  check(predictions && labels, what, " (", at, "): an operand is an empty Output");
  check(predictions.shape().is_compatible(labels.shape()), what, " (", at,
        "): predictions and labels must have one shape, got ", predictions.name(), " ",
        predictions.shape(), " and ", labels.name(), " ", labels.shape());
  return {reshape(cast(predictions, f32, at), {-1}, at),
          reshape(cast(labels, DType::boolean, at), {-1}, at)};
}

Output count(Output condition, Location at) { return sum(cast(condition, f32, at), {}, {}, at); }

}  // namespace

Mean::Mean(Output values, const MetricOptions& options, Location at) {
  check(bool{values}, "metrics::Mean (", at, "): its operand is an empty Output");
  Sums sums(values.graph(), name_or(options.name, "mean"), at);
  const Output x = cast(values, f32, at);
  const Output total = sums.add("total", {}, sum(x, {}, {}, at));
  const Output n = sums.add("count", {}, sum(ones_like(x, at), {}, {}, at));
  value_ = ratio(total, n, at);
  update_ = &sums.update();
  reset_ = &sums.reset();
}

Accuracy::Accuracy(Output logits, Output labels, const MetricOptions& options, Location at) {
  labels = classes_of("metrics::Accuracy", logits, labels, at);
  Sums sums(logits.graph(), name_or(options.name, "accuracy"), at);
  const Output hit = hits(logits, labels, at);
  const Output total = sums.add("total", {}, sum(hit, {}, {}, at));
  const Output n = sums.add("count", {}, sum(ones_like(hit, at), {}, {}, at));
  value_ = ratio(total, n, at);
  update_ = &sums.update();
  reset_ = &sums.reset();
}

Precision::Precision(Output predictions, Output labels, const ThresholdOptions& options,
                     Location at) {
  const auto [scores, is_true] = flat_pair("metrics::Precision", predictions, labels, at);
  Sums sums(predictions.graph(), name_or(options.name, "precision"), at);
  const Output above = greater({scores, at}, options.threshold);
  const Output hit = sums.add("true_positives", {}, count(logical_and(above, is_true, at), at));
  value_ = ratio(hit, sums.add("positives", {}, count(above, at)), at);
  update_ = &sums.update();
  reset_ = &sums.reset();
}

Recall::Recall(Output predictions, Output labels, const ThresholdOptions& options, Location at) {
  const auto [scores, is_true] = flat_pair("metrics::Recall", predictions, labels, at);
  Sums sums(predictions.graph(), name_or(options.name, "recall"), at);
  const Output above = greater({scores, at}, options.threshold);
  const Output hit = sums.add("true_positives", {}, count(logical_and(above, is_true, at), at));
  value_ = ratio(hit, sums.add("trues", {}, count(is_true, at)), at);
  update_ = &sums.update();
  reset_ = &sums.reset();
}

Auc::Auc(Output predictions, Output labels, const AucOptions& options, Location at) {
  const auto [scores, is_true] = flat_pair("metrics::Auc", predictions, labels, at);
  const int64_t n = options.num_thresholds;
  check(n >= 2, "metrics::Auc (", at, "): at least 2 thresholds are needed, got ", n);
  Graph& graph = predictions.graph();
  Sums sums(graph, name_or(options.name, "auc"), at);
  // A little below 0 and above 1 at the ends, and evenly between.
  Tensor thresholds(f32, {n, 1});
  for (int64_t i = 0; i < n; ++i)
    thresholds.data<float>()[i] =
        static_cast<float>(static_cast<double>(i) / static_cast<double>(n - 1));
  thresholds.data<float>()[0] = -1e-7f;
  thresholds.data<float>()[n - 1] = 1 + 1e-7f;
  const Output above =
      greater({expand_dims(scores, 0, at), at}, constant(graph, std::move(thresholds)));
  const Output trues = expand_dims(is_true, 0, at);
  const auto counted = [&](std::string_view name, Output which) {
    return sums.add(name, {n}, sum(cast(which, f32, at), 1, {}, at));
  };
  const Output tp = counted("true_positives", logical_and(above, trues, at));
  const Output fn = counted("false_negatives", logical_and(~above, trues, at));
  const Output fp = counted("false_positives", logical_and(above, ~trues, at));
  const Output tn = counted("true_negatives", logical_and(~above, ~trues, at));
  constexpr double epsilon = 1e-6;
  const Output recall = (tp + epsilon) / (tp + fn + epsilon), fallout = fp / (fp + tn + epsilon);
  const Slice first = slice(0, n - 1), second = slice(1, n);
  const Output widths = fallout[first] - fallout[second];
  value_ = sum(widths * (recall[first] + recall[second]) / 2, {}, {}, at);
  update_ = &sums.update();
  reset_ = &sums.reset();
}

}  // namespace leat::metrics
