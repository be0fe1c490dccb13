// CombinedNonMaxSuppression: the boxes of all classes that a detector keeps for each image.
#include <algorithm>
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

struct Found {
  int64_t box = -1;  // none
  float score = -std::numeric_limits<float>::infinity();
  int64_t cls = -1;
  const float* corners = nullptr;
};

struct Candidate {
  int64_t box;
  float score;
};

struct Detections {
  int64_t boxes, per_box, classes;  // per_box: boxes of their own for each class, or 1
  int64_t per_class;                // upper limit
  float overlap, score;
  bool clips;

  const float* corners(const float* from, int64_t box, int64_t cls) const {
    return from + (box * per_box + (per_box > 1 ? cls : 0)) * 4;
  }

  // The boxes of one class, by descending score. Among equal scores, TensorFlow takes the first of
  // its heap and its sort, which are the standard library's, as here.
  void select(const float* from, const float* scores, int64_t cls, Found* out) const {
    const auto is_less = [](const Candidate& a, const Candidate& b) { return a.score < b.score; };
    std::priority_queue<Candidate, std::vector<Candidate>, decltype(is_less)> candidates(is_less);
    for (int64_t i = 0; i < boxes; ++i) {
      const float x = scores[i * classes + cls];
      if (x > score) candidates.push({i, x});
    }
    for (int64_t count = 0; count < per_class && !candidates.empty();) {
      const Candidate next = candidates.top();
      candidates.pop();
      const float* box = corners(from, next.box, cls);
      bool is_suppressed = false;
      for (int64_t i = count; i-- > 0 && !is_suppressed;) {
        StepEnd::pace(16);
        is_suppressed = leat::overlap(box, out[i].corners) > overlap;
      }
      if (!is_suppressed) out[count++] = {next.box, next.score, cls, box};
    }
  }

  // The best of all classes of one image.
  std::vector<Found> best(const float* from, const float* scores, int64_t at_most) const {
    if (boxes == 0) return {};  // for any number of classes
    std::vector<Found> out(per_class * classes);
    for (int64_t cls = 0; cls < classes; ++cls)
      select(from, scores, cls, out.data() + cls * per_class);
    std::sort(out.begin(), out.end(),
              [](const Found& a, const Found& b) { return b.score < a.score; });
    const auto end =
        std::find_if(out.begin(), out.end(), [](const Found& found) { return found.box < 0; });
    out.resize(std::min<int64_t>(at_most, end - out.begin()));
    return out;
  }
};

float number(const Tensor& tensor, const char* what) {
  check(tensor.shape().rank() == 0, what, " must be 0-D, got shape ", tensor.shape());
  return tensor.item<float>();
}

int64_t positive(const Tensor& tensor, const char* what) {
  check(tensor.shape().rank() == 0, what, " must be 0-D, got shape ", tensor.shape());
  const auto out = tensor.item<int32_t>();
  check(out > 0, what, " must be positive, got ", out);
  return out;
}

void check_shapes(const Shape& boxes, const Shape& scores) {
  const auto fit = [](int64_t a, int64_t b) { return a == any || b == any || a == b; };
  check(boxes.rank() == 4 && fit(boxes[3], 4),
        "boxes must be 4-D [batch, num_boxes, q, 4], got shape ", boxes);
  check(scores.rank() == 3, "scores must be 3-D [batch, num_boxes, num_classes], got shape ",
        scores);
  check(fit(boxes[0], scores[0]) && fit(boxes[1], scores[1]), "boxes of shape ", boxes,
        " do not match scores of shape ", scores);
  check(boxes[2] == 1 || fit(boxes[2], scores[2]),
        "third dimension of boxes must be either 1 or num classes, got ", boxes, " and ", scores);
}

void detect(ExecuteContext& c) {
  const Shape &boxes = c.input(0).shape(), &scores = c.input(1).shape();
  check_shapes(boxes, scores);
  const int64_t per_class = positive(c.input(2), "max_size_per_class"),
                total = positive(c.input(3), "max_total_size");
  const Detections detections{.boxes = boxes[1],
                              .per_box = boxes[2],
                              .classes = scores[2],
                              .per_class = std::min(per_class, boxes[1]),
                              .overlap = number(c.input(4), "iou_threshold"),
                              .score = number(c.input(5), "score_threshold"),
                              .clips = c.node().attr<bool>("clip_boxes")};
  check(detections.overlap >= 0 && detections.overlap <= 1, "iou_threshold must be in [0, 1], got ",
        detections.overlap);
  const int64_t size = c.node().attr<bool>("pad_per_class")
                           ? std::min(total, per_class * std::min(total, scores[2]))
                           : total;
  const int64_t images = boxes[0];
  Tensor out_boxes(DType::f32, {images, size, 4}), out_scores(DType::f32, {images, size}),
      out_classes(DType::f32, {images, size}), counts(DType::i32, {images});
  for (Tensor* out : {&out_boxes, &out_scores, &out_classes})
    std::fill_n(out->data<float>(), out->elements(), 0.0F);
  for (int64_t image = 0; image < images; ++image) {
    const auto found =
        detections.best(c.input(0).data<float>() + image * boxes[1] * boxes[2] * 4,
                        c.input(1).data<float>() + image * scores[1] * scores[2], size);
    counts.data<int32_t>()[image] = static_cast<int32_t>(found.size());
    for (size_t i = 0; i < found.size(); ++i) {
      const int64_t at = image * size + static_cast<int64_t>(i);
      for (int k = 0; k < 4; ++k) {
        const float x = found[i].corners[k];
        out_boxes.data<float>()[at * 4 + k] =
            detections.clips ? std::max(std::min(x, 1.0F), 0.0F) : x;
      }
      out_scores.data<float>()[at] = found[i].score;
      out_classes.data<float>()[at] = static_cast<float>(found[i].cls);
    }
  }
  c.set_output(0, std::move(out_boxes));
  c.set_output(1, std::move(out_scores));
  c.set_output(2, std::move(out_classes));
  c.set_output(3, std::move(counts));
}

const Op combined_op{{
    .name = "CombinedNonMaxSuppression",
    .doc = "Per image, the boxes [y1, x1, y2, x2] of all classes by falling score, at most "
           "max_output_size_per_class of a class and max_total_size in all, without those that "
           "overlap a better one of their class by more than iou_threshold, nor those whose score "
           "is at most score_threshold; valid_detections of them, and 0 behind, up to "
           "max_total_size (with pad_per_class, to what the classes can have, if that is less). "
           "With clip_boxes, their corners are cut to [0, 1].",
    .inputs = {"boxes: float", "scores: float", "max_output_size_per_class: int32",
               "max_total_size: int32", "iou_threshold: float", "score_threshold: float"},
    .outputs = {"nmsed_boxes: float", "nmsed_scores: float", "nmsed_classes: float",
                "valid_detections: int32"},
    .attrs = {"pad_per_class: bool = false", "clip_boxes: bool = true"},
    .shape =
        [](ShapeContext& c) {
          const Shape boxes = c.with_rank(0, 4), scores = c.with_rank(1, 3);
          check_shapes(boxes, scores);
          for (int i = 2; i < c.num_inputs(); ++i) c.with_rank(i, 0);
          const int64_t images = boxes[0] == any ? scores[0] : boxes[0];
          c.set_output(0, {images, any, 4});
          c.set_output(1, {images, any});
          c.set_output(2, {images, any});
          c.set_output(3, {images});
        },
    .kernels = {{.execute = detect}},
    .examples = {{.inputs = {floats({1, 2, 1, 4}, {0, 0, 1, 1, 0, 0, 1, 0.75F}),
                             floats({1, 2, 2}, {0.5F, 0.25F, 0.75F, 0}), Tensor::scalar(2),
                             Tensor::scalar(3), Tensor::scalar(0.5F), Tensor::scalar(0.0F)},
                  .outputs = {floats({1, 3, 4}, {0, 0, 1, 0.75F, 0, 0, 1, 1, 0, 0, 0, 0}),
                              floats({1, 3}, {0.75F, 0.25F, 0}), floats({1, 3}, {0, 1, 0}),
                              ints({2})}}},
    .has_data_dependent_shape = true,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
