#include "frontends/cpp/nn/losses.h"

#include <cmath>

namespace leat::nn {
namespace {

void check_pair(std::string_view what, const Output& a, const Output& b, Location at) {
  check(bool{a} && bool{b}, what, " (", at, "): an operand is an empty Output");
  check(a.dtype() == b.dtype() && a.shape().is_compatible(b.shape()), what, " (", at,
        "): predictions and targets must have one dtype and shape, got ", a.name(), " ", a.dtype(),
        a.shape(), " and ", b.name(), " ", b.dtype(), b.shape());
}

// The mean of each example: of scalars in a vector, these themselves.
Output per_example(Output x, Location at) {
  return x.shape().rank() <= 1 && x.shape().has_rank() ? x : mean(x, -1, {}, at);
}

void check_smoothing(std::string_view what, double smoothing, Location at) {
  check(smoothing >= 0 && smoothing < 1, what, " (", at,
        "): label_smoothing must be in [0, 1), got ", smoothing);
}

}  // namespace

Output softmax_cross_entropy(Output logits, Output labels, const CrossEntropyOptions& options,
                             Location at) {
  check(logits && labels, "softmax_cross_entropy (", at, "): an operand is an empty Output");
  check_smoothing("softmax_cross_entropy", options.label_smoothing, at);
  const LocationScope line(logits.graph(), at);
  const Shape& shape = labels.shape();
  const bool are_classes = is_integer(labels.dtype());
  check(are_classes || shape.is_compatible(logits.shape()), "softmax_cross_entropy (", at,
        "): labels must be class numbers (int32 or int64, [batch]) or probabilities ([batch, "
        "classes]), got ",
        labels.name(), " ", labels.dtype(), shape);
  const double smoothing = options.label_smoothing;
  if (smoothing == 0) return leat::softmax_cross_entropy(logits, labels, at);
  const Shape& all = logits.shape();
  check(all.rank() == 2 && all[1] > 0, "softmax_cross_entropy (", at,
        "): to smooth labels, the number of classes must be known, got ", logits.name(), " ", all);
  Output p = labels;
  if (are_classes) p = cast(one_hot(labels, static_cast<int>(all[1]), {}, at), logits.dtype(), at);
  return leat::softmax_cross_entropy(
      logits, p * (1 - smoothing) + smoothing / static_cast<double>(all[1]), at);
}

Output sparse_softmax_cross_entropy(Output logits, Output labels,
                                    const CrossEntropyOptions& options, Location at) {
  check(logits && labels, "sparse_softmax_cross_entropy (", at, "): an operand is an empty Output");
  const Shape &rows = logits.shape(), &shape = labels.shape();
  const bool fits = !rows.has_rank() || !shape.has_rank() || shape.rank() == rows.rank() - 1;
  check(is_integer(labels.dtype()) && fits, "sparse_softmax_cross_entropy (", at,
        "): labels must be class numbers, int32 or int64, one for each row of the logits ", rows,
        ", got ", labels.name(), " ", labels.dtype(), shape,
        "; probabilities are for softmax_cross_entropy");
  return softmax_cross_entropy(logits, labels, options, at);
}

Output sigmoid_cross_entropy(Output logits, Output labels, const CrossEntropyOptions& options,
                             Location at) {
  check_pair("sigmoid_cross_entropy", logits, labels, at);
  check_smoothing("sigmoid_cross_entropy", options.label_smoothing, at);
  const LocationScope line(logits.graph(), at);
  Output p = labels;
  if (options.label_smoothing > 0)
    p = p * (1 - options.label_smoothing) + options.label_smoothing / 2;
  return per_example(leat::sigmoid_cross_entropy(logits, p, at), at);
}

namespace {
constexpr double smallest_probability = 1e-7;  // keras.backend.epsilon()
Output clipped(Output p, Location at) {
  return clip(p, smallest_probability, 1 - smallest_probability, at);
}
}  // namespace
Output binary_cross_entropy(Output predictions, Output targets, const CrossEntropyOptions& options,
                            Location at) {
  check_pair("binary_cross_entropy", predictions, targets, at);
  check_smoothing("binary_cross_entropy", options.label_smoothing, at);
  const LocationScope line(predictions.graph(), at);
  Output p = targets;
  if (options.label_smoothing > 0)
    p = p * (1 - options.label_smoothing) + options.label_smoothing / 2;
  const Output q = clipped(predictions, at);
  return per_example(-(p * log(q, at) + (1 - p) * log(1 - q, at)), at);
}
Output categorical_cross_entropy(Output predictions, Output targets, Location at) {
  check_pair("categorical_cross_entropy", predictions, targets, at);
  const LocationScope line(predictions.graph(), at);
  const Output q = predictions / sum(predictions, -1, {.keep_dims = true}, at);
  return -sum(targets * log(clipped(q, at), at), -1, {}, at);
}

Output mean_squared_error(Output predictions, Output targets, Location at) {
  check_pair("mean_squared_error", predictions, targets, at);
  return per_example(squared_difference({predictions, at}, targets), at);
}

Output mean_absolute_error(Output predictions, Output targets, Location at) {
  check_pair("mean_absolute_error", predictions, targets, at);
  const LocationScope line(predictions.graph(), at);
  return per_example(abs(predictions - targets, at), at);
}

Output huber(Output predictions, Output targets, double delta, Location at) {
  check_pair("huber", predictions, targets, at);
  const LocationScope line(predictions.graph(), at);
  check(delta > 0, "huber (", at, "): delta must be positive, got ", delta);
  const Output d = abs(predictions - targets, at);
  return per_example(where(d <= delta, square(d, at) * 0.5, d * delta - delta * delta / 2, at), at);
}

Output log_cosh(Output predictions, Output targets, Location at) {
  check_pair("log_cosh", predictions, targets, at);
  const LocationScope line(predictions.graph(), at);
  const Output d = predictions - targets;
  return per_example(d + softplus(d * -2, at) - std::log(2.0), at);
}

Output hinge(Output predictions, Output targets, Location at) {
  check_pair("hinge", predictions, targets, at);
  const LocationScope line(predictions.graph(), at);
  return per_example(relu(1 - predictions * targets, at), at);
}

Output kl_divergence(Output predictions, Output targets, Location at) {
  check_pair("kl_divergence", predictions, targets, at);
  const LocationScope line(predictions.graph(), at);
  const Output ratio = where(targets > 0, targets / predictions, 1, at);
  return sum(targets * log(ratio, at), -1, {}, at);
}

Output cosine_similarity(Output x, Output y, Location at) {
  check_pair("cosine_similarity", x, y, at);
  const LocationScope line(x.graph(), at);
  const auto norm = [&](Output v) { return sqrt(sum(square(v, at), -1, {}, at), at); };
  return div_no_nan({sum(x * y, -1, {}, at), at}, norm(x) * norm(y));
}

}  // namespace leat::nn
