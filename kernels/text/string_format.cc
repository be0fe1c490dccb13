// StringFormat: inserts tensors into a text, in the format of tf.print.
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/element_text.h"
#include "kernels/examples.h"

namespace leat {
namespace {

// Strings in quotes.
template <class T>
std::string text_of(const T& value) {
  std::string text = element_text(value);
  return std::is_same_v<T, std::string> ? "\"" + text + "\"" : text;
}

template <class T>
struct Shown {
  const Shape& shape;
  const T* data;
  int64_t edge;  // elements at either end of an axis; negative: all

  bool has_gap(int64_t extent) const { return edge >= 0 && extent > edge && extent - edge > edge; }

  // A tensor without elements may have any number of rows: "[][][]…".
  void check_rows() const {
    if (shape.elements() > 0) return;
    double rows = 1;
    for (int axis = 0; axis < shape.rank() && shape[axis] > 0; ++axis)
      rows *= static_cast<double>(has_gap(shape[axis]) ? 2 * edge + 1 : shape[axis]);
    if (rows > 1'000'000)
      fail(Code::resource_exhausted, "the text of a tensor of shape ", shape, " would have ", rows,
           " empty rows");
  }

  // The part along `axis` and the axes after it that begins at element `at` and has n elements.
  std::string part(int axis, int64_t at, int64_t n) const {
    if (axis == shape.rank()) return text_of(data[at]);
    const int64_t extent = shape[axis], step = extent == 0 ? 0 : n / extent;
    const bool is_row = axis + 1 == shape.rank();
    const std::string separator =
        is_row ? " "
               : std::string(static_cast<size_t>(shape.rank() - axis - 1), '\n') +
                     std::string(static_cast<size_t>(axis) + 1, ' ');
    const bool is_long = has_gap(extent);
    std::string text = "[";
    for (int64_t i = 0; i < extent; ++i) {
      if (i > 0) text += separator;
      if (is_long && i == edge) {
        text += "...";
        i = extent - edge - 1;
        continue;
      }
      text += part(axis + 1, at + i * step, step);
    }
    return text + "]";
  }
};

std::string shown(const TensorSpec& spec, const void* data, int64_t edge) {
  std::string text;
  visit_dtype(spec.dtype, [&]<class T>(TypeTag<T>) {
    const Shown<T> tensor{spec.shape, static_cast<const T*>(data), edge};
    tensor.check_rows();
    text = tensor.part(0, 0, spec.shape.elements());
  });
  return text;
}

// The parts of `text` between occurrences of `placeholder`.
std::vector<std::string> split(const std::string& text, const std::string& placeholder) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t at; (at = text.find(placeholder, begin)) != std::string::npos;
       begin = at + placeholder.size()) {
    parts.push_back(text.substr(begin, at - begin));
  }
  parts.push_back(text.substr(begin));
  return parts;
}

BoundKernel prepare(const KernelRequest& r) {
  const std::string &text = r.attr<std::string>("template"),
                    &placeholder = r.attr<std::string>("placeholder");
  check(!placeholder.empty(), "placeholder cannot be an empty string.");
  std::vector<std::string> parts = split(text, placeholder);
  check(parts.size() == r.inputs.size() + 1,
        "num placeholders in template and num inputs must "
        "match: ",
        parts.size() - 1, " vs. ", r.inputs.size());
  return BoundKernel::of(
      [parts = std::move(parts), edge = r.attr<int64_t>("summarize"),
       specs = std::vector<TensorSpec>(r.inputs.begin(), r.inputs.end())](const Arguments& a) {
        std::string out = parts[0];
        for (size_t i = 0; i < specs.size(); ++i)
          out += shown(specs[i], a.inputs[i], edge) + parts[i + 1];
        *a.output<std::string>() = std::move(out);
      });
}

const Op format_op{{
    .name = "StringFormat",
    .doc = "output = template with its placeholders replaced by the inputs in turn: `summarize` "
           "elements at either end of every axis, all if that is negative.",
    .inputs = {"inputs: T"},
    .outputs = {"output: string"},
    .attrs = {"T: list(type) >= 0", "template: string = '%s'", "placeholder: string = '%s'",
              "summarize: int = 3"},
    .shape = shapes::scalar(),
    .kernels = {cpu_kernel(prepare)},
    .examples =
        {{.inputs = {floats({1.5, 2, 3, 4}), Tensor::scalar(7)},
          .attrs = {{"template", "x = {}, n = {}."}, {"placeholder", "{}"}, {"summarize", 1}},
          .outputs = {Tensor::scalar("x = [1.5 ... 4], n = 7.")}}},
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
