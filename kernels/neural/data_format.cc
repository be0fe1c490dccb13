// DataFormatDimMap, DataFormatVecPermute: convert between layouts of images (NHWC, NCHW, …).
#include <algorithm>

#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"

namespace leat {
namespace {

struct Formats {
  std::string from, to;

  explicit Formats(const NodeView& node)
      : from(node.attr<std::string>("src_format")), to(node.attr<std::string>("dst_format")) {
    check(from.size() == 4 || from.size() == 5,
          "Source format must be of length 4 or 5, received src_format = ", from);
    check(to.size() == 4 || to.size() == 5,
          "Destination format must be of length 4 or 5, received dst_format = ", to);
    std::string a = from, b = to;
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    check(a == b && std::adjacent_find(a.begin(), a.end()) == a.end(),
          "Destination and source format must determine a permutation, got ", from, " and ", to);
  }
  // The position of axis i of the source in the destination.
  std::vector<int64_t> places() const {
    std::vector<int64_t> out;
    for (const char axis : from) out.push_back(static_cast<int64_t>(to.find(axis)));
    return out;
  }
  Formats only(std::string_view axes) const {
    Formats out = *this;
    for (std::string* format : {&out.from, &out.to}) {
      std::erase_if(*format, [&](char c) { return axes.find(c) == std::string_view::npos; });
    }
    return out;
  }
};

// ---- DataFormatDimMap

template <class T>
BoundKernel prepare_map(TypeTag<T>, const KernelRequest& r) {
  BoundKernel kernel = BoundKernel::of([places = Formats(r.node).places(),
                                        n = r.inputs[0].shape.elements()](const Arguments& a) {
    using Unsigned = std::make_unsigned_t<T>;
    const auto axes = static_cast<T>(places.size());
    for (int64_t i = 0; i < n; ++i) {
      // As in TensorFlow, an axis below -axes means the last one.
      const T axis =
          static_cast<T>(static_cast<Unsigned>(a.input<T>(0)[i]) + static_cast<Unsigned>(axes)) %
          axes;
      a.output<T>()[i] = static_cast<T>(axis < 0 ? places.back() : places[axis]);
    }
  });
  return std::move(kernel).sharing(0, 0);
}

const std::vector<std::string> attrs = {"T: {int32, int64} = int32", "src_format: string = 'NHWC'",
                                        "dst_format: string = 'NCHW'"};

const Op map_op{{
    .name = "DataFormatDimMap",
    .doc = "y = the axis in dst_format that is axis x of src_format; negative ones count from the "
           "end.",
    .inputs = {"x: T"},
    .outputs = {"y: T"},
    .attrs = attrs,
    .shape = shapes::same_as(0),
    .kernels = {cpu_kernel(
        "T", Types<int32_t, int64_t>{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_map(t, r); })},
    .examples = {{.inputs = {ints({0, 1, 2, 3, -1})}, .outputs = {ints({0, 2, 3, 1, 1})}}},
    .is_not_differentiable = true,
}};

// ---- DataFormatVecPermute

template <class T>
BoundKernel prepare_permute(TypeTag<T>, const KernelRequest& r) {
  const Shape& shape = r.inputs[0].shape;
  Formats formats(r.node);
  if (shape[0] == static_cast<int64_t>(formats.from.size()) - 2) {
    formats = formats.only(shape[0] == 2 ? "HW" : "DHW");
    check(static_cast<int64_t>(formats.from.size()) == shape[0],
          "Format specifier must contain H and W for 2D case, got ", formats.from);
  }
  check(shape[0] == static_cast<int64_t>(formats.from.size()),
        "input must have one entry per axis, or per spatial axis, of ", formats.from,
        ", got shape ", shape);
  return BoundKernel::of(
      [places = formats.places(), row = shape.elements() / shape[0]](const Arguments& a) {
        for (size_t i = 0; i < places.size(); ++i)
          std::copy_n(a.input<T>(0) + i * row, row, a.output<T>() + places[i] * row);
      });
}

const Op permute_op{{
    .name = "DataFormatVecPermute",
    .doc =
        "y = x, which has an entry per axis (or per spatial axis) of src_format, in the order of "
        "dst_format; of a matrix, its rows.",
    .inputs = {"x: T"},
    .outputs = {"y: T"},
    .attrs = attrs,
    .shape =
        [](ShapeContext& c) {
          const Shape& x = c.input(0);
          if (x.has_rank()) {
            check(x.rank() == 1 || x.rank() == 2,
                  "input must be a vector or 2D tensor, but got shape ", x);
            check(x.rank() == 1 || x[1] == any || x[1] == 2,
                  "Second dimension of 2D input must be of size 2, but got shape ", x);
          }
          c.set_output(0, x);
        },
    .kernels = {cpu_kernel(
        "T", Types<int32_t, int64_t>{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_permute(t, r); })},
    .examples = {{.inputs = {ints({1, 2, 3, 4})}, .outputs = {ints({1, 4, 2, 3})}}},
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
