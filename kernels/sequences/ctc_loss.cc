// CTCLoss (ctc.h).
#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/execute.h"
#include "kernels/extents.h"
#include "kernels/sequences/ctc.h"

namespace leat {
namespace {

// The labels of every sequence from the entries of a sparse tensor, which are in order.
std::vector<std::vector<int64_t>> labels_of(const Tensor& indices, const Tensor& values,
                                            int64_t batch) {
  check(indices.shape().rank() == 2 && indices.shape()[1] == 2,
        "labels_indices is not a matrix with 2 columns, but has shape ", indices.shape());
  check(values.shape().rank() == 1, "labels_values is not a vector, but has shape ",
        values.shape());
  check(indices.shape()[0] == values.elements(),
        "labels_indices and labels_values must contain the same number of rows, but saw shapes: ",
        indices.shape(), " vs. ", values.shape());
  std::vector<std::vector<int64_t>> labels(batch);
  const auto* index = indices.data<int64_t>();
  for (int64_t i = 0; i < values.elements(); ++i, index += 2) {
    check(index[0] >= 0 && index[0] < batch && index[1] >= 0, "labels_indices[", i, "] = [",
          index[0], ",", index[1], "] is out of bounds: the batch has ", batch, " sequences");
    check(i == 0 || std::pair(index[-2], index[-1]) < std::pair(index[0], index[1]),
          "labels_indices[", i, "] = [", index[0], ",", index[1], "] is repeated or out of order");
    labels[index[0]].push_back(values.data<int32_t>()[i]);
  }
  return labels;
}

// A blank before every label and at the end; `blank`, the last class, itself may end the labels.
std::vector<int64_t> with_blanks(const std::vector<int64_t>& labels, int64_t blank,
                                 bool collapses_repeated) {
  std::vector<int64_t> out = {blank};
  bool ended = false;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (collapses_repeated && i > 0 && labels[i] == labels[i - 1]) continue;
    if (labels[i] >= blank) {
      ended = true;
      continue;
    }
    check(!ended,
          "Saw a non-null label (index >= num_classes - 1) following a null label: ", labels[i],
          " at ", i, ", num_classes: ", blank + 1);
    check(labels[i] >= 0, "All labels must be nonnegative integers, but label ", i, " is ",
          labels[i]);
    out.push_back(labels[i]);
    out.push_back(blank);
  }
  return out;
}

// One sequence: its path runs through `states`, the labels with blanks.
template <class T>
struct Alignment {
  const std::vector<int64_t>& states;
  int64_t blank, steps;
  bool merges_repeated;
  const std::vector<T>& log_y;  // [steps, classes], classes being blank + 1

  int64_t size() const { return static_cast<int64_t>(states.size()); }
  T log_probability(int64_t state, int64_t t) const {
    return log_y[t * (blank + 1) + states[state]];
  }
  // Whether a path may stay in a state, and skip the blank before it.
  bool may_stay(int64_t state) const { return merges_repeated || states[state] == blank; }
  bool may_skip_to(int64_t state) const {
    return state > 1 && states[state] != blank &&
           !(merges_repeated && states[state] == states[state - 2]);
  }
  // The states that can be reached from the beginning and that can reach the end.
  int64_t first(int64_t t) const { return std::max<int64_t>(0, size() - 2 * (steps - t)); }
  int64_t last(int64_t t) const { return std::min(size(), 2 * (t + 1)); }

  // [steps, states]: the probability of all beginnings of paths up to this state.
  std::vector<T> forward() const {
    std::vector<T> alpha(steps * size(), log_zero<T>);
    for (int64_t state = 0; state < std::min<int64_t>(2, size()); ++state) {
      alpha[state] = log_probability(state, 0);
    }
    for (int64_t t = 1; t < steps; ++t) {
      StepEnd::pace(16 * size());
      const T* before = alpha.data() + (t - 1) * size();
      for (int64_t state = first(t); state < last(t); ++state) {
        T sum = may_stay(state) ? before[state] : log_zero<T>;
        if (state > 0) sum = log_sum(sum, before[state - 1]);
        if (may_skip_to(state)) sum = log_sum(sum, before[state - 2]);
        alpha[t * size() + state] = sum + log_probability(state, t);
      }
    }
    return alpha;
  }

  // [steps, states]: the probability of all ends of paths after this state.
  std::vector<T> backward() const {
    std::vector<T> beta(steps * size(), log_zero<T>);
    for (int64_t state = std::max<int64_t>(0, size() - 2); state < size(); ++state) {
      beta[(steps - 1) * size() + state] = 0;
    }
    for (int64_t t = steps - 2; t >= 0; --t) {
      StepEnd::pace(16 * size());
      const T* after = beta.data() + (t + 1) * size();
      const auto through = [&](int64_t state) {
        return after[state] + log_probability(state, t + 1);
      };
      for (int64_t state = first(t); state < last(t); ++state) {
        T sum = may_stay(state) ? through(state) : log_zero<T>;
        if (state + 1 < size()) sum = log_sum(sum, through(state + 1));
        if (state + 2 < size() && may_skip_to(state + 2)) sum = log_sum(sum, through(state + 2));
        beta[t * size() + state] = sum;
      }
    }
    return beta;
  }
};

// The loss of sequence b, and its gradient with respect to the logits.
template <class T>
T loss_of(const Sequences<T>& s, int64_t b, const std::vector<int64_t>& states,
          bool merges_repeated, T* gradient) {
  const int64_t steps = s.lengths[b], blank = s.classes - 1;
  check_memory_for(steps, 2 * states.size() * sizeof(T));  // of alpha and beta
  std::vector<T> y(steps * s.classes), log_y(y.size());
  for (int64_t t = 0; t < steps; ++t) {
    const T* x = s.logits + s.offset(t, b);
    const T largest = *std::max_element(x, x + s.classes);
    T sum = 0;
    for (int64_t k = 0; k < s.classes; ++k) sum += y[t * s.classes + k] = std::exp(x[k] - largest);
    for (int64_t k = 0; k < s.classes; ++k) {
      T& probability = y[t * s.classes + k];
      probability /= sum;
      log_y[t * s.classes + k] = std::log(probability);
    }
  }
  const Alignment<T> paths{states, blank, steps, merges_repeated, log_y};
  const std::vector<T> alpha = paths.forward(), beta = paths.backward();
  T log_p = log_zero<T>;
  for (int64_t i = 0; i < paths.size(); ++i) log_p = log_sum(log_p, alpha[i] + beta[i]);

  std::vector<T> through(s.classes);  // the probability of all paths with this class at t
  for (int64_t t = 0; t < steps; ++t) {
    std::fill(through.begin(), through.end(), log_zero<T>);
    for (int64_t i = 0; i < paths.size(); ++i) {
      T& sum = through[states[i]];
      sum = log_sum(sum, alpha[t * paths.size() + i] + beta[t * paths.size() + i]);
    }
    for (int64_t k = 0; k < s.classes; ++k) {
      // Without any path the gradient pushes all classes down.
      const T share = log_p == log_zero<T> ? T(0) : std::exp(through[k] - log_p);
      gradient[s.offset(t, b) + k] = y[t * s.classes + k] - share;
    }
  }
  return -log_p;
}

template <class T>
void loss(ExecuteContext& c) {
  const Sequences<T> s(c.input(0), c.input(3), Code::invalid_argument);
  const NodeView& node = c.node();
  const bool ignores_longer = node.attr<bool>("ignore_longer_outputs_than_inputs"),
             collapses_repeated = node.attr<bool>("preprocess_collapse_repeated"),
             merges_repeated = node.attr<bool>("ctc_merge_repeated");
  const std::vector<std::vector<int64_t>> labels = labels_of(c.input(1), c.input(2), s.batch);
  Tensor losses(dtype_of<T>, {s.batch}), gradient(dtype_of<T>, c.input(0).shape());
  std::fill_n(gradient.data<T>(), gradient.elements(), T(0));
  for (int64_t b = 0; b < s.batch; ++b) {
    const auto count = static_cast<int64_t>(labels[b].size());
    check(count > 0, "Labels length is zero in batch ", b);
    check(s.lengths[b] >= 0, "sequence_length(", b, ") = ", s.lengths[b], " is negative");
    const std::vector<int64_t> states = with_blanks(labels[b], s.classes - 1, collapses_repeated);
    check(ignores_longer || count <= s.lengths[b],
          "Not enough time for target transition sequence (required: ", count,
          ", available: ", s.lengths[b], ") of sequence ", b,
          "; ignore_longer_outputs_than_inputs makes its loss 0");
    const bool is_left_out = s.lengths[b] == 0 || count > s.lengths[b];
    losses.data<T>()[b] =
        is_left_out ? T(0) : loss_of(s, b, states, merges_repeated, gradient.data<T>());
  }
  c.set_output(0, std::move(losses));
  c.set_output(1, std::move(gradient));
}

const Op loss_op{{
    .name = "CTCLoss",
    .doc = "loss = -log of the probability that the logits give to the labels, over all ways to "
           "place them in time; gradient = that of the loss with respect to the logits. The last "
           "class is the blank.",
    .inputs = {"inputs: T", "labels_indices: int64", "labels_values: int32",
               "sequence_length: int32"},
    .outputs = {"loss: T", "gradient: T"},
    .attrs = {"preprocess_collapse_repeated: bool = false", "ctc_merge_repeated: bool = true",
              "ignore_longer_outputs_than_inputs: bool = false", "T: {float, double} = float"},
    .shape =
        [](ShapeContext& c) {
          const Shape logits = infer_logits(c, 3);
          c.with_rank(1, 2);
          c.with_rank(2, 1);
          c.set_output(0, {logits[1]});
          c.set_output(1, logits);
        },
    .gradient =
        [](Gradient& g) {
          const Output dx =
              op("PreventGradient", {g.y(1)}, {{"message", "CTCLoss has no second derivative"}});
          g.dx(0) = reshape(g.dy(0), constant(g.graph(), ints({1, -1, 1}))) * dx;
        },
    .kernels = {execute_kernel("T", Types<float, double>{},
                               []<class T>(TypeTag<T>, ExecuteContext& c) { loss<T>(c); })},
    // Two steps of equal probabilities, one label: "a-", "-a" and "aa" of 4 paths.
    .examples =
        {{.inputs = {floats({2, 1, 2}, {0, 0, 0, 0}), longs({1, 2}, {0, 0}), ints({0}), ints({2})},
          .outputs = {floats({0.28768207F}),
                      floats({2, 1, 2}, {-0.16666667F, 0.16666667F, -0.16666667F, 0.16666667F})}}},
}};

}  // namespace
}  // namespace leat
