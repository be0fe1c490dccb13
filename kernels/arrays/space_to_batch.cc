// leat: cpu+cuda
// Move blocks of pixels between space and channels (SpaceToDepth, DepthToSpace) or between space
// and batch (SpaceToBatchND, BatchToSpaceND and their forms for images).
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/examples.h"
#include "kernels/extents.h"
#include "kernels/moves/moves.h"
#include "kernels/window.h"

namespace leat {
namespace {

int64_t product(int64_t a, int64_t b) {
  return a == any || b == any ? any : product_of_extents(a, b);
}

int64_t quotient(int64_t a, int64_t b, const char* what) {
  if (a == any || b == any) return any;
  check(a % b == 0, what, " ", a, " is not divisible by ", b);
  return a / b;
}

// ---- Between space and channels

void infer_space_to_depth(ShapeContext& c) {
  const ImageAxes axes = image_axes(c.node());
  const int64_t block = c.attr<int64_t>("block_size");
  Shape out = c.with_rank(0, 4);
  for (int axis : {axes.height, axes.width})
    out.set(axis, quotient(out[axis], block, "image extent"));
  out.set(axes.channels, product(out[axes.channels], product(block, block)));
  c.set_output(0, out);
}

void infer_depth_to_space(ShapeContext& c) {
  const ImageAxes axes = image_axes(c.node());
  const int64_t block = c.attr<int64_t>("block_size");
  Shape out = c.with_rank(0, 4);
  for (int axis : {axes.height, axes.width}) out.set(axis, product(out[axis], block));
  out.set(axes.channels,
          quotient(out[axes.channels], product(block, block), "the number of channels"));
  c.set_output(0, out);
}

// The copy from an image `space` to `depth`, which has blocks * blocks times its channels.
template <bool to_depth, class T>
BoundKernel prepare_depth(TypeTag<T>, const KernelRequest& r) {
  const Shape &in = r.inputs[0].shape, &out = r.outputs[0].shape;
  const Shape &space = to_depth ? in : out, &depth = to_depth ? out : in;
  const ImageAxes axes = image_axes(r.node);
  const int64_t block = r.attr<int64_t>("block_size");
  const std::vector<int64_t> s = strides_of(space), d = strides_of(depth);
  const int64_t channels = space[axes.channels];
  std::vector<StridedCopy::Axis> copy = {
      {space[axes.batch], s[axes.batch], d[axes.batch]},
      {depth[axes.height], s[axes.height] * block, d[axes.height]},
      {block, s[axes.height], d[axes.channels] * block * channels},
      {depth[axes.width], s[axes.width] * block, d[axes.width]},
      {block, s[axes.width], d[axes.channels] * channels},
      {channels, s[axes.channels], d[axes.channels]}};
  if (!to_depth) {
    for (StridedCopy::Axis& axis : copy) std::swap(axis.from, axis.to);
  }
  return BoundKernel::of([copy = StridedCopy(std::move(copy))](const Arguments& a) {
    copy_strided(copy, a, a.input<T>(0), a.output<T>());
  });
}

const std::vector<std::string> depth_attrs = {
    "T: type", "block_size: int >= 2", "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'"};

AttrMap depth_attrs_of(Gradient& g) {
  return {{"block_size", g.node().attrs.at("block_size")},
          {"data_format", g.node().attrs.at("data_format")}};
}

const Op space_to_depth_op{{
    .name = "SpaceToDepth",
    .doc = "output[n, y, x, (i * block_size + j) * channels + c] = input[n, y * block_size + i, x "
           "* block_size + j, c].",
    .inputs = {"input: T"},
    .outputs = {"output: T"},
    .attrs = depth_attrs,
    .shape = infer_space_to_depth,
    .gradient = [](Gradient& g) { g.dx() = op("DepthToSpace", {g.dy()}, depth_attrs_of(g)); },
    .kernels = moving_kernels(
        "T",
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_depth<true>(t, r); }),
    .examples = {{.inputs = {floats({1, 2, 4, 1}, {1, 2, 3, 4, 5, 6, 7, 8})},
                  .attrs = {{"block_size", 2}},
                  .outputs = {floats({1, 1, 2, 4}, {1, 2, 5, 6, 3, 4, 7, 8})}}},
}};

const Op depth_to_space_op{{
    .name = "DepthToSpace",
    .doc = "output[n, y * block_size + i, x * block_size + j, c] = input[n, y, x, (i * block_size "
           "+ j) * channels + c].",
    .inputs = {"input: T"},
    .outputs = {"output: T"},
    .attrs = depth_attrs,
    .shape = infer_depth_to_space,
    .gradient = [](Gradient& g) { g.dx() = op("SpaceToDepth", {g.dy()}, depth_attrs_of(g)); },
    .kernels = moving_kernels(
        "T",
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_depth<false>(t, r); }),
    .examples = {{.inputs = {floats({1, 1, 2, 4}, {1, 2, 5, 6, 3, 4, 7, 8})},
                  .attrs = {{"block_size", 2}},
                  .outputs = {floats({1, 2, 4, 1}, {1, 2, 3, 4, 5, 6, 7, 8})}}},
}};

// ---- Between space and batch

// Along each of the axes 1, 2, …: the block, and the padding (or cropping) before and after.
struct Blocks {
  std::vector<int64_t> size, before, after;

  int count() const { return static_cast<int>(size.size()); }
  int64_t places() const {
    int64_t out = 1;
    for (int64_t block : size) out = product_of_extents(out, block);
    return out;
  }
};

// The ops for images have the block as an attribute, and the borders as input 1.
bool is_for_images(const NodeView& node) { return node.has("block_size"); }

Blocks blocks_of(const NodeView& node, const Tensor* block_shape, const Tensor& borders) {
  Blocks blocks;
  blocks.size = is_for_images(node) ? std::vector<int64_t>(2, node.attr<int64_t>("block_size"))
                                    : to_int64s(*block_shape);
  const size_t n = blocks.size.size();
  check(borders.shape() == Shape({static_cast<int64_t>(n), 2}),
        "paddings or crops must have a row of 2 per axis of blocks, [", n, ",2], got shape ",
        borders.shape());
  const std::vector<int64_t> sizes = to_int64s(borders);
  for (size_t i = 0; i < n; ++i) {
    check(blocks.size[i] >= 1, "block_shape must be positive, got ", blocks.size[i]);
    check(sizes[2 * i] >= 0 && sizes[2 * i + 1] >= 0,
          "paddings or crops must be non-negative, got ", sizes[2 * i], " and ", sizes[2 * i + 1]);
    blocks.before.push_back(sizes[2 * i]);
    blocks.after.push_back(sizes[2 * i + 1]);
  }
  return blocks;
}

void check_rank(const Shape& shape, int axes_of_blocks) {
  check(shape.rank() > axes_of_blocks, "input rank should be >= ", axes_of_blocks + 1,
        ", got shape ", shape);
}

Shape batch_shape(const Shape& space, const Blocks& blocks) {
  check_rank(space, blocks.count());
  Shape out = space;
  out.set(0, product(space[0], blocks.places()));
  for (int i = 0; i < blocks.count(); ++i) {
    if (space[i + 1] == any) continue;
    const int64_t padded =
        sum_of_extents(sum_of_extents(space[i + 1], blocks.before[i]), blocks.after[i]);
    out.set(i + 1, quotient(padded, blocks.size[i], "padded extent"));
  }
  return out;
}

Shape space_shape(const Shape& batch, const Blocks& blocks) {
  check_rank(batch, blocks.count());
  Shape out = batch;
  out.set(0, quotient(batch[0], blocks.places(), "batch size"));
  for (int i = 0; i < blocks.count(); ++i) {
    if (batch[i + 1] == any) continue;
    const int64_t extent =
        product(batch[i + 1], blocks.size[i]) - sum_of_extents(blocks.before[i], blocks.after[i]);
    check(extent >= 0, "cropped extent of axis ", i + 1, " is ", extent,
          ": crops must be smaller than input * block");
    out.set(i + 1, extent);
  }
  return out;
}

template <bool to_batch>
void infer_batch(ShapeContext& c) {
  const bool images = is_for_images(c.node());
  const int borders = images ? 1 : 2;
  const Shape in = images ? c.with_rank(0, 4) : c.with_rank_at_least(0, 1);
  if (!images) c.with_rank(1, 1);
  c.with_rank(borders, 2);
  const Tensor *block_shape = images ? nullptr : c.value(1), *value = c.value(borders);
  if (!in.has_rank() || value == nullptr || (!images && block_shape == nullptr)) {
    return c.set_output(0, in.has_rank() ? Shape::of_rank(in.rank()) : in);
  }
  const Blocks blocks = blocks_of(c.node(), block_shape, *value);
  c.set_output(0, to_batch ? batch_shape(in, blocks) : space_shape(in, blocks));
}

// One copy for each place within a block: between the batch entries of this place and its pixels in
// every block, as far as they lie within the border.
struct PlacedCopy {
  StridedCopy copy;
  int64_t space = 0, batch = 0;  // where it begins in either tensor
};

template <bool to_batch>
PlacedCopy copy_of_place(int64_t place, const Blocks& blocks, const Shape& space,
                         const Shape& batch) {
  const std::vector<int64_t> s = strides_of(space), b = strides_of(batch);
  const auto axis = [](int64_t extent, int64_t in_space, int64_t in_batch) {
    return to_batch ? StridedCopy::Axis{extent, in_space, in_batch}
                    : StridedCopy::Axis{extent, in_batch, in_space};
  };
  PlacedCopy out{.batch = place * space[0] * b[0]};
  std::vector<StridedCopy::Axis> axes(space.rank());
  axes[0] = axis(space[0], s[0], b[0]);
  for (int i = blocks.count(); i-- > 0; place /= blocks.size[i]) {
    const int64_t size = blocks.size[i], first = place % size - blocks.before[i];
    const int64_t begin = first < 0 ? (-first + size - 1) / size : 0;
    const int64_t extent = space[i + 1];
    const int64_t end = first < extent ? (extent - first + size - 1) / size : 0;
    axes[i + 1] = axis(std::max<int64_t>(0, end - begin), s[i + 1] * size, b[i + 1]);
    out.space += (first + begin * size) * s[i + 1];
    out.batch += begin * b[i + 1];
  }
  for (int i = blocks.count() + 1; i < space.rank(); ++i) axes[i] = axis(space[i], s[i], b[i]);
  out.copy = StridedCopy(std::move(axes));
  return out;
}

// The number of places in a block that have pixels of `space`; it is bounded, however large the
// block is.
int64_t places_with_pixels(const Blocks& blocks, const Shape& space) {
  int64_t out = 1;
  for (int i = 0; i < blocks.count(); ++i) out *= std::min(blocks.size[i], space[i + 1]);
  return out;
}

int64_t place_with_pixels(int64_t number, const Blocks& blocks, const Shape& space) {
  int64_t out = 0, step = 1;
  for (int i = blocks.count(); i-- > 0; step *= blocks.size[i]) {
    const int64_t size = blocks.size[i], count = std::min(size, space[i + 1]);
    out += (blocks.before[i] % size + number % count) % size * step;
    number /= count;
  }
  return out;
}

template <bool to_batch, class T>
BoundKernel prepare_batch(TypeTag<T>, const KernelRequest& r) {
  const bool images = is_for_images(r.node);
  const Blocks blocks =
      blocks_of(r.node, images ? nullptr : r.inputs[1].value, *r.inputs[images ? 1 : 2].value);
  const Shape &in = r.inputs[0].shape, &out = r.outputs[0].shape;
  std::vector<PlacedCopy> copies;
  const Shape &space = to_batch ? in : out, &batch = to_batch ? out : in;
  const int64_t places =
      are_empty(r.inputs.first(1)) || are_empty(r.outputs) ? 0 : places_with_pixels(blocks, space);
  for (int64_t i = 0; i < places; ++i) {
    copies.push_back(
        copy_of_place<to_batch>(place_with_pixels(i, blocks, space), blocks, space, batch));
    if (copies.back().copy.elements() == 0) copies.pop_back();
  }
  return BoundKernel::of([copies = std::move(copies), n = out.elements()](const Arguments& a) {
    if (to_batch) fill_elements(a, a.output<T>(), n);
    for (const PlacedCopy& place : copies) {
      copy_strided(place.copy, a, a.input<T>(0) + (to_batch ? place.space : place.batch),
                   a.output<T>() + (to_batch ? place.batch : place.space));
    }
  });
}

template <bool to_batch>
std::vector<Kernel> batch_kernels() {
  return moving_kernels("T", []<class T>(TypeTag<T> t, const KernelRequest& r) {
    return prepare_batch<to_batch>(t, r);
  });
}

const Op space_to_batch_nd_op{{
    .name = "SpaceToBatchND",
    .doc = "The input, padded with zeros, cut along the axes 1, 2, … into blocks of block_shape: "
           "output[place * batch + n, y…] = padded[n, y * block + place…], where place counts the "
           "elements of a block in row-major order.",
    .inputs = {"input: T", "block_shape: Tblock_shape", "paddings: Tpaddings"},
    .outputs = {"output: T"},
    .attrs = {"T: type", "Tblock_shape: {int32, int64} = int32",
              "Tpaddings: {int32, int64} = int32"},
    .shape = infer_batch<true>,
    .gradient =
        [](Gradient& g) {
          g.dx(0) = op("BatchToSpaceND", {g.dy(), g.x(1), g.x(2)});
        },
    .kernels = batch_kernels<true>(),
    .examples = {{.inputs = {floats({1, 3, 1}, {1, 2, 3}), ints({2}), ints({1, 2}, {0, 1})},
                  .outputs = {floats({2, 2, 1}, {1, 3, 2, 0})}}},
    .value_inputs = {1, 2},
}};

const Op batch_to_space_nd_op{{
    .name = "BatchToSpaceND",
    .doc = "The inverse of SpaceToBatchND: blocks of block_shape put together along the axes 1, 2, "
           "…, then cropped.",
    .inputs = {"input: T", "block_shape: Tblock_shape", "crops: Tcrops"},
    .outputs = {"output: T"},
    .attrs = {"T: type", "Tblock_shape: {int32, int64} = int32", "Tcrops: {int32, int64} = int32"},
    .shape = infer_batch<false>,
    .gradient =
        [](Gradient& g) {
          g.dx(0) = op("SpaceToBatchND", {g.dy(), g.x(1), g.x(2)});
        },
    .kernels = batch_kernels<false>(),
    .examples = {{.inputs = {floats({2, 2, 1}, {1, 3, 2, 4}), ints({2}), ints({1, 2}, {0, 1})},
                  .outputs = {floats({1, 3, 1}, {1, 2, 3})}}},
    .value_inputs = {1, 2},
}};

const Op space_to_batch_op{{
    .name = "SpaceToBatch",
    .doc = "SpaceToBatchND of images [batch, height, width, channels], with square blocks.",
    .inputs = {"input: T", "paddings: Tpaddings"},
    .outputs = {"output: T"},
    .attrs = {"T: type", "Tpaddings: {int32, int64} = int32", "block_size: int >= 2"},
    .shape = infer_batch<true>,
    .gradient =
        [](Gradient& g) {
          g.dx(0) =
              op("BatchToSpace", {g.dy(), g.x(1)}, {{"block_size", g.attr<int64_t>("block_size")}});
        },
    .kernels = batch_kernels<true>(),
    .examples = {{.inputs = {floats({1, 2, 2, 1}, {1, 2, 3, 4}), ints({2, 2}, {0, 0, 0, 0})},
                  .attrs = {{"block_size", 2}},
                  .outputs = {floats({4, 1, 1, 1}, {1, 2, 3, 4})}}},
    .value_inputs = {1},
}};

const Op batch_to_space_op{{
    .name = "BatchToSpace",
    .doc = "BatchToSpaceND to images [batch, height, width, channels], with square blocks.",
    .inputs = {"input: T", "crops: Tidx"},
    .outputs = {"output: T"},
    .attrs = {"T: type", "block_size: int >= 2", "Tidx: {int32, int64} = int32"},
    .shape = infer_batch<false>,
    .gradient =
        [](Gradient& g) {
          g.dx(0) =
              op("SpaceToBatch", {g.dy(), g.x(1)}, {{"block_size", g.attr<int64_t>("block_size")}});
        },
    .kernels = batch_kernels<false>(),
    .examples = {{.inputs = {floats({4, 1, 1, 1}, {1, 2, 3, 4}), ints({2, 2}, {0, 0, 1, 0})},
                  .attrs = {{"block_size", 2}},
                  .outputs = {floats({1, 2, 1, 1}, {2, 4})}}},
    .value_inputs = {1},
}};

}  // namespace
}  // namespace leat
