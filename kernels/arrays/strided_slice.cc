// leat: cpu+cuda
// StridedSlice, its gradient, and assignments to such slices of variables.
#include "kernels/arrays/strided_slice.h"

#include <bit>

#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/ops/raw.h"
#include "graph/shape_inference.h"
#include "kernels/examples.h"
#include "kernels/moves/moves.h"
#include "kernels/state/resource_form.h"

namespace leat {
namespace {

bool bit(int64_t mask, int64_t i) { return (mask >> i) & 1; }

// The position of an index in the spec, or -1 for an axis that an ellipsis covers.
struct AxisIndex {
  int64_t at = -1;
  bool shrink = false;
};

std::vector<int64_t> numbers(const Tensor* tensor) {
  if (tensor == nullptr) return {};
  if (tensor->dtype() != DType::i16) return to_int64s(*tensor);
  const auto values = tensor->span<int16_t>();
  return {values.begin(), values.end()};
}

}  // namespace

StridedSlice StridedSlice::resolve(const NodeView& node, const Shape& input, int64_t indices,
                                   const Tensor* begin_value, const Tensor* end_value,
                                   const Tensor* strides_value) {
  const int64_t begin_mask = node.attr<int64_t>("begin_mask"),
                end_mask = node.attr<int64_t>("end_mask");
  const int64_t ellipsis_mask = node.attr<int64_t>("ellipsis_mask");
  const int64_t new_mask = node.attr<int64_t>("new_axis_mask"),
                shrink_mask = node.attr<int64_t>("shrink_axis_mask");
  check(std::popcount(static_cast<uint64_t>(ellipsis_mask)) <= 1,
        "Multiple ellipses in slice spec not allowed");
  check(indices < 64, "slice spec has ", indices, " indices, but at most 63 are supported");
  const std::vector<int64_t> begin = numbers(begin_value), end = numbers(end_value),
                             strides = numbers(strides_value);
  const bool known = begin_value != nullptr && end_value != nullptr && strides_value != nullptr;
  check(!known || (begin.size() == end.size() && begin.size() == strides.size()),
        "begin, end and strides have different lengths: ", begin.size(), ", ", end.size(), ", ",
        strides.size());

  // Which index belongs to which axis, and the order of axes in the result (-1 is a new one).
  std::vector<AxisIndex> of_axis;
  std::vector<int> order;
  bool ellipsis_seen = false;
  const auto skip_to = [&](int64_t axis) {
    while (static_cast<int64_t>(of_axis.size()) < axis) {
      order.push_back(static_cast<int>(of_axis.size()));
      of_axis.emplace_back();
    }
  };
  for (int64_t i = 0; i < indices; ++i) {
    if (bit(ellipsis_mask, i)) {
      ellipsis_seen = true;
      int64_t behind = 0;  // indices of axes after the ellipsis
      for (int64_t j = i + 1; j < indices; ++j) behind += !bit(new_mask, j);
      skip_to(std::max<int64_t>(input.rank() - behind, of_axis.size()));
    } else if (bit(new_mask, i)) {
      order.push_back(-1);
    } else {
      check(static_cast<int>(of_axis.size()) < input.rank(), "Index out of range using input dim ",
            of_axis.size(), "; input has only ", input.rank(), " dims");
      const bool shrink = bit(shrink_mask, i);
      if (!shrink) order.push_back(static_cast<int>(of_axis.size()));
      of_axis.push_back({i, shrink});
    }
  }
  if (!ellipsis_seen) skip_to(input.rank());

  StridedSlice out;
  for (int axis = 0; axis < input.rank(); ++axis) {
    const int64_t dim = input[axis];
    const AxisIndex index = of_axis[axis];
    Axis resolved{0, 1, dim};
    if (index.at >= 0 && !known) {
      resolved.extent = index.shrink ? 1 : any;
    } else if (index.at >= 0) {
      const int64_t i = index.at, stride = strides[i];
      check(stride != 0, "strides[", i, "] must be non-zero");
      resolved.stride = stride;
      const int64_t lowest = stride > 0 ? 0 : -1, highest = stride > 0 ? dim : dim - 1;
      const auto clamped = [&](int64_t x) {
        return std::clamp(x < 0 ? dim + x : x, lowest, highest);
      };
      if (index.shrink) {
        check(stride > 0, "only stride 1 allowed on non-range indexing.");
        resolved.begin = begin[i] < 0 && dim != any ? dim + begin[i] : begin[i];
        resolved.extent = 1;
        check(dim == any || (resolved.begin >= 0 && resolved.begin < dim), "slice index ", begin[i],
              " of dimension ", axis, " out of bounds.");
      } else if (dim == any) {
        const bool all = bit(begin_mask, i) && bit(end_mask, i);
        resolved.extent = any;
        // The slice ends where the input ends, so only an empty slice is certain.
        if (!all && !bit(begin_mask, i) && !bit(end_mask, i) && begin[i] == end[i])
          resolved.extent = 0;
      } else {
        const int64_t first =
            bit(begin_mask, i) ? (stride > 0 ? lowest : highest) : clamped(begin[i]);
        const int64_t last = bit(end_mask, i) ? (stride > 0 ? highest : lowest) : clamped(end[i]);
        const int64_t length = last - first;
        resolved.begin = first;
        resolved.extent = length == 0 || (length < 0) != (stride < 0)
                              ? 0
                              : length / stride + (length % stride != 0 ? 1 : 0);
      }
    }
    out.axes.push_back(resolved);
  }
  for (int axis : order) out.result.push_back(axis < 0 ? 1 : out.axes[axis].extent);
  return out;
}

namespace {

// The length of the index vectors; `any` if not known.
int64_t index_count(ShapeContext& c, int first) {
  int64_t out = any;
  for (int i = first; i < first + 3; ++i) {
    if (const int64_t n = c.with_rank(i, 1)[0]; out == any) out = n;
  }
  return out;
}

void infer(ShapeContext& c) {
  const int64_t indices = index_count(c, 1);
  if (!c.input(0).has_rank() || indices == any) return c.set_output(0, Shape::unknown());
  c.set_output(
      0, StridedSlice::resolve(c.node(), c.input(0), indices, c.value(1), c.value(2), c.value(3))
             .result);
}

StridedSlice resolve(const KernelRequest& request, const Shape& whole, int first) {
  const auto value = [&](int i) { return request.inputs[first + i].value; };
  return StridedSlice::resolve(request.node, whole, request.inputs[first].shape[0], value(0),
                               value(1), value(2));
}

// How the slice lies in the whole.
struct Layout {
  std::vector<StridedCopy::Axis> axes;  // from the whole to the slice
  int64_t offset = 0;
};

Layout layout_of(const StridedSlice& slice, const Shape& whole) {
  Layout out;
  for (const StridedSlice::Axis& axis : slice.axes)
    if (axis.extent == 0) return {{{0, 0, 0}}};
  const std::vector<int64_t> strides = strides_of(whole);
  int64_t dense = 1;
  for (int i = whole.rank() - 1; i >= 0; --i) {
    const StridedSlice::Axis& axis = slice.axes[i];
    // With a single element, the stride may be any number.
    const int64_t step = axis.extent > 1 ? axis.stride * strides[i] : 0;
    out.axes.insert(out.axes.begin(), {axis.extent, step, dense});
    out.offset += axis.begin * strides[i];
    dense *= axis.extent;
  }
  return out;
}

template <class T>
BoundKernel prepare(TypeTag<T>, const KernelRequest& request) {
  const Shape& whole = request.inputs[0].shape;
  Layout layout = layout_of(resolve(request, whole, 1), whole);
  if (request.outputs[0].shape.elements() == whole.elements() && layout.offset == 0)
    return BoundKernel::view();
  return BoundKernel::of(
      [copy = StridedCopy(std::move(layout.axes)), offset = layout.offset](const Arguments& a) {
        copy_strided(copy, a, a.input<T>(0) + offset, a.output<T>());
      });
}

template <class T>
BoundKernel prepare_gradient(TypeTag<T>, const KernelRequest& request) {
  const Shape &whole = request.outputs[0].shape, &dy = request.inputs[4].shape;
  const StridedSlice slice = resolve(request, whole, 1);
  check(slice.result == dy, "shape of dy was ", dy, " instead of ", slice.result);
  Layout layout = layout_of(slice, whole);
  for (StridedCopy::Axis& axis : layout.axes) std::swap(axis.from, axis.to);
  return BoundKernel::of([copy = StridedCopy(std::move(layout.axes)), offset = layout.offset,
                          n = whole.elements()](const Arguments& a) {
    if (copy.elements() < n) fill_elements(a, a.output<T>(), n);
    copy_strided(copy, a, a.input<T>(4), a.output<T>() + offset);
  });
}

AttrMap masks_of(Gradient& g) {
  AttrMap masks;
  for (const char* name :
       {"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"}) {
    masks[name] = g.attr<int64_t>(name);
  }
  return masks;
}

const std::vector<std::string> mask_attrs = {"begin_mask: int = 0", "end_mask: int = 0",
                                             "ellipsis_mask: int = 0", "new_axis_mask: int = 0",
                                             "shrink_axis_mask: int = 0"};

std::vector<std::string> with_masks(std::vector<std::string> attrs) {
  attrs.insert(attrs.end(), mask_attrs.begin(), mask_attrs.end());
  return attrs;
}

const Op strided_slice_op{{
    .name = "StridedSlice",
    .doc = "output = input[begin[0]:end[0]:strides[0], …], with Python's meaning of negative "
           "numbers. Bit i of a mask "
           "changes what index i means: no begin, no end, an ellipsis, a new axis, one element and "
           "no axis.",
    .inputs = {"input: T", "begin: Index", "end: Index", "strides: Index"},
    .outputs = {"output: T"},
    .attrs = with_masks({"T: type", "Index: {int16, int32, int64}"}),
    .shape = infer,
    .gradient =
        [](Gradient& g) {
          g.dx(0) = strided_slice_grad(shape_of(g.x(0), g.x(1).dtype()), g.x(1), g.x(2), g.x(3),
                                       g.dy(), masks_of(g));
        },
    .kernels = moving_kernels_and_for_variants(
        "T", []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare(t, r); }),
    .examples = {{.inputs = {floats({2, 3}, {1, 2, 3, 4, 5, 6}), ints({1, -1}), ints({2, 0}),
                             ints({1, -1})},
                  .outputs = {floats({1, 2}, {6, 5})}},
                 {.inputs = {ints({7, 8, 9}), ints({1}), ints({2}), ints({1})},
                  .attrs = {{"shrink_axis_mask", 1}},
                  .outputs = {Tensor::scalar<int32_t>(8)}}},
    .value_inputs = {1, 2, 3},
}};

const Op strided_slice_grad_op{{
    .name = "StridedSliceGrad",
    .doc = "output = zeros of `shape`, with dy where StridedSlice took its elements from.",
    .inputs = {"shape: Index", "begin: Index", "end: Index", "strides: Index", "dy: T"},
    .outputs = {"output: T"},
    .attrs = with_masks({"T: type", "Index: {int32, int64}"}),
    .shape =
        [](ShapeContext& c) {
          index_count(c, 1);
          c.set_output(0, c.shape_from_value(0));
        },
    .gradient =
        [](Gradient& g) { g.dx(4) = strided_slice(g.dy(), g.x(1), g.x(2), g.x(3), masks_of(g)); },
    .kernels = moving_kernels(
        "T", []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_gradient(t, r); }),
    .examples = {{.inputs = {ints({4}), ints({1}), ints({4}), ints({2}), floats({5, 6})},
                  .outputs = {floats({0, 5, 0, 6})}}},
    .value_inputs = {0, 1, 2, 3},
}};

// ---- Assignments

// The strides of a value that numpy's broadcasting brings to the shape of the slice, for every axis
// of that. Axes of 1 in front are left out.
std::vector<int64_t> broadcast_strides(const Shape& value, const Shape& slice) {
  const int missing = slice.rank() - value.rank();
  const std::vector<int64_t> strides = strides_of(value);
  std::vector<int64_t> out(slice.rank(), 0);
  for (int i = 0; i < value.rank(); ++i) {
    if (value[i] == 1) continue;
    check(i + missing >= 0 && value[i] == slice[i + missing], "Cannot broadcast input shape ",
          value, " into final shape ", slice);
    out[i + missing] = strides[i];
  }
  return out;
}

template <class T>
BoundKernel prepare_assign(TypeTag<T>, const KernelRequest& request) {
  check_variable_dtype(request, "T");
  const Shape &whole = request.inputs[0].shape, &value = request.inputs[4].shape;
  const StridedSlice slice = resolve(request, whole, 1);
  if (slice.result.elements() == 0) return {};
  const std::vector<int64_t> of_result = broadcast_strides(value, slice.result);
  Layout layout = layout_of(slice, whole);
  // Each axis of the slice is an axis of the result, except those of extent 1, which may be added
  // or dropped.
  int axis = 0;
  for (StridedCopy::Axis& to : layout.axes) {
    if (to.extent == 1) {
      to = {1, 0, 0};
      continue;
    }
    while (slice.result[axis] == 1) ++axis;
    to = {to.extent, of_result[axis++], to.from};
  }
  // If the value is the variable itself, a copy of it is read.
  const int64_t n = value.elements();
  BoundKernel kernel =
      BoundKernel::of([copy = StridedCopy(std::move(layout.axes)), offset = layout.offset,
                       whole_value = StridedCopy({{n, 1, 1}}), n](const Arguments& a) {
        const T* from = a.input<T>(4);
        T* const to = a.ref<T>(0) + offset;
        if (from != a.ref<T>(0)) return copy_strided(copy, a, from, to);
        if constexpr (moves_on_host) {
          const std::vector<T> own(from, from + n);
          copy_strided(copy, a, own.data(), to);
        } else {
          T* const own = static_cast<T*>(a.workspace);
          copy_strided(whole_value, a, from, own);
          copy_strided(copy, a, static_cast<const T*>(own), to);
        }
      });
  if (!moves_on_host && value == whole) kernel.workspace_bytes = static_cast<size_t>(n) * sizeof(T);
  return kernel;
}

const OpDef assign_def{
    .name = "StridedSliceAssign",
    .doc = "ref[begin[0]:end[0]:strides[0], …] = value, broadcast to the shape of the slice.",
    .inputs = {"ref: Ref(T)", "begin: Index", "end: Index", "strides: Index", "value: T"},
    .outputs = {"output_ref: Ref(T)"},
    .attrs = with_masks({"T: type", "Index: {int32, int64}"}),
    .shape =
        [](ShapeContext& c) {
          index_count(c, 1);
          if (c.num_outputs() > 0) c.set_output(0, c.input(0));
        },
    .kernels = moving_kernels(
        "T", []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_assign(t, r); }),
    .examples = {{.inputs = {floats({2, 3}, {1, 2, 3, 4, 5, 6}), ints({1, -1}), ints({2, 0}),
                             ints({1, -1}), floats({1, 2}, {7, 8})},
                  .outputs = {floats({2, 3}, {1, 2, 3, 4, 8, 7})}},
                 {.inputs = {floats({2, 2}, {1, 2, 3, 4}), ints({0, 1}), ints({2, 2}), ints({1, 1}),
                             Tensor::scalar(9.0f)},
                  .attrs = {{"shrink_axis_mask", 2}},
                  .outputs = {floats({2, 2}, {1, 9, 3, 9})}}},
    .value_inputs = {1, 2, 3},
    .is_not_differentiable = true,
};
const Op assign_op{assign_def};
const Op resource_assign_op{resource_form(assign_def)};

}  // namespace
}  // namespace leat
