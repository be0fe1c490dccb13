#include "frontends/cpp/nn/sampled_losses.h"

#include "graph/ops/seed.h"

namespace leat::nn {
namespace {

struct Sampled {
  Output of_class;  // logits [batch, 1], minus log of how often the class is expected
  Output of_drawn;  // the same of the drawn classes, [batch, num_sampled]
  Output labels;    // int64 [batch, 1]
  Output drawn;     // int64 [num_sampled]
};

Sampled sampled_logits(std::string_view what, Output weights, Output biases, Output labels,
                       Output inputs, const SampledLossOptions& options, Location at) {
  const std::string title = concat(what, " (", at, ")");
  for (const auto& [name, x] :
       {std::pair{"weights", weights}, {"biases", biases}, {"labels", labels}, {"inputs", inputs}})
    check(bool{x}, title, ": ", name, " is an empty Output");
  check(is_integer(labels.dtype()) && (Shape{any}.is_compatible(labels.shape()) ||
                                       Shape{any, 1}.is_compatible(labels.shape())),
        title, ": labels must be class numbers, [batch] or [batch, 1], got ", labels.name(), " ",
        labels.dtype(), labels.shape());
  const Shape& table = weights.shape();
  check(table.rank() == 2 && Shape{table[0]}.is_compatible(biases.shape()) &&
            Shape{any, table[1]}.is_compatible(inputs.shape()),
        title, ": weights must be [classes, size], biases [classes] and inputs [batch, size], got ",
        table, ", ", biases.shape(), " and ", inputs.shape());
  const int64_t classes = options.num_classes > 0 ? options.num_classes : table[0];
  check(options.num_sampled > 0 && classes >= options.num_sampled, title,
        ": num_sampled must be positive and at most the number of classes, got ",
        options.num_sampled, " of ", classes);
  labels = reshape(labels.dtype() == i64 ? labels : cast(labels, i64, at), {-1, 1}, at);
  const random::Seeds seeds = random::seeds(inputs.graph(), options.seed);
  const std::vector<Output> candidates = op_outputs("LogUniformCandidateSampler", {labels},
                                                    {{"num_true", 1},
                                                     {"num_sampled", options.num_sampled},
                                                     {"unique", true},
                                                     {"range_max", classes},
                                                     {"seed", seeds.seed},
                                                     {"seed2", seeds.seed2}},
                                                    at);
  const Output drawn = stop_gradient(candidates[0], at);
  // One lookup for both, so that the gradient has each row once.
  const Output ids = concatenate({reshape(labels, {-1}, at), drawn}, 0, at);
  const Output rows = take(weights, ids, 0, at), offsets = take(biases, ids, 0, at);
  const Output count = shape_of(labels, i32, at)[0];
  const auto first = [&](Output x) { return x[slice(none, count)]; };
  const auto rest = [&](Output x) { return x[slice(count, none)]; };
  const auto log_of = [&](Output expected) {
    return log(cast(stop_gradient(expected, at), inputs.dtype(), at), at);
  };
  const Output of_class = sum(inputs * first(rows), -1, {}, at) + first(offsets);
  const Output of_drawn = matmul(inputs, rest(rows), {.transpose_b = true}, at) + rest(offsets);
  return {expand_dims(of_class, 1, at) - log_of(candidates[1]), of_drawn - log_of(candidates[2]),
          labels, drawn};
}

}  // namespace

Output nce_loss(Output weights, Output biases, Output labels, Output inputs,
                const SampledLossOptions& options, Location at) {
  check(bool{inputs}, "nce_loss (", at, "): inputs is an empty Output");
  const NameScope scope(inputs.graph(), "nce_loss");
  const LocationScope line(inputs.graph(), at);
  const Sampled logits = sampled_logits("nce_loss", weights, biases, labels, inputs, options, at);
  const Output of_class =
      leat::sigmoid_cross_entropy(logits.of_class, ones_like(logits.of_class, at), at);
  const Output of_drawn =
      leat::sigmoid_cross_entropy(logits.of_drawn, zeros_like(logits.of_drawn, at), at);
  return sum(of_class, 1, {}, at) + sum(of_drawn, 1, {}, at);
}

Output sampled_softmax_loss(Output weights, Output biases, Output labels, Output inputs,
                            const SampledLossOptions& options, Location at) {
  check(bool{inputs}, "sampled_softmax_loss (", at, "): inputs is an empty Output");
  const NameScope scope(inputs.graph(), "sampled_softmax_loss");
  const LocationScope line(inputs.graph(), at);
  const Sampled logits =
      sampled_logits("sampled_softmax_loss", weights, biases, labels, inputs, options, at);
  // A number so small that its share is 0, in half precision too.
  const double least = inputs.dtype() == f16 ? -6e4 : -1e9;
  const Output is_class = logits.labels == expand_dims(logits.drawn, 0, at);
  const Output of_drawn = where(is_class, least, logits.of_drawn, at);
  const Output classes = zeros_like(reshape(logits.labels, {-1}, at), at);  // the first column
  return leat::softmax_cross_entropy(concatenate({logits.of_class, of_drawn}, 1, at), classes, at);
}

}  // namespace leat::nn
