// Ops on TensorArrays (tensor_array.h). They are ordered by `flow`, a float that each op takes and
// passes on, and that has no other meaning.
#include "kernels/control/tensor_array.h"
#include "kernels/extents.h"

#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/moves/copy_elements.h"

namespace leat {
namespace {

TensorArray& array(const ExecuteContext& c) {
  auto* out = dynamic_cast<TensorArray*>(c.resource(0).get());
  check(out != nullptr, "'", c.resource(0)->name(), "' is not a TensorArray");
  return *out;
}

TensorArray& array_of(const ExecuteContext& c, DType dtype) {
  TensorArray& out = array(c);
  check(out.dtype() == dtype, "TensorArray dtype is ", out.dtype(), " but Op requested dtype ",
        dtype, ".");
  return out;
}

void set_flow(ExecuteContext& c, int output) { c.set_output(output, Tensor::scalar(0.0f)); }

std::span<const int32_t> vector_of_indices(const Tensor& tensor) {
  check(tensor.shape().rank() == 1,
        "Expected indices to be a vector, but received shape: ", tensor.shape());
  return tensor.span<int32_t>();
}

// ---- Kernels ----

void make_array(ExecuteContext& c) {
  const NodeView& node = c.node();
  const std::string& name = node.attr<std::string>("tensor_array_name");
  check(c.input(0).shape().rank() == 0,
        "TensorArray size must be scalar, but had shape: ", c.input(0).shape());
  c.set_output(0, resource_handle(std::make_shared<TensorArray>(
                      name.empty() ? std::string(node.name) : name,
                      TensorArray::Options{
                          .dtype = node.attr<DType>("dtype"),
                          .size = c.input(0).item<int32_t>(),
                          .element_shape = node.attr<Shape>("element_shape"),
                          .is_dynamic = node.attr<bool>("dynamic_size"),
                          .clear_after_read = node.attr<bool>("clear_after_read"),
                          .has_one_shape = node.attr<bool>("identical_element_shapes"),
                          .is_gradient = false,
                      })));
  set_flow(c, 1);
}

void make_gradient(ExecuteContext& c) {
  Shape prefix{};
  if (c.num_inputs() > 2) {
    for (const int32_t extent : vector_of_indices(c.input(2))) prefix.push_back(extent);
  }
  c.set_output(0, resource_handle(array(c).gradient(c.node().attr<std::string>("source"), prefix)));
  c.set_output(1, c.input(1));
}

void write(ExecuteContext& c) {
  array_of(c, c.node().attr<DType>("T")).write(c.input(1).item<int32_t>(), c.input(2));
  set_flow(c, 0);
}

void read(ExecuteContext& c) {
  c.set_output(0, array_of(c, c.node().attr<DType>("dtype")).read(c.input(1).item<int32_t>()));
}

void gather(ExecuteContext& c) {
  const auto dtype = c.node().attr<DType>("dtype");
  TensorArray& from = array_of(c, dtype);
  const std::span<const int32_t> indices = vector_of_indices(c.input(1));
  Shape shape = from.merge_element_shape(c.node().attr<Shape>("element_shape"));
  if (indices.empty()) {
    if (!shape.is_complete()) {
      fail(Code::unimplemented, "TensorArray has size zero, but element shape ", shape,
           " is not fully defined. Currently only static shapes are supported when packing "
           "zero-size TensorArrays.");
    }
  }
  const std::vector<Tensor> elements = from.read_all(indices);
  if (!elements.empty()) shape = elements[0].shape();
  Tensor out(dtype, rows_of(static_cast<int64_t>(elements.size()), shape, 0));
  for (size_t i = 0; i < elements.size(); ++i) {
    check(elements[i].shape() == shape, "TensorArray ", from.name(),
          " has inconsistent shapes.  Index 0 has shape: ", shape, " but index ", i,
          " has shape: ", elements[i].shape());
    copy_elements(elements[i], 0, out, static_cast<int64_t>(i) * shape.elements(),
                  shape.elements());
  }
  c.set_output(0, std::move(out));
}

void scatter(ExecuteContext& c) {
  TensorArray& to = array_of(c, c.node().attr<DType>("T"));
  const std::span<const int32_t> indices = vector_of_indices(c.input(1));
  const Tensor& values = c.input(2);
  check(values.shape().rank() > 0, "Input value for unpack must be at least a vector");
  check(values.shape()[0] == static_cast<int64_t>(indices.size()),
        "Expected len(indices) == values.shape[0], but saw: ", indices.size(), " vs. ",
        values.shape()[0]);
  std::vector<Tensor> elements;
  elements.reserve(indices.size());
  for (size_t i = 0; i < indices.size(); ++i)
    elements.push_back(slice_of(values, static_cast<int64_t>(i)));
  to.write_all(indices, std::move(elements));
  set_flow(c, 0);
}

void concatenate(ExecuteContext& c) {
  const auto dtype = c.node().attr<DType>("dtype");
  TensorArray& from = array_of(c, dtype);
  check_memory_for(from.size(), 2 * sizeof(Tensor));
  std::vector<int32_t> indices(from.size());
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<int32_t>(i);
  const std::vector<Tensor> elements = from.read_all(indices);
  const Shape wanted = c.node().attr<Shape>("element_shape_except0");
  Tensor lengths(i64, {static_cast<int64_t>(elements.size())});
  Shape rest = wanted;
  int64_t rows = 0;
  for (size_t i = 0; i < elements.size(); ++i) {
    const Shape& shape = elements[i].shape();
    check(shape.rank() > 0, "TensorArray ", from.name(), ": Concat saw a scalar shape at index ", i,
          " but requires at least vectors.  Did you mean to call pack?");
    const Shape behind = behind_first(shape);
    check(i == 0 ? wanted.is_compatible(behind) : rest == behind, "TensorArray ", from.name(),
          " has inconsistent shapes.  Index 0 has (excepting dimension 0) shape: ", rest,
          " but index ", i, " has (excepting dimension 0) shape: ", behind);
    rest = behind;
    rows = sum_of_extents(rows, lengths.data<int64_t>()[i] = shape[0]);
  }
  if (elements.empty()) {
    if (!rest.is_complete()) {
      fail(Code::unimplemented, "TensorArray has size zero, but element_shape_except0 ", rest,
           " is not fully defined. Currently only static shapes are supported when concatenating "
           "zero-size TensorArrays.");
    }
  }
  Tensor out(dtype, rows_of(rows, rest, 0));
  int64_t at = 0;
  for (const Tensor& element : elements) {
    copy_elements(element, 0, out, at, element.elements());
    at += element.elements();
  }
  c.set_output(0, std::move(out));
  c.set_output(1, std::move(lengths));
}

void split(ExecuteContext& c) {
  TensorArray& to = array_of(c, c.node().attr<DType>("T"));
  const Tensor &value = c.input(1), &lengths = c.input(2);
  check(lengths.shape().rank() == 1,
        "Expected lengths to be a vector, received shape: ", lengths.shape());
  check(value.shape().rank() > 0,
        "Expected value to be at least a vector, but received shape: ", value.shape());
  int64_t total = 0;
  for (const int64_t length : lengths.span<int64_t>()) {
    check(length >= 0 && length <= value.shape()[0], "Expected lengths between 0 and ",
          value.shape()[0], ", got ", length);
    total = sum_of_extents(total, length);
  }
  check(total == value.shape()[0],
        "Expected sum of lengths to be equal to values.shape[0], but sum of lengths is ", total,
        " and value's shape is: ", value.shape());
  to.check_room(lengths.elements());
  const int64_t row = behind_first(value.shape()).elements();
  std::vector<int32_t> indices;
  std::vector<Tensor> pieces;
  int64_t at = 0;
  for (const int64_t length : lengths.span<int64_t>()) {
    Shape shape = value.shape();
    shape.set(0, length);
    Tensor& piece = pieces.emplace_back(value.dtype(), shape);
    copy_elements(value, at * row, piece, 0, length * row);
    at += length;
    indices.push_back(static_cast<int32_t>(indices.size()));
  }
  to.write_all(indices, std::move(pieces));
  set_flow(c, 0);
}

// ---- Ops ----

using Strings = std::vector<std::string>;

OpDef on_array(const char* name, const char* doc, Strings inputs, Strings outputs, Strings attrs,
               Execute execute, ShapeFunction shape = nullptr) {
  return {.name = name,
          .doc = doc,
          .inputs = std::move(inputs),
          .outputs = std::move(outputs),
          .attrs = std::move(attrs),
          .shape = std::move(shape),
          .kernels = {{.execute = std::move(execute)}},
          .is_stateful = true,
          .is_not_differentiable = true};
}

const Op array_op{
    on_array("TensorArrayV3",
             "handle of a new array of `size` tensors, and the flow that its first user takes.",
             {"size: int32"}, {"handle: resource", "flow: float"},
             {"dtype: type", "element_shape: shape = <unknown>", "dynamic_size: bool = false",
              "clear_after_read: bool = true", "identical_element_shapes: bool = false",
              "tensor_array_name: string = ''"},
             make_array, shapes::scalar())};

const Op gradient_op{
    on_array("TensorArrayGradV3",
             "grad_handle of the array of the gradients that `source` computes, as long as the "
             "array of `handle`. What is written twice to it is added.",
             {"handle: resource", "flow_in: float"}, {"grad_handle: resource", "flow_out: float"},
             {"source: string"}, make_gradient, shapes::scalar())};

const Op gradient_with_shape_op{
    on_array("TensorArrayGradWithShape",
             "As TensorArrayGradV3, of elements with `shape_to_prepend` before their own shape.",
             {"handle: resource", "flow_in: float", "shape_to_prepend: int32"},
             {"grad_handle: resource", "flow_out: float"}, {"source: string"}, make_gradient,
             shapes::scalar())};

const Op write_op{on_array("TensorArrayWriteV3", "array[index] = value.",
                           {"handle: resource", "index: int32", "value: T", "flow_in: float"},
                           {"flow_out: float"}, {"T: type"}, write, shapes::scalar())};

const Op read_op{on_array("TensorArrayReadV3", "value = array[index].",
                          {"handle: resource", "index: int32", "flow_in: float"}, {"value: dtype"},
                          {"dtype: type"}, read)};

const Op gather_op{on_array("TensorArrayGatherV3", "value[i] = array[indices[i]].",
                            {"handle: resource", "indices: int32", "flow_in: float"},
                            {"value: dtype"}, {"dtype: type", "element_shape: shape = <unknown>"},
                            gather)};

const Op scatter_op{on_array("TensorArrayScatterV3", "array[indices[i]] = value[i].",
                             {"handle: resource", "indices: int32", "value: T", "flow_in: float"},
                             {"flow_out: float"}, {"T: type"}, scatter, shapes::scalar())};

const Op concat_op{
    on_array("TensorArrayConcatV3",
             "value = all elements, one after the other along their first axis; lengths = their "
             "extents along it.",
             {"handle: resource", "flow_in: float"}, {"value: dtype", "lengths: int64"},
             {"dtype: type", "element_shape_except0: shape = <unknown>"}, concatenate)};

const Op split_op{on_array("TensorArraySplitV3", "array[i] = the next lengths[i] rows of value.",
                           {"handle: resource", "value: T", "lengths: int64", "flow_in: float"},
                           {"flow_out: float"}, {"T: type"}, split, shapes::scalar())};

const Op size_op{on_array(
    "TensorArraySizeV3", "size = how many elements the array has room for.",
    {"handle: resource", "flow_in: float"}, {"size: int32"}, {},
    [](ExecuteContext& c) { c.set_output(0, Tensor::scalar(array(c).size())); }, shapes::scalar())};

const Op close_op{on_array(
    "TensorArrayCloseV3", "Drops what the array holds; it cannot be used any more.",
    {"handle: resource"}, {}, {}, [](ExecuteContext& c) { array(c).close(); }, shapes::none())};

}  // namespace
}  // namespace leat
