// Ops on TensorLists (tensor_list.h). A list is a value: an op that changes it returns a new one,
// which takes over the old one's elements if no other node holds the old one.
#include "kernels/control/tensor_list.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/extents.h"
#include "kernels/types.h"

namespace leat {
namespace {

const TensorListVariant& list_of(const ExecuteContext& c, int input) {
  return variant_as<TensorListVariant>(c.input(input));
}
const TensorListVariant& typed_list_of(const ExecuteContext& c, int input) {
  const TensorListVariant& out = list_of(c, input);
  out.check_dtype(c.node().attr<DType>("element_dtype"));
  return out;
}

std::unique_ptr<TensorListVariant> new_list(const ExecuteContext& c, const Shape& element_shape) {
  auto out = std::make_unique<TensorListVariant>();
  out->dtype = c.node().attr<DType>("element_dtype");
  out->element_shape = element_shape;
  return out;
}

int32_t scalar_of(const ExecuteContext& c, int input, std::string_view name) {
  check(c.input(input).shape().rank() == 0, name, " must be a scalar, got shape ",
        c.input(input).shape());
  return c.input(input).item<int32_t>();
}

std::span<const int32_t> indices_of(const ExecuteContext& c, int input) {
  check(c.input(input).shape().rank() == 1, "indices must be a vector, got shape ",
        c.input(input).shape());
  return c.input(input).span<int32_t>();
}

// Changes the list of an input and returns it as output 0.
template <class Change>
void change(ExecuteContext& c, int input, const Change& f) {
  Tensor tensor = c.take_input(input);
  f(own_variant_as<TensorListVariant>(tensor));
  c.set_output(0, std::move(tensor));
}

// ---- Kernels ----

void make_empty(ExecuteContext& c) {
  auto list = new_list(c, element_shape_from(c.input(0)));
  list->most = scalar_of(c, 1, "max_num_elements");
  c.set_output(0, variant_tensor(std::move(list)));
}

void reserve(ExecuteContext& c) {
  auto list = new_list(c, element_shape_from(c.input(0)));
  const int32_t count = scalar_of(c, 1, "num_elements");
  check(count >= 0, "The num_elements to reserve must be a non negative number, but got ", count);
  check_memory_for(count, sizeof(Tensor));
  list->elements.resize(count);
  c.set_output(0, variant_tensor(std::move(list)));
}

void push_back(ExecuteContext& c) {
  const TensorListVariant& list = list_of(c, 0);
  const Tensor element = c.input(1);
  const auto dtype = c.node().attr<DType>("element_dtype");
  check(list.dtype == dtype, "Invalid data types; list elements ", list.dtype,
        " but tried to append ", dtype);
  check(list.element_shape.is_compatible(element.shape()),
        "Tried to append a tensor with incompatible shape to a list. Op element shape: ",
        element.shape(), " list shape: ", list.element_shape);
  check(list.most < 0 || static_cast<int64_t>(list.elements.size()) < list.most,
        "Tried to push item into a full list list size: ", list.elements.size(),
        " max_num_elements: ", list.most);
  change(c, 0, [&](TensorListVariant& own) {
    own.note_depth_of(element);
    own.elements.push_back(element);
  });
}

void pop_back(ExecuteContext& c) {
  const TensorListVariant& list = typed_list_of(c, 0);
  check(!list.elements.empty(), "Trying to pop from an empty list.");
  c.set_output(1, list.element(list.elements.size() - 1, element_shape_from(c.input(1)),
                               ElementMemory(c, list.dtype)));
  change(c, 0, [](TensorListVariant& own) { own.elements.pop_back(); });
}

void get_item(ExecuteContext& c) {
  const TensorListVariant& list = typed_list_of(c, 0);
  const int32_t index = scalar_of(c, 1, "index");
  check(index >= 0 && index < static_cast<int64_t>(list.elements.size()),
        "Trying to access element ", index, " in a list with ", list.elements.size(), " elements.");
  c.set_output(0,
               list.element(index, element_shape_from(c.input(2)), ElementMemory(c, list.dtype)));
}

void set_item(ExecuteContext& c) {
  const TensorListVariant& list = typed_list_of(c, 0);
  const int32_t index = scalar_of(c, 1, "index");
  const Tensor item = c.input(2);
  const auto size = static_cast<int64_t>(list.elements.size());
  const bool grows = c.node().attr<bool>("resize_if_index_out_of_bounds") && index >= size;
  check(index >= 0 && (index < size || grows), "Trying to modify element ", index,
        " in a list with ", size, " elements.");
  check(list.element_shape.is_compatible(item.shape()),
        "Tried to set a tensor with incompatible shape at a list index. Item element shape: ",
        item.shape(), " list shape: ", list.element_shape);
  if (grows) check_memory_for(int64_t{index} + 1, sizeof(Tensor));
  change(c, 0, [&](TensorListVariant& own) {
    own.note_depth_of(item);
    if (grows) own.elements.resize(static_cast<size_t>(index) + 1);
    own.elements[index] = item;
  });
}

void resize(ExecuteContext& c) {
  const int32_t size = scalar_of(c, 1, "size");
  list_of(c, 0);
  check(size >= 0, "TensorListSlice expects size to be non-negative. Got: ", size);
  check_memory_for(size, sizeof(Tensor));
  change(c, 0, [&](TensorListVariant& own) { own.elements.resize(size); });
}

// Elements of the list, all of one shape, stacked along a new first axis.
Tensor stacked(const TensorListVariant& list, std::span<const int32_t> numbers, const Shape& shape,
               const ElementMemory& memory) {
  const auto is_set = [&](int32_t i) { return list.elements[i].is_valid(); };
  const Shape all = rows_of(std::ssize(numbers), shape, 0);
  Tensor out = std::all_of(numbers.begin(), numbers.end(), is_set) ? memory.make(list.dtype, all)
                                                                   : memory.zeros(list.dtype, all);
  int64_t at = 0;
  for (const int32_t i : numbers) {
    if (is_set(i)) {
      const Tensor& element = list.elements[i];
      check(element.shape() == shape, "element ", i, " of the list has shape ", element.shape(),
            ", but the others have ", shape);
      memory.copy(element, 0, out, at, shape.elements());
    }
    at += shape.elements();
  }
  return out;
}

void stack(ExecuteContext& c) {
  const TensorListVariant& list = typed_list_of(c, 0);
  const auto wanted = c.node().attr<int64_t>("num_elements");
  const auto count = static_cast<int64_t>(list.elements.size());
  check(wanted == -1 || wanted == count, "Operation expected a list with ", wanted,
        " elements but got a list with ", count, " elements.");
  const Shape shape = list.merged_shape(element_shape_from(c.input(1)));
  check(shape.is_complete() || count > 0,
        "Tried to stack elements of an empty list with non-fully-defined element_shape: ", shape);
  check(shape.is_complete(),
        "Tried to stack list which only contains uninitialized tensors and has a "
        "non-fully-defined element_shape: ",
        shape);
  std::vector<int32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  c.set_output(0, stacked(list, numbers, shape, ElementMemory(c, list.dtype)));
}

void gather(ExecuteContext& c) {
  const TensorListVariant& list = typed_list_of(c, 0);
  const std::span<const int32_t> indices = indices_of(c, 1);
  for (const int32_t i : indices) {
    check(i >= 0 && i < std::ssize(list.elements), "Trying to gather element ", i,
          " in a list with ", list.elements.size(), " elements.");
  }
  const Shape shape = list.merged_shape(element_shape_from(c.input(2)), indices);
  check(shape.is_complete(),
        "Tried to gather elements of a list of uninitialized tensors, or none, with "
        "non-fully-defined element_shape: ",
        shape);
  c.set_output(0, stacked(list, indices, shape, ElementMemory(c, list.dtype)));
}

void from_tensor(ExecuteContext& c) {
  const Tensor& tensor = c.input(0);
  check(tensor.shape().rank() > 0,
        "Tensor must be at least a vector, but saw shape: ", tensor.shape());
  const Shape wanted = element_shape_from(c.input(1)), shape = behind_first(tensor.shape());
  check(wanted.is_compatible(shape), "Specified a list with shape ", wanted,
        " from a tensor with shape ", shape);
  check_memory_for(tensor.shape()[0], sizeof(Tensor));
  auto list = new_list(c, wanted);
  for (int64_t i = 0; i < tensor.shape()[0]; ++i)
    list->elements.push_back(ElementMemory(tensor).slice(tensor, i));
  c.set_output(0, variant_tensor(std::move(list)));
}

// Row i of `tensor` becomes element indices[i].
void scatter_into(TensorListVariant& list, const Tensor& tensor, std::span<const int32_t> indices) {
  check(tensor.shape().rank() > 0,
        "Tensor must be at least a vector, but saw shape: ", tensor.shape());
  check(tensor.shape()[0] == static_cast<int64_t>(indices.size()),
        "Invalid number of rows in input tensor. Expected: ", indices.size(),
        " Actual: ", tensor.shape()[0]);
  const Shape shape = behind_first(tensor.shape());
  check(list.element_shape.is_compatible(shape), "Specified a list with shape ", list.element_shape,
        " from a tensor with shape ", shape);
  int32_t largest = -1;
  for (const int32_t i : indices) {
    check(i >= 0, "Indices in TensorListScatter must all be non-negative, got ", i);
    largest = std::max(largest, i);
  }
  if (largest >= static_cast<int64_t>(list.elements.size())) {
    check_memory_for(int64_t{largest} + 1, sizeof(Tensor));
    list.elements.resize(static_cast<size_t>(largest) + 1);
  }
  for (size_t i = 0; i < indices.size(); ++i)
    list.elements[indices[i]] = ElementMemory(tensor).slice(tensor, static_cast<int64_t>(i));
}

void scatter(ExecuteContext& c) {
  auto list = new_list(c, element_shape_from(c.input(2)));
  const std::span<const int32_t> indices = indices_of(c, 1);
  if (c.num_inputs() > 3) {
    const int32_t count = scalar_of(c, 3, "num_elements");
    check(count >= -1, "TensorListScatter expects num_elements >= -1, found: ", count);
    for (const int32_t i : indices) {
      check(count == -1 || i < count, "TensorListScatter: Trying to scatter element at index ", i,
            " in a list of ", count, " elements");
    }
    check_memory_for(std::max(count, 0), sizeof(Tensor));
    list->elements.resize(std::max(count, 0));
  }
  scatter_into(*list, c.input(0), indices);
  c.set_output(0, variant_tensor(std::move(list)));
}

void scatter_into_existing(ExecuteContext& c) {
  typed_list_of(c, 0);
  const std::span<const int32_t> indices = indices_of(c, 2);
  change(c, 0, [&](TensorListVariant& own) { scatter_into(own, c.input(1), indices); });
}

// The first extent of elements that were not set: that of all others, if these agree.
int64_t first_extent(const TensorListVariant& list, const Shape& wanted) {
  const Shape& whole = wanted.has_rank() ? wanted : list.element_shape;
  if (whole.has_rank() && whole[0] != any) return whole[0];
  int64_t extent = any;
  for (const Tensor& element : list.elements) {
    if (!element.is_valid()) continue;
    if (extent != any && extent != element.shape()[0]) return any;
    extent = element.shape()[0];
  }
  return extent;
}

// Elements may differ in their first extent; `leading` are those of elements that were not set.
void concatenate(ExecuteContext& c, const Shape& wanted, std::span<const int64_t> leading) {
  const TensorListVariant& list = typed_list_of(c, 0);
  check(wanted.rank() != 0 && list.element_shape.rank() != 0,
        "Concat requires elements to be at least vectors, found scalars instead.");
  Shape rest = wanted.has_rank() ? behind_first(wanted) : Shape::unknown();
  const auto merge_rest = [&](const Shape& shape) {
    check(rest.is_compatible(shape), "Tried to concat tensors with unequal shapes: ", rest, " vs ",
          shape);
    rest = rest.merged(shape);
  };
  if (list.element_shape.has_rank()) merge_rest(behind_first(list.element_shape));
  for (const Tensor& element : list.elements) {
    if (!element.is_valid()) continue;
    check(element.shape().rank() > 0,
          "Concat saw a scalar shape at an element but requires at least vectors.");
    merge_rest(behind_first(element.shape()));
  }
  check(rest.is_complete(),
        list.elements.empty() ? "All except the first dimension must be fully defined when "
                                "concating an empty tensor list. element_shape: "
                              : "Tried to concat list of uninitialized tensors with a "
                                "non-fully-defined element_shape: ",
        rest);
  Tensor lengths(i64, {static_cast<int64_t>(list.elements.size())});
  const int64_t unset = first_extent(list, wanted);
  int64_t rows = 0;
  for (size_t i = 0; i < list.elements.size(); ++i) {
    int64_t& length = lengths.data<int64_t>()[i];
    if (list.elements[i].is_valid()) {
      length = list.elements[i].shape()[0];
    } else if (i < leading.size()) {
      length = leading[i];
      check(length >= 0, "leading_dims[", i, "] is ", length, ", which is negative");
    } else {
      length = unset;
      check(length != any, "List contains uninitialized tensor at index ", i,
            " but leading_dims has only ", leading.size(), " elements.");
    }
    rows = sum_of_extents(rows, length);
  }
  const ElementMemory memory(c, list.dtype);
  Tensor out = memory.zeros(list.dtype, rows_of(rows, rest, 0));
  const int64_t row = rest.elements();
  int64_t at = 0;
  for (size_t i = 0; i < list.elements.size(); ++i) {
    const int64_t length = lengths.data<int64_t>()[i];
    if (list.elements[i].is_valid()) memory.copy(list.elements[i], 0, out, at, length * row);
    at += length * row;
  }
  c.set_output(0, std::move(out));
  c.set_output(1, std::move(lengths));
}

void concat_v2(ExecuteContext& c) {
  check(c.input(2).shape().rank() == 1, "leading_dims must be a vector, got shape ",
        c.input(2).shape());
  concatenate(c, element_shape_from(c.input(1)), c.input(2).span<int64_t>());
}

void split(ExecuteContext& c) {
  const Tensor &tensor = c.input(0), &lengths = c.input(2);
  const Shape wanted = element_shape_from(c.input(1));
  check(lengths.shape().rank() == 1,
        "Expected lengths to be a vector, received shape: ", lengths.shape());
  check(tensor.shape().rank() > 0,
        "Expected tensor to be at least a vector, but received shape: ", tensor.shape());
  check_memory_for(lengths.elements(), sizeof(Tensor));
  auto list = new_list(c, wanted);
  const int64_t row = behind_first(tensor.shape()).elements();
  const ElementMemory memory(tensor);
  int64_t at = 0;
  for (const int64_t length : lengths.span<int64_t>()) {
    check(length >= 0, "Invalid value in lengths: ", length);
    check(length <= tensor.shape()[0] - at, "Attempting to slice [", at, ", ",
          sum_of_extents(at, length), "] from tensor with length ", tensor.shape()[0]);
    Shape shape = tensor.shape();
    shape.set(0, length);
    check(wanted.is_compatible(shape), "Specified a list with shape ", wanted,
          " from a tensor with shape ", shape);
    Tensor& piece = list->elements.emplace_back(memory.make(tensor.dtype(), shape));
    memory.copy(tensor, at * row, piece, 0, length * row);
    at += length;
  }
  check(at == tensor.shape()[0], "Unused values in tensor. Length of tensor: ", tensor.shape()[0],
        " Values used: ", at);
  c.set_output(0, variant_tensor(std::move(list)));
}

void concat_lists(ExecuteContext& c) {
  const TensorListVariant &a = typed_list_of(c, 0), &b = typed_list_of(c, 1);
  check(a.element_shape == b.element_shape,
        "input_list_b elements do not have the same shape: ", a.element_shape, " vs ",
        b.element_shape);
  const Tensor second = c.input(1);
  change(c, 0, [&](TensorListVariant& own) {
    const TensorListVariant& more = variant_as<TensorListVariant>(second);
    for (const Tensor& element : more.elements) own.note_depth_of(element);
    own.elements.insert(own.elements.end(), more.elements.begin(), more.elements.end());
  });
}

void element_shape(ExecuteContext& c) {
  const Shape& shape = list_of(c, 0).element_shape;
  const auto dtype = c.node().attr<DType>("shape_type");
  std::vector<int64_t> extents(shape.dims().begin(), shape.dims().end());
  const Shape out_shape = shape.has_rank() ? Shape{shape.rank()} : Shape{};
  if (!shape.has_rank()) extents = {-1};
  Tensor out(dtype, out_shape);
  for (size_t i = 0; i < extents.size(); ++i) {
    const int64_t extent = extents[i] == any ? -1 : extents[i];
    if (dtype == i32) {
      out.data<int32_t>()[i] = static_cast<int32_t>(extent);
    } else {
      out.data<int64_t>()[i] = extent;
    }
  }
  c.set_output(0, std::move(out));
}

// ---- Ops ----

using Strings = std::vector<std::string>;

const char* const of_type = "element_dtype: type";
const char* const shape_type = "shape_type: {int32, int64}";

// On a GPU, elements are in its memory, and all else is on the host; what ElementMemory keeps on
// the host is there, too.
std::vector<Kernel> list_kernels(const Strings& inputs, const Strings& outputs,
                                 const Strings& attrs, const Execute& execute) {
  const auto is_element = [](const std::string& arg) { return arg.ends_with(": element_dtype"); };
  const auto others = [&](const Strings& args) {
    std::vector<int> out;
    for (size_t i = 0; i < args.size(); ++i) {
      if (!is_element(args[i])) out.push_back(static_cast<int>(i));
    }
    return out;
  };
  const auto all = [](const Strings& args) {
    std::vector<int> out(args.size());
    std::iota(out.begin(), out.end(), 0);
    return out;
  };
  std::vector<Kernel> out{{.execute = execute}};
  Kernel on_host{.device = DeviceType::gpu,
                 .execute = execute,
                 .host_inputs = all(inputs),
                 .host_outputs = all(outputs)};
  if (std::find(attrs.begin(), attrs.end(), of_type) != attrs.end()) {
    on_host.types = {{"element_dtype", {i32, i64, DType::boolean, DType::variant}}};
    std::vector<DType> types = NumberAndComplexTypes::list();
    std::erase_if(types, [](DType dtype) { return dtype == i32 || dtype == i64; });
    out.push_back({.device = DeviceType::gpu,
                   .types = {{"element_dtype", types}},
                   .execute = execute,
                   .host_inputs = others(inputs),
                   .host_outputs = others(outputs)});
  }
  out.push_back(std::move(on_host));
  return out;
}

OpDef on_list(const char* name, const char* doc, Strings inputs, Strings outputs, Strings attrs,
              Execute execute, ShapeFunction shape) {
  std::vector<Kernel> kernels = list_kernels(inputs, outputs, attrs, execute);
  return {.name = name,
          .doc = doc,
          .inputs = std::move(inputs),
          .outputs = std::move(outputs),
          .attrs = std::move(attrs),
          .shape = std::move(shape),
          .kernels = std::move(kernels),
          .has_data_dependent_shape = true,
          .is_not_differentiable = true};
}

OpDef with(GradientFunction gradient, OpDef op) {
  op.gradient = std::move(gradient);
  op.is_not_differentiable = false;
  return op;
}

// The shape of elements, as far as that input determines it.
ShapeFunction element_of(int shape_input, int list_output, int element_output) {
  return [=](ShapeContext& c) {
    if (list_output >= 0) c.set_output(list_output, Shape{});
    const Tensor* const value = c.value(shape_input);
    c.set_output(element_output, value == nullptr || value->shape().rank() == 0
                                     ? Shape::unknown()
                                     : c.shape_from_value(shape_input));
  };
}

// The number of elements, as far as it is known, and their shape.
void infer_stack(ShapeContext& c) {
  const Tensor* const value = c.value(1);
  if (value == nullptr || value->shape().rank() == 0) return c.set_output(0, Shape::unknown());
  const Shape element = c.shape_from_value(1);
  if (!element.has_rank() || element.rank() == Shape::max_rank)
    return c.set_output(0, Shape::unknown());
  const auto count = c.attr<int64_t>("num_elements");
  Shape out{count < 0 ? int64_t{any} : count};
  for (const int64_t extent : element.dims()) out.push_back(extent);
  c.set_output(0, out);
}

// ---- Gradients: the gradient of a list is the list of its elements' gradients ----

AttrMap dtype_of(const Gradient& g) { return {{"element_dtype", g.attr<DType>("element_dtype")}}; }

void push_gradient(Gradient& g) {
  if (!g.dy(0)) return;
  Node& pop = op_node(g.graph(), "TensorListPopBack", {g.dy(0), shape_of(g.x(1))}, dtype_of(g));
  g.dx(0) = pop.output(0);
  g.dx(1) = pop.output(1);
}

void pop_gradient(Gradient& g) {
  g.dx(0) = op("TensorListPushBack", {g.dy_or_zeros(0), g.dy_or_zeros(1)}, dtype_of(g));
}

void stack_gradient(Gradient& g) {
  if (g.dy(0)) g.dx(0) = op("TensorListFromTensor", {g.dy(0), g.x(1)}, dtype_of(g));
}

void from_tensor_gradient(Gradient& g) {
  if (!g.dy(0)) return;
  const Output element = shape_of(g.x(0))[slice(1, {})];
  g.dx(0) = op("TensorListStack", {g.dy(0), element}, dtype_of(g));
}

// A list of the same length, with only one element set.
void get_gradient(Gradient& g) {
  if (!g.dy(0)) return;
  const Output length = op("TensorListLength", {g.x(0)});
  const Output nothing = op("TensorListReserve", {shape_of(g.dy(0)), length}, dtype_of(g));
  g.dx(0) = op("TensorListSetItem", {nothing, g.x(1), g.dy(0)}, dtype_of(g));
}

void set_gradient(Gradient& g) {
  if (!g.dy(0)) return;
  g.dx(0) = op("TensorListSetItem", {g.dy(0), g.x(1), zeros_like(g.x(2))}, dtype_of(g));
  g.dx(2) = op("TensorListGetItem", {g.dy(0), g.x(1), shape_of(g.x(2))}, dtype_of(g));
}

void resize_gradient(Gradient& g) {
  if (g.dy(0)) g.dx(0) = op("TensorListResize", {g.dy(0), op("TensorListLength", {g.x(0)})});
}

void gather_gradient(Gradient& g) {
  if (!g.dy(0)) return;
  const Output length = op("TensorListLength", {g.x(0)});
  g.dx(0) = op("TensorListScatterV2", {g.dy(0), g.x(1), shape_of(g.dy(0))[slice(1, {})], length},
               dtype_of(g));
}

void scatter_gradient(Gradient& g) {
  if (!g.dy(0)) return;
  const Output element = shape_of(g.x(0))[slice(1, {})];
  g.dx(0) = op("TensorListGather", {g.dy(0), g.x(1), element}, dtype_of(g));
}

const Op empty_op{on_list("EmptyTensorList",
                          "handle = a list without elements, of at most max_num_elements "
                          "(-1: any number).",
                          {"element_shape: shape_type", "max_num_elements: int32"},
                          {"handle: variant"}, {of_type, shape_type}, make_empty,
                          shapes::scalar())};

const Op reserve_op{on_list("TensorListReserve",
                            "handle = a list of num_elements elements that are not set: zeros.",
                            {"element_shape: shape_type", "num_elements: int32"},
                            {"handle: variant"}, {of_type, shape_type}, reserve, shapes::scalar())};

const Op push_op{with(
    push_gradient, on_list("TensorListPushBack",
                           "output_handle = the list with tensor as a further element at its end.",
                           {"input_handle: variant", "tensor: element_dtype"},
                           {"output_handle: variant"}, {of_type}, push_back, shapes::scalar()))};

const Op pop_op{with(
    pop_gradient,
    on_list("TensorListPopBack", "tensor = the last element, output_handle = the list without it.",
            {"input_handle: variant", "element_shape: int32"},
            {"output_handle: variant", "tensor: element_dtype"}, {of_type}, pop_back,
            element_of(1, 0, 1)))};

const Op stack_op{
    with(stack_gradient,
         on_list("TensorListStack",
                 "tensor[i] = element i. num_elements: how many there must be; -1: any.",
                 {"input_handle: variant", "element_shape: int32"}, {"tensor: element_dtype"},
                 {of_type, "num_elements: int = -1"}, stack, infer_stack))};

const Op from_tensor_op{
    with(from_tensor_gradient,
         on_list("TensorListFromTensor", "output_handle[i] = tensor[i].",
                 {"tensor: element_dtype", "element_shape: shape_type"}, {"output_handle: variant"},
                 {of_type, shape_type}, from_tensor, shapes::scalar()))};

const Op get_op{
    with(get_gradient, on_list("TensorListGetItem", "item = element `index`.",
                               {"input_handle: variant", "index: int32", "element_shape: Tshape"},
                               {"item: element_dtype"}, {of_type, "Tshape: {int32, int64} = int32"},
                               get_item, element_of(2, -1, 0)))};

const Op set_op{with(
    set_gradient,
    on_list("TensorListSetItem", "output_handle = the list with item as element `index`.",
            {"input_handle: variant", "index: int32", "item: element_dtype"},
            {"output_handle: variant"}, {of_type, "resize_if_index_out_of_bounds: bool = false"},
            set_item, shapes::scalar()))};

const Op length_op{on_list(
    "TensorListLength", "length = how many elements the list has.", {"input_handle: variant"},
    {"length: int32"}, {},
    [](ExecuteContext& c) {
      c.set_output(0, Tensor::scalar(static_cast<int32_t>(list_of(c, 0).elements.size())));
    },
    shapes::scalar())};

const Op resize_op{with(
    resize_gradient, on_list("TensorListResize",
                             "output_handle = the first `size` elements; those that the list lacks "
                             "are not set.",
                             {"input_handle: variant", "size: int32"}, {"output_handle: variant"},
                             {}, resize, shapes::scalar()))};

const Op gather_op{with(gather_gradient,
                        on_list("TensorListGather", "values[i] = element indices[i].",
                                {"input_handle: variant", "indices: int32", "element_shape: int32"},
                                {"values: element_dtype"}, {of_type}, gather, nullptr))};

const Op scatter_op{
    with(scatter_gradient,
         on_list("TensorListScatter", "output_handle[indices[i]] = tensor[i].",
                 {"tensor: element_dtype", "indices: int32", "element_shape: shape_type"},
                 {"output_handle: variant"}, {of_type, shape_type}, scatter, shapes::scalar()))};

const Op scatter_v2_op{
    with(scatter_gradient,
         on_list("TensorListScatterV2", "As TensorListScatter, of at least num_elements elements.",
                 {"tensor: element_dtype", "indices: int32", "element_shape: shape_type",
                  "num_elements: int32"},
                 {"output_handle: variant"}, {of_type, shape_type}, scatter, shapes::scalar()))};

const Op scatter_into_op{
    on_list("TensorListScatterIntoExistingList",
            "output_handle = the list, with tensor[i] as element indices[i].",
            {"input_handle: variant", "tensor: element_dtype", "indices: int32"},
            {"output_handle: variant"}, {of_type}, scatter_into_existing, shapes::scalar())};

const Op concat_op{on_list(
    "TensorListConcat",
    "tensor = all elements, one after the other along their first axis; lengths = their extents "
    "along it.",
    {"input_handle: variant"}, {"tensor: element_dtype", "lengths: int64"},
    {of_type, "element_shape: shape = <unknown>"},
    [](ExecuteContext& c) { concatenate(c, c.node().attr<Shape>("element_shape"), {}); }, nullptr)};

const Op concat_v2_op{on_list(
    "TensorListConcatV2",
    "As TensorListConcat; leading_dims: first extents of elements that "
    "were not set.",
    {"input_handle: variant", "element_shape: shape_type", "leading_dims: int64"},
    {"tensor: element_dtype", "lengths: int64"}, {of_type, shape_type}, concat_v2, nullptr)};

const Op split_op{
    on_list("TensorListSplit", "output_handle[i] = the next lengths[i] rows of tensor.",
            {"tensor: element_dtype", "element_shape: shape_type", "lengths: int64"},
            {"output_handle: variant"}, {of_type, shape_type}, split, shapes::scalar())};

const Op concat_lists_op{on_list("TensorListConcatLists",
                                 "output = the elements of input_a, then those of input_b.",
                                 {"input_a: variant", "input_b: variant"}, {"output: variant"},
                                 {of_type}, concat_lists, shapes::scalar())};

const Op element_shape_op{on_list("TensorListElementShape",
                                  "element_shape = what the list says of its elements' shape, -1 "
                                  "for what it leaves open.",
                                  {"input_handle: variant"}, {"element_shape: shape_type"},
                                  {shape_type}, element_shape, nullptr)};

}  // namespace
}  // namespace leat
