// Keeps the box with the largest score among overlapping ones: NonMaxSuppression to
// NonMaxSuppressionV5, and NonMaxSuppressionWithOverlaps.
#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>

#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/examples.h"
#include "kernels/execute.h"
#include "kernels/images/boxes.h"

namespace leat {
namespace {

struct Rules {
  int64_t at_most;
  float overlap = 0.5F;                                // boxes that overlap more are suppressed
  float score = std::numeric_limits<float>::lowest();  // boxes must score more than this
  float sigma =
      0;  // if positive, overlapping boxes only lose score (Bodla et al., "Soft-NMS", 2017)
};

struct Candidate {
  float score;
  int32_t box;
  size_t compared;  // number of selected boxes it was compared with
  bool operator<(const Candidate& other) const {
    return score == other.score ? box > other.box : score < other.score;
  }
};

// common(i, j) returns how much boxes i and j overlap.
template <class F>
std::vector<Candidate> selected(const std::vector<float>& scores, const Rules& rules, F common) {
  std::priority_queue<Candidate> candidates;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] > rules.score) candidates.push({scores[i], static_cast<int32_t>(i), 0});
  }
  std::vector<Candidate> out;
  while (static_cast<int64_t>(out.size()) < rules.at_most && !candidates.empty()) {
    Candidate next = candidates.top();
    candidates.pop();
    const float score = next.score;
    bool is_suppressed = false;
    for (size_t i = out.size();
         i-- > next.compared && !is_suppressed && next.score > rules.score;) {
      StepEnd::pace(16);
      const float part = common(next.box, out[i].box);
      if (rules.sigma > 0) {
        next.score *= std::exp(-0.5F / rules.sigma * part * part);
      } else {
        is_suppressed = part > rules.overlap;
        // As in TensorFlow, a box with an overlap of NaN comes last, one of -infinity not at all.
        next.score *= part <= rules.overlap ? 1 + 0 * part : 0;
      }
    }
    next.compared = out.size();
    if (is_suppressed) continue;
    if (next.score == score) {
      out.push_back(next);
    } else if (next.score > rules.score) {
      candidates.push(next);
    }
  }
  return out;
}

// ---- Ops

std::vector<float> numbers(const Tensor& tensor) {
  std::vector<float> out;
  visit_type(Types<float, half>{}, tensor.dtype(), [&]<class T>(TypeTag<T>) {
    for (const T x : tensor.span<T>()) out.push_back(static_cast<float>(x));
    return 0;
  });
  return out;
}

float number(const Tensor& tensor, const char* what) {
  check(tensor.shape().rank() == 0, what, " must be 0-D, got shape ", tensor.shape());
  return numbers(tensor)[0];
}

std::vector<Candidate> select(ExecuteContext& c, Rules rules) {
  const Tensor &boxes = c.input(0), &scores = c.input(1);
  check(boxes.shape().rank() == 2 && boxes.shape()[1] == 4,
        "boxes must be 2-D with 4 columns, got shape ", boxes.shape());
  check(scores.shape() == Shape{boxes.shape()[0]}, "scores has incompatible shape ", scores.shape(),
        " for ", boxes.shape()[0], " boxes");
  check(c.input(2).shape().rank() == 0, "max_output_size must be 0-D, got shape ",
        c.input(2).shape());
  rules.at_most = c.input(2).item<int32_t>();
  check(rules.at_most >= 0, "output size must be non-negative, got ", rules.at_most);
  check(rules.overlap >= 0 && rules.overlap <= 1, "iou_threshold must be in [0, 1], got ",
        rules.overlap);
  check(rules.sigma >= 0, "soft_nms_sigma must be non-negative, got ", rules.sigma);
  const std::vector<float> corners = numbers(boxes);
  return selected(numbers(scores), rules, [&](int64_t i, int64_t j) {
    return overlap(corners.data() + i * 4, corners.data() + j * 4);
  });
}

// With padding, 0 up to max_output_size.
Tensor boxes_of(const std::vector<Candidate>& selected, int64_t size) {
  Tensor out(DType::i32, {size});
  std::fill_n(out.data<int32_t>(), size, 0);
  for (size_t i = 0; i < selected.size(); ++i) out.data<int32_t>()[i] = selected[i].box;
  return out;
}

int64_t output_size(ExecuteContext& c, const std::vector<Candidate>& selected) {
  return c.node().has("pad_to_max_output_size") && c.node().attr<bool>("pad_to_max_output_size")
             ? c.input(2).item<int32_t>()
             : static_cast<int64_t>(selected.size());
}

void select_indices(ExecuteContext& c) {
  Rules rules{};
  if (c.num_inputs() < 4) {
    rules.overlap = c.node().attr<float>("iou_threshold");
  } else {
    rules.overlap = number(c.input(3), "iou_threshold");
  }
  if (c.num_inputs() > 4) rules.score = number(c.input(4), "score_threshold");
  if (c.num_inputs() > 5) rules.sigma = number(c.input(5), "soft_nms_sigma");
  const std::vector<Candidate> found = select(c, rules);
  const int64_t size = output_size(c, found);
  const bool has_scores = c.num_inputs() > 5,
             has_count = c.num_inputs() > 5 || c.node().has("pad_to_max_output_size");
  c.set_output(0, boxes_of(found, size));
  if (has_scores) {
    visit_type(Types<float, half>{}, c.input(1).dtype(), [&]<class T>(TypeTag<T>) {
      Tensor scores(dtype_of<T>, {size});
      std::fill_n(scores.data<T>(), size, T(0));
      for (size_t i = 0; i < found.size(); ++i) scores.data<T>()[i] = T(found[i].score);
      c.set_output(1, std::move(scores));
      return 0;
    });
  }
  if (has_count)
    c.set_output(has_scores ? 2 : 1, Tensor::scalar(static_cast<int32_t>(found.size())));
}

void infer(ShapeContext& c) {
  const Shape boxes = c.with_rank(0, 2), scores = c.with_rank(1, 1);
  check(boxes[1] == any || boxes[1] == 4, "boxes must have 4 columns, got ", boxes);
  check(boxes[0] == any || scores[0] == any || boxes[0] == scores[0], "boxes of shape ", boxes,
        " do not match scores of shape ", scores);
  for (int i = 2; i < c.num_inputs(); ++i) c.with_rank(i, 0);
  c.set_output(0, {any});
  if (c.num_outputs() == 3) c.set_output(1, {any});
  if (c.num_outputs() > 1) c.set_output(c.num_outputs() - 1, {});
}

OpDef op_of_version(int version) {
  const std::string type = version == 1 ? "float" : "T",
                    threshold = version < 5 ? "T_threshold" : "T";
  OpDef op{
      .name = version == 1 ? "NonMaxSuppression" : concat("NonMaxSuppressionV", version),
      .doc =
          "selected_indices = boxes [y1, x1, y2, x2] by falling score, at most "
          "max_output_size of them, without those that overlap a selected one by more than "
          "iou_threshold of what both cover",
      .inputs = {"boxes: " + type, "scores: " + type, "max_output_size: int32"},
      .outputs = {"selected_indices: int32"},
      .shape = infer,
      .kernels = {{.execute = select_indices}},
      .has_data_dependent_shape = true,
      .is_not_differentiable = true,
  };
  const char* const of_type = "T: {half, float} = float";
  Example example{.inputs = {floats({4, 4}, {0, 0, 1, 1, 0, 0.1F, 1, 1.1F, 0, 2, 1, 3, 0, 5, 1, 6}),
                             floats({0.5F, 0.75F, 0.25F, 1}), Tensor::scalar(3)},
                  .outputs = {ints({3, 1, 2})}};
  if (version == 1) {
    op.attrs = {"iou_threshold: float = 0.5"};
  } else {
    op.inputs.push_back("iou_threshold: " + threshold);
    op.attrs = {of_type};
    if (version < 5) op.attrs.push_back("T_threshold: {half, float} = float");
    example.inputs.push_back(Tensor::scalar(0.5F));
  }
  if (version >= 3) {
    op.doc += ", nor those whose score is at most score_threshold";
    op.inputs.push_back("score_threshold: " + threshold);
    example.inputs.push_back(Tensor::scalar(0.25F));
    example.outputs = {ints({3, 1})};
  }
  if (version == 5) {
    op.doc += "; with a positive soft_nms_sigma, overlapping boxes lose score instead";
    op.inputs.push_back("soft_nms_sigma: T");
    op.outputs.push_back("selected_scores: T");
    example.inputs.push_back(Tensor::scalar(0.0F));
    example.outputs.push_back(floats({1, 0.75F}));
  }
  if (version >= 4) {
    op.doc +=
        ". valid_outputs = their number; what is behind it, with pad_to_max_output_size, is 0";
    op.outputs.push_back("valid_outputs: int32");
    op.attrs.push_back("pad_to_max_output_size: bool = false");
    example.outputs.push_back(Tensor::scalar(2));
  }
  op.doc += ".";
  op.examples = {std::move(example)};
  return op;
}

const Op v1_op{op_of_version(1)}, v2_op{op_of_version(2)}, v3_op{op_of_version(3)},
    v4_op{op_of_version(4)}, v5_op{op_of_version(5)};

// ---- NonMaxSuppressionWithOverlaps

void select_by_overlaps(ExecuteContext& c) {
  const Tensor &overlaps = c.input(0), &scores = c.input(1), &at_most = c.input(2);
  const Shape& shape = overlaps.shape();
  check(shape.rank() == 2 && shape[0] == shape[1], "overlaps must be square, got shape ", shape);
  check(scores.shape() == Shape{shape[0]}, "scores has incompatible shape ", scores.shape(),
        " for ", shape[0], " boxes");
  check(at_most.shape().rank() == 0, "max_output_size must be 0-D, got shape ", at_most.shape());
  const Rules rules{.at_most = at_most.item<int32_t>(),
                    .overlap = number(c.input(3), "overlap_threshold"),
                    .score = number(c.input(4), "score_threshold")};
  check(rules.at_most >= 0, "output size must be non-negative, got ", rules.at_most);
  const std::vector<Candidate> found = selected(
      numbers(scores), rules,
      [&, n = shape[0]](int64_t i, int64_t j) { return overlaps.data<float>()[i * n + j]; });
  c.set_output(0, boxes_of(found, static_cast<int64_t>(found.size())));
}

const Op with_overlaps_op{{
    .name = "NonMaxSuppressionWithOverlaps",
    .doc =
        "selected_indices = boxes by falling score, at most max_output_size of them, without "
        "those that overlap a selected one by more than overlap_threshold, nor those whose score "
        "is at most score_threshold. Box i overlaps box j by overlaps[i, j].",
    .inputs = {"overlaps: float", "scores: float", "max_output_size: int32",
               "overlap_threshold: float", "score_threshold: float"},
    .outputs = {"selected_indices: int32"},
    .shape =
        [](ShapeContext& c) {
          const Shape overlaps = c.with_rank(0, 2), scores = c.with_rank(1, 1);
          check(overlaps[0] == any || overlaps[1] == any || overlaps[0] == overlaps[1],
                "overlaps must be square, got shape ", overlaps);
          check(overlaps[0] == any || scores[0] == any || overlaps[0] == scores[0],
                "overlaps of shape ", overlaps, " do not match scores of shape ", scores);
          for (int i = 2; i < c.num_inputs(); ++i) c.with_rank(i, 0);
          c.set_output(0, {any});
        },
    .kernels = {{.execute = select_by_overlaps}},
    .examples = {{.inputs = {floats({3, 3}, {1, 0.75F, 0, 0.75F, 1, 0, 0, 0, 1}),
                             floats({0.5F, 0.75F, 0.25F}), Tensor::scalar(3), Tensor::scalar(0.5F),
                             Tensor::scalar(0.0F)},
                  .outputs = {ints({1, 2})}}},
    .has_data_dependent_shape = true,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
