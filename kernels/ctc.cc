// Connectionist temporal classification: labels of a sequence whose places in time are not known.
// CTCLoss, CTCGreedyDecoder, CTCBeamSearchDecoder. A. Graves, Supervised Sequence Labelling with
// Recurrent Neural Networks, chapter 7.
#include <cmath>
#include <deque>
#include <limits>
#include <map>

#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/execute.h"

namespace leat {
namespace {

template <class T>
constexpr T log_zero = -std::numeric_limits<T>::infinity();

// log(exp(a) + exp(b))
template <class T>
T log_sum(T a, T b) {
  if (a == log_zero<T>) return b;
  if (b == log_zero<T>) return a;
  return std::max(a, b) + std::log1p(std::exp(std::min(a, b) - std::max(a, b)));
}

// Logits [time, batch, classes] with the length of every sequence.
template <class T>
struct Sequences {
  const T* logits;
  int64_t time, batch, classes;
  const int32_t* lengths;

  // `code` for lengths that do not fit, which TensorFlow's ops do not agree on.
  Sequences(const Tensor& inputs, const Tensor& sequence_length, Code code) {
    const Shape &shape = inputs.shape(), &of_lengths = sequence_length.shape();
    check(shape.rank() == 3, "inputs is not a 3-Tensor, but has shape ", shape);
    check(of_lengths.rank() == 1, "sequence_length is not a vector, but has shape ", of_lengths);
    time = shape[0], batch = shape[1], classes = shape[2];
    check(inputs.elements() > 0, "inputs must not be empty, got shape ", shape);
    if (of_lengths[0] != batch) {
      fail(code, "len(sequence_length) != batch_size. len(sequence_length): ", of_lengths[0],
           " batch_size: ", batch);
    }
    logits = inputs.data<T>();
    lengths = sequence_length.data<int32_t>();
    for (int64_t b = 0; b < batch; ++b) {
      if (lengths[b] > time) {
        fail(code, "sequence_length(", b, ") = ", lengths[b], ", but there are ", time, " steps");
      }
    }
  }
  int64_t offset(int64_t t, int64_t b) const { return (t * batch + b) * classes; }
};

// The batch size, and the shape of the logits with it.
Shape infer_logits(ShapeContext& c, int lengths) {
  Shape logits = c.with_rank(0, 3);
  const int64_t batch = c.with_rank(lengths, 1)[0];
  if (logits[1] == any) logits.set(1, batch);
  return logits;
}

// ---- CTCLoss

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
  // The states from which the end can be reached, and that the beginning reaches.
  int64_t first(int64_t t) const { return std::max<int64_t>(0, size() - 2 * (steps - t)); }
  int64_t last(int64_t t) const { return std::min(size(), 2 * (t + 1)); }

  // [steps, states]: the probability of all beginnings of paths up to there.
  std::vector<T> forward() const {
    std::vector<T> alpha(steps * size(), log_zero<T>);
    for (int64_t state = 0; state < std::min<int64_t>(2, size()); ++state) {
      alpha[state] = log_probability(state, 0);
    }
    for (int64_t t = 1; t < steps; ++t) {
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

  // [steps, states]: the probability of all ends of paths from behind there.
  std::vector<T> backward() const {
    std::vector<T> beta(steps * size(), log_zero<T>);
    for (int64_t state = std::max<int64_t>(0, size() - 2); state < size(); ++state) {
      beta[(steps - 1) * size() + state] = 0;
    }
    for (int64_t t = steps - 2; t >= 0; --t) {
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

// The loss of sequence b, and its gradient by the logits.
template <class T>
T loss_of(const Sequences<T>& s, int64_t b, const std::vector<int64_t>& states,
          bool merges_repeated, T* gradient) {
  const int64_t steps = s.lengths[b], blank = s.classes - 1;
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
      // Without any path the gradient is what pushes all classes down.
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
           "place them in time; gradient = that of the loss by the logits. The last class is the "
           "blank.",
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
          g.dx(0) = mul(reshape(g.dy(0), constant(g.graph(), ints({1, -1, 1}))), dx);
        },
    .kernels = {execute_kernel("T", Types<float, double>{},
                               []<class T>(TypeTag<T>, ExecuteContext& c) { loss<T>(c); })},
    // Two steps of equal probabilities, one label: "a-", "-a" and "aa" of 4 paths.
    .examples =
        {{.inputs = {floats({2, 1, 2}, {0, 0, 0, 0}), longs({1, 2}, {0, 0}), ints({0}), ints({2})},
          .outputs = {floats({0.28768207F}),
                      floats({2, 1, 2}, {-0.16666667F, 0.16666667F, -0.16666667F, 0.16666667F})}}},
}};

// ---- Decoders

using Labels = std::vector<int64_t>;

// Outputs p, n + p and 2 n + p: the labels of every sequence as a sparse tensor.
void set_decoded(ExecuteContext& c, int p, int n, const std::vector<Labels>& sequences) {
  std::vector<int64_t> indices, values;
  int64_t longest = 0;
  for (size_t b = 0; b < sequences.size(); ++b) {
    for (size_t i = 0; i < sequences[b].size(); ++i) {
      indices.insert(indices.end(), {static_cast<int64_t>(b), static_cast<int64_t>(i)});
      values.push_back(sequences[b][i]);
    }
    longest = std::max(longest, static_cast<int64_t>(sequences[b].size()));
  }
  const auto count = static_cast<int64_t>(values.size());
  c.set_output(p, Tensor::of<int64_t>({count, 2}, std::span<const int64_t>(indices)));
  c.set_output(n + p, Tensor::of<int64_t>({count}, std::span<const int64_t>(values)));
  c.set_output(2 * n + p,
               Tensor::of<int64_t>({2}, {static_cast<int64_t>(sequences.size()), longest}));
}

void infer_decoded(ShapeContext& c) {
  const Shape logits = infer_logits(c, 1);
  const int n = (c.num_outputs() - 1) / 3;
  for (int p = 0; p < n; ++p) {
    c.set_output(p, {any, 2});
    c.set_output(n + p, {any});
    c.set_output(2 * n + p, {2});
  }
  c.set_output(3 * n, {logits[1], n});
}

template <class T>
void decode_greedily(ExecuteContext& c) {
  const Sequences<T> s(c.input(0), c.input(1), Code::failed_precondition);
  const bool merges_repeated = c.node().attr<bool>("merge_repeated");
  const int64_t given = c.node().attr<int64_t>("blank_index"),
                blank = given < 0 ? given + s.classes : given;
  check(blank >= 0 && blank < s.classes, "blank_index expected to be between ", -s.classes, " and ",
        s.classes - 1, " but was ", given);
  Tensor scores(dtype_of<T>, {s.batch, 1});
  std::vector<Labels> decoded(s.batch);
  for (int64_t b = 0; b < s.batch; ++b) {
    T& score = scores.data<T>()[b];
    score = 0;
    for (int64_t t = 0, previous = -1; t < s.lengths[b]; ++t) {
      const T* x = s.logits + s.offset(t, b);
      int64_t best = 0;
      for (int64_t k = 1; k < s.classes; ++k) best = x[k] > x[best] ? k : best;
      score -= x[best];
      if (best != blank && !(merges_repeated && best == previous)) decoded[b].push_back(best);
      previous = best;
    }
  }
  set_decoded(c, 0, 1, decoded);
  c.set_output(3, std::move(scores));
}

const Op greedy_op{{
    .name = "CTCGreedyDecoder",
    .doc = "decoded = the classes with the largest logits of every step, without blanks and, with "
           "merge_repeated, without the repetition of the step before; log_probability = minus the "
           "sum of these logits.",
    .inputs = {"inputs: T", "sequence_length: int32"},
    .outputs = {"decoded_indices: int64", "decoded_values: int64", "decoded_shape: int64",
                "log_probability: T"},
    .attrs = {"merge_repeated: bool = false", "blank_index: int = -1",
              "T: {float, double} = float"},
    .shape = infer_decoded,
    .kernels = {execute_kernel(
        "T", Types<float, double>{},
        []<class T>(TypeTag<T>, ExecuteContext& c) { decode_greedily<T>(c); })},
    .examples = {{.inputs = {floats({3, 1, 3}, {1, 2, 0, 0, 0, 5, 3, 0, 0}), ints({3})},
                  .outputs = {longs({2, 2}, {0, 0, 0, 1}), longs({1, 0}), longs({1, 2}),
                              floats({1, 1}, {-10})}}},
    .has_data_dependent_shape = true,
    .is_not_differentiable = true,
}};

// Log probabilities of a prefix at a time: of all its paths, and of those that end with a blank or
// with its last label.
template <class T>
struct Chances {
  T total = log_zero<T>, blank = log_zero<T>, label = log_zero<T>;
};

// A prefix of labels: the node of a tree.
template <class T>
struct Prefix {
  Prefix* parent;
  int64_t label;
  Chances<T> before = {}, now = {};
  std::map<int64_t, Prefix*> children = {};

  bool is_in_beam() const { return now.total != log_zero<T>; }
};

// The most probable prefixes of one sequence.
template <class T>
class Beam {
 public:
  Beam(int64_t width, int64_t classes) : width_(width), classes_(classes) {
    prefixes_.push_back({nullptr, -1});
    prefixes_[0].now = {0, 0, log_zero<T>};
    push(&prefixes_[0]);
  }

  void step(const T* logits) {
    const T largest = *std::max_element(logits, logits + classes_);
    T sum = 0;
    for (int64_t k = 0; k < classes_; ++k) sum += std::exp(logits[k] - largest);
    const T scale = largest + std::log(sum);
    const std::vector<Prefix<T>*> beam = best();
    leaves_.clear();
    for (Prefix<T>* p : beam) p->before = p->now;
    for (Prefix<T>* p : beam) {
      if (p->parent != nullptr) {
        if (p->parent->is_in_beam())
          p->now.label = log_sum(p->now.label, extended(*p->parent, p->label));
        p->now.label += logits[p->label] - scale;
      }
      p->now.blank = p->before.total + logits[classes_ - 1] - scale;
      p->now.total = log_sum(p->now.blank, p->now.label);
      push(p);
    }
    for (Prefix<T>* p : beam) {
      if (!is_candidate(p->before.total)) continue;
      for (int64_t label = 0; label < classes_ - 1; ++label) {
        const auto child = p->children.find(label);
        if (child != p->children.end() && child->second->is_in_beam()) continue;
        const T chance = logits[label] - scale + extended(*p, label);
        if (!is_candidate(chance)) {
          // One that fell out of the beam in this step is not followed either, as in TensorFlow.
          if (child != p->children.end()) child->second->before = {};
          continue;
        }
        Prefix<T>* grown = child != p->children.end() ? child->second : add_child(p, label);
        grown->now = {chance, log_zero<T>, chance};
        if (is_full()) drop_least();
        push(grown);
      }
    }
  }

  // Descending.
  std::vector<Prefix<T>*> best() const {
    std::vector<Prefix<T>*> out = leaves_;
    std::sort_heap(out.begin(), out.end(), more_probable);
    return out;
  }

 private:
  static bool more_probable(const Prefix<T>* a, const Prefix<T>* b) {
    return a->now.total > b->now.total;
  }
  // A label behind one that is the same needs a blank between them.
  static T extended(const Prefix<T>& prefix, int64_t label) {
    return label == prefix.label ? prefix.before.blank : prefix.before.total;
  }
  bool is_full() const { return static_cast<int64_t>(leaves_.size()) == width_; }
  bool is_candidate(T total) const {
    return total > log_zero<T> && (!is_full() || total > leaves_.front()->now.total);
  }
  Prefix<T>* add_child(Prefix<T>* parent, int64_t label) {
    prefixes_.push_back({parent, label});
    return parent->children[label] = &prefixes_.back();
  }
  void push(Prefix<T>* prefix) {
    leaves_.push_back(prefix);
    std::push_heap(leaves_.begin(), leaves_.end(), more_probable);
  }
  void drop_least() {
    std::pop_heap(leaves_.begin(), leaves_.end(), more_probable);
    leaves_.back()->now = {};
    leaves_.pop_back();
  }

  int64_t width_, classes_;
  std::deque<Prefix<T>> prefixes_;  // all there ever were: parents stay
  std::vector<Prefix<T>*> leaves_;  // those in the beam, a heap with the least probable in front
};

template <class T>
Labels labels_of(const Prefix<T>* prefix, bool merges_repeated) {
  Labels labels;
  for (int64_t behind = -1; prefix->parent != nullptr; prefix = prefix->parent) {
    if (!merges_repeated || prefix->label != behind) labels.push_back(prefix->label);
    behind = prefix->label;
  }
  std::reverse(labels.begin(), labels.end());
  return labels;
}

template <class T>
void search(ExecuteContext& c) {
  const Sequences<T> s(c.input(0), c.input(1), Code::failed_precondition);
  const int64_t width = c.node().attr<int64_t>("beam_width"),
                n = c.node().attr<int64_t>("top_paths");
  const bool merges_repeated = c.node().attr<bool>("merge_repeated");
  check(n <= width, "requested more paths than the beam width: ", n, " of ", width);
  Tensor scores(dtype_of<T>, {s.batch, n});
  std::vector<std::vector<Labels>> decoded(n, std::vector<Labels>(s.batch));
  for (int64_t b = 0; b < s.batch; ++b) {
    Beam<T> beam(width, s.classes);
    for (int64_t t = 0; t < s.lengths[b]; ++t) beam.step(s.logits + s.offset(t, b));
    const std::vector<Prefix<T>*> best = beam.best();
    check(n <= static_cast<int64_t>(best.size()),
          "Less leaves in the beam search than requested: ", best.size(), " of ", n,
          " for sequence ", b);
    for (int64_t p = 0; p < n; ++p) {
      decoded[p][b] = labels_of(best[p], merges_repeated);
      scores.data<T>()[b * n + p] = best[p]->now.total;
    }
  }
  for (int64_t p = 0; p < n; ++p) {
    set_decoded(c, static_cast<int>(p), static_cast<int>(n), decoded[p]);
  }
  c.set_output(static_cast<int>(3 * n), std::move(scores));
}

const Op search_op{{
    .name = "CTCBeamSearchDecoder",
    .doc = "decoded[p] = the labels with the p-th largest probability over all ways to place them "
           "in time, among the beam_width prefixes that are followed; log_probability[:, p] = the "
           "logarithm of it. The last class is the blank; merge_repeated removes repetitions from "
           "the labels.",
    .inputs = {"inputs: T", "sequence_length: int32"},
    .outputs = {"decoded_indices: top_paths * int64", "decoded_values: top_paths * int64",
                "decoded_shape: top_paths * int64", "log_probability: T"},
    .attrs = {"beam_width: int >= 1", "top_paths: int >= 1", "merge_repeated: bool = true",
              "T: {float, double} = float"},
    .shape = infer_decoded,
    .kernels = {execute_kernel("T", Types<float, double>{},
                               []<class T>(TypeTag<T>, ExecuteContext& c) { search<T>(c); })},
    // The label of three of the four equally probable paths, then none.
    .examples = {{.inputs = {floats({2, 1, 2}, {0, 0, 0, 0}), ints({2})},
                  .attrs = {{"beam_width", 3}, {"top_paths", 2}},
                  .outputs = {longs({1, 2}, {0, 0}), longs({0, 2}, {}), longs({0}), longs({}),
                              longs({1, 1}), longs({1, 0}),
                              floats({1, 2}, {-0.28768207F, -1.3862944F})}}},
    .has_data_dependent_shape = true,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
