// CTCGreedyDecoder and CTCBeamSearchDecoder (ctc.h).
#include <deque>
#include <map>

#include "core/execution/step_end.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/execute.h"
#include "kernels/sequences/ctc.h"

namespace leat {
namespace {

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
      StepEnd::pace(s.classes);
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
           "merge_repeated, without repetitions of the previous step; log_probability = minus the "
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

// Log probabilities of a prefix at one time: of all its paths, and of those that end with a blank
// or with its last label.
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
          // A child that fell out of the beam in this step is not extended either, as in
          // TensorFlow.
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
  // Two equal labels in sequence need a blank between them.
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
  std::deque<Prefix<T>> prefixes_;  // all that were ever added: parents stay
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
    for (int64_t t = 0; t < s.lengths[b]; ++t) {
      StepEnd::pace(64 * s.classes);
      beam.step(s.logits + s.offset(t, b));
    }
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
