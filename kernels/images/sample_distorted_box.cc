// SampleDistortedBoundingBox, its V2 and the stateless form: choose a random part of an image for
// training. As in random.cc, results are TensorFlow's for the same seeds.
#include <cmath>
#include <limits>

#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/random/random_stream.h"

namespace leat {
namespace {

struct Rectangle {
  int64_t left = 0, top = 0, right = 0, bottom = 0;

  float area() const { return static_cast<float>((right - left) * (bottom - top)); }
  Rectangle common(const Rectangle& other) const {
    const Rectangle out{.left = std::max(left, other.left),
                        .top = std::max(top, other.top),
                        .right = std::min(right, other.right),
                        .bottom = std::min(bottom, other.bottom)};
    return out.left > out.right || out.top > out.bottom ? Rectangle{} : out;
  }
};

// Each of [0, n) has the same probability: discards the lowest 2^32 mod n draws.
uint32_t draw_below(uint32_t n, RandomWords& words) {
  if (n == 0) return words.next() * n;
  if ((n & (n - 1)) == 0) return words.next() & (n - 1);
  const uint32_t rest = std::numeric_limits<uint32_t>::max() % n + 1;
  uint32_t drawn = words.next();
  while (drawn < rest) drawn = words.next();
  return drawn % n;
}

// Rounds to the nearest integer, truncated to 32 bits as in TensorFlow.
int64_t rounded(float x) { return static_cast<int32_t>(std::lrint(x)); }

struct Rules {
  float least_aspect, most_aspect, least_area, most_area;
  int64_t attempts;
  bool may_lack_boxes;

  explicit Rules(const NodeView& node)
      : attempts(node.attr<int64_t>("max_attempts")),
        may_lack_boxes(node.attr<bool>("use_image_if_no_bounding_boxes")) {
    const auto& aspects = node.attr<std::vector<float>>("aspect_ratio_range");
    const auto& areas = node.attr<std::vector<float>>("area_range");
    check(aspects.size() == 2, "Aspect ratio range field must specify 2 dimensions, got ",
          aspects.size());
    check(areas.size() == 2, "Area range field must specify 2 dimensions, got ", areas.size());
    check(aspects[0] > 0 && aspects[1] > 0, "Aspect ratio range must be positive: [", aspects[0],
          ", ", aspects[1], "]");
    check(areas[0] > 0 && areas[1] > 0 && areas[0] <= 1 && areas[1] <= 1,
          "Area range must lie in (0, 1]: [", areas[0], ", ", areas[1], "]");
    check(attempts > 0 && attempts <= std::numeric_limits<int32_t>::max(),
          "Max attempts must be positive: ", attempts);
    least_aspect = aspects[0];
    most_aspect = aspects[1];
    least_area = areas[0];
    most_area = areas[1];
  }
};

// Draws a crop of `width` x `height` pixels with this ratio of its width to its height and an area
// within the rules, if rounding to pixels allows one: its height is drawn, then its place.
bool draw_crop(const Rules& rules, int64_t width, int64_t height, float aspect, RandomWords& words,
               Rectangle* crop) {
  if (!(rules.most_area > 0) || aspect <= 0 || width <= 0 || height <= 0 ||
      rules.least_area > rules.most_area)
    return false;
  const auto columns = static_cast<float>(width), rows = static_cast<float>(height);
  const float least = rules.least_area * columns * rows, most = rules.most_area * columns * rows;
  const auto width_of = [aspect](int64_t h) { return rounded(static_cast<float>(h) * aspect); };
  // Not truncated to 32 bits, for comparisons.
  const auto is_too_wide = [&](int64_t h) {
    return std::lrint(static_cast<float>(h) * aspect) > width;
  };

  int64_t h = rounded(std::sqrt(least / aspect)), highest = rounded(std::sqrt(most / aspect));
  if (is_too_wide(highest)) {
    constexpr float tiny = 0.0000001F;
    const double fitting = (static_cast<double>(width) + 0.5 - tiny) / aspect;
    highest = static_cast<int64_t>(std::min(fitting, 2147483647.0));
    if (is_too_wide(highest)) --highest;
  }
  highest = std::min(highest, height);
  h = std::min(h, highest);
  if (h < highest)
    h = static_cast<int32_t>(h + draw_below(static_cast<uint32_t>(highest - h + 1), words));

  int64_t w = width_of(h);
  float area = static_cast<float>(w * h);
  if (area < least) {
    w = width_of(++h);
    area = static_cast<float>(w * h);
  }
  if (area > most) {
    w = width_of(--h);
    area = static_cast<float>(w * h);
  }
  if (area < least || area > most || w > width || h > height || w <= 0 || h <= 0) return false;
  const auto place = [&](int64_t size, int64_t extent) {
    return size < extent ? draw_below(static_cast<uint32_t>(extent - size), words) : 0;
  };
  const int64_t top = place(h, height), left = place(w, width);
  *crop = {.left = left, .top = top, .right = left + w, .bottom = top + h};
  return true;
}

// Whether this part of one of the boxes is within the crop.
bool is_covered(const Rectangle& crop, float part, const std::vector<Rectangle>& boxes) {
  if (crop.area() < 1) return false;
  return std::any_of(boxes.begin(), boxes.end(), [&](const Rectangle& box) {
    return box.area() >= 1 && crop.common(box).area() / box.area() >= part;
  });
}

std::vector<Rectangle> pixels_of(const float* boxes, int64_t count, int64_t width, int64_t height) {
  std::vector<Rectangle> out;
  for (const float* box = boxes; box != boxes + 4 * count; box += 4) {
    for (int i = 0; i < 4; ++i) {
      check(box[i] >= 0 && box[i] <= 1,
            "All bounding box coordinates must be in [0.0, 1.0]: ", box[i]);
    }
    const auto pixel = [](float at, int64_t extent) {
      return static_cast<int64_t>(at * static_cast<float>(extent));
    };
    out.push_back({.left = pixel(box[1], width),
                   .top = pixel(box[0], height),
                   .right = pixel(box[3], width),
                   .bottom = pixel(box[2], height)});
  }
  return out;
}

template <class T>
void sample(const Arguments& a, const Rules& rules, float covered, int64_t box_count,
            RandomWords words) {
  check(covered >= 0, "Min object covered must be non-negative: ", covered);
  const auto extent = [&](int axis, const char* what) {
    const auto n = static_cast<int64_t>(a.input<T>(0)[axis]);
    check(n >= 0 && n < std::numeric_limits<int32_t>::max(), "image ", what,
          " must be in [0, int32 max), got ", n);
    return n;
  };
  const int64_t height = extent(0, "height"), width = extent(1, "width");
  const Rectangle image{.right = width, .bottom = height};
  std::vector<Rectangle> boxes = pixels_of(a.input<float>(1), box_count, width, height);
  if (boxes.empty()) {
    check(rules.may_lack_boxes,
          "No bounding boxes provided as input. One must enable use_image_if_no_bounding_boxes if "
          "you wish to not provide any bounding boxes.");
    boxes = {image};
  }
  Rectangle crop;
  bool is_found = false;
  for (int64_t i = 0; i < rules.attempts && !is_found; ++i) {
    const float aspect =
        uniform(words.next()) * (rules.most_aspect - rules.least_aspect) + rules.least_aspect;
    is_found =
        draw_crop(rules, width, height, aspect, words, &crop) && is_covered(crop, covered, boxes);
  }
  if (!is_found) crop = image;
  T* begin = a.output<T>(0);
  T* size = a.output<T>(1);
  float* box = a.output<float>(2);
  begin[0] = static_cast<T>(crop.top);
  begin[1] = static_cast<T>(crop.left);
  begin[2] = 0;
  size[0] = static_cast<T>(crop.bottom - crop.top);
  size[1] = static_cast<T>(crop.right - crop.left);
  size[2] = static_cast<T>(-1);  // all channels
  const auto part = [](int64_t at, int64_t of) {
    return static_cast<float>(at) / static_cast<float>(of);
  };
  box[0] = part(crop.top, height);
  box[1] = part(crop.left, width);
  box[2] = part(crop.bottom, height);
  box[3] = part(crop.right, width);
}

template <class T>
BoundKernel prepare(TypeTag<T>, const KernelRequest& r) {
  const Rules rules(r.node);
  const int64_t boxes = r.inputs[1].shape.elements() / 4;
  if (r.node.has("Tseed")) {
    return BoundKernel::of([=, seed_type = r.inputs[3].dtype](const Arguments& a) {
      sample<T>(a, rules, *a.input<float>(2), boxes,
                RandomWords(StatelessSeed::of(a, 3, seed_type).generator()));
    });
  }
  const bool has_input = r.inputs.size() > 2;
  const float covered = has_input ? 0 : r.attr<float>("min_object_covered");
  return BoundKernel::of([=, stream = RandomStream::of(r)](const Arguments& a) {
    sample<T>(a, rules, has_input ? *a.input<float>(2) : covered, boxes,
              RandomWords(stream->take(rules.attempts)));
  });
}

void infer(ShapeContext& c) {
  const Shape size = c.with_rank(0, 1), boxes = c.with_rank(1, 3);
  check(size[0] == any || size[0] == 3, "image_size must contain 3 elements, got ", size);
  check(boxes[2] == any || boxes[2] == 4, "bounding boxes must have shape [4] or [*, 4], got ",
        boxes);
  if (c.num_inputs() > 2) c.with_rank(2, 0);
  if (c.num_inputs() > 3) {
    const Shape seed = c.with_rank(3, 1);
    check(seed[0] == any || seed[0] == 2, "seed must have shape [2], not ", seed);
  }
  c.set_output(0, {3});
  c.set_output(1, {3});
  c.set_output(2, {1, 1, 4});
}

enum class Version { v1, v2, stateless };

OpDef sample_op(Version version) {
  const bool is_stateless = version == Version::stateless;
  OpDef op{
      .name = version == Version::v1   ? "SampleDistortedBoundingBox"
              : version == Version::v2 ? "SampleDistortedBoundingBoxV2"
                                       : "StatelessSampleDistortedBoundingBox",
      .doc =
          "A random part of an image of image_size = [height, width, channels], for slice(image, "
          "begin, size), and the same as bboxes = [[[y1, x1, y2, x2]]] in parts of the image: of a "
          "ratio of width to height, and an area, in the given ranges, and with at least "
          "min_object_covered of one of the bounding boxes; the whole image if max_attempts find "
          "none.",
      .inputs = {"image_size: T", "bounding_boxes: float"},
      .outputs = {"begin: T", "size: T", "bboxes: float"},
      .attrs = {"T: {uint8, int8, int16, int32, int64}"},
      .shape = infer,
      .kernels = {cpu_kernel(
          "T", Types<uint8_t, int8_t, int16_t, int32_t, int64_t>{},
          []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare(t, r); })},
      // Nothing but the whole image fits.
      .examples = {{.inputs = {ints({4, 4, 3}), floats({1, 1, 4}, {0, 0, 1, 1})},
                    .attrs = {{"aspect_ratio_range", std::vector<float>{1, 1}},
                              {"area_range", std::vector<float>{1, 1}}},
                    .outputs = {ints({0, 0, 0}), ints({4, 4, -1}),
                                floats({1, 1, 4}, {0, 0, 1, 1})}}},
      .is_stateful = !is_stateless,
      .is_not_differentiable = true,
  };
  if (is_stateless) {
    op.attrs.emplace_back("Tseed: {int32, int64}");
  } else {
    op.attrs.insert(op.attrs.end(), {"seed: int = 0", "seed2: int = 0"});
  }
  if (version == Version::v1) {
    op.attrs.emplace_back("min_object_covered: float = 0.1");
  } else {
    op.inputs.emplace_back("min_object_covered: float");
    op.examples[0].inputs.push_back(Tensor::scalar(0.5F));
  }
  if (is_stateless) {
    op.inputs.emplace_back("seed: Tseed");
    op.examples[0].inputs.push_back(longs({1, 2}));
  }
  op.attrs.insert(op.attrs.end(), {"aspect_ratio_range: list(float) = [0.75, 1.33]",
                                   "area_range: list(float) = [0.05, 1]", "max_attempts: int = 100",
                                   "use_image_if_no_bounding_boxes: bool = false"});
  return op;
}

const Op v1_op{sample_op(Version::v1)}, v2_op{sample_op(Version::v2)},
    stateless_op{sample_op(Version::stateless)};

}  // namespace
}  // namespace leat
