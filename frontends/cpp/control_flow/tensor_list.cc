#include "frontends/cpp/control_flow/tensor_list.h"

#include "graph/loops/tensor_list.h"

namespace leat {
namespace {

Output new_list(Graph& graph, DType dtype, const Shape& shape, const Operand& size, Location at) {
  const Output count = size.as(graph, i32);
  check(count.dtype() == i32, "a TensorList (", at, "): its size must be int32, got ",
        count.dtype());
  return tensor_list::reserve(graph, dtype, shape, count, at);
}

}  // namespace

TensorList::TensorList(Graph& graph, DType dtype, const Shape& shape,
                       const TensorListOptions& options, Location at)
    : Output(new_list(graph, dtype, shape, options.size, at)),
      element_dtype_(dtype),
      element_shape_(shape) {}

TensorList TensorList::of(Output x, Location at) {
  check(x && x.shape().rank() != 0, "TensorList::of (", at,
        ") needs a tensor with rows, at least one axis, got ",
        x ? concat(x.name(), " ", x.shape()) : "an empty Output");
  const Shape row = x.shape().has_rank() ? Shape(x.shape().dims().subspan(1)) : Shape::unknown();
  return {tensor_list::from_tensor(x, at), x.dtype(), row};
}

TensorList TensorList::with(Output list, Location at) const {
  check(list && list.dtype() == DType::variant, "TensorList::with (", at,
        ") needs a list, which a loop or a condition returns for one, got ",
        list ? concat(list.name(), " ", list.dtype(), list.shape()) : "an empty Output");
  return {list, element_dtype_, element_shape_};
}

void TensorList::check_element(std::string_view what, Output element, Location at) const {
  check(
      element && element.dtype() == element_dtype_ && element.shape().is_compatible(element_shape_),
      "TensorList::", what, " (", at, "): the elements of the list are ", element_dtype_,
      element_shape_, ", got ",
      element ? concat(element.name(), " ", element.dtype(), element.shape()) : "an empty Output");
}

TensorList TensorList::push_back(Output element, Location at) const {
  check_element("push_back", element, at);
  return {tensor_list::push(*this, element, at), element_dtype_, element_shape_};
}

std::pair<TensorList, Output> TensorList::pop_back(Location at) const {
  const auto [list, element] = tensor_list::pop(*this, element_dtype_, element_shape_, at);
  return {{list, element_dtype_, element_shape_}, element};
}

Output TensorList::get(const Operand& i, Location at) const {
  return tensor_list::get(*this, i.as(graph(), i32), element_dtype_, element_shape_, at);
}

TensorList TensorList::set(const Operand& i, Output element, Location at) const {
  check_element("set", element, at);
  return {tensor_list::set(*this, i.as(graph(), i32), element, at), element_dtype_, element_shape_};
}

Output TensorList::size(Location at) const { return op("TensorListLength", {*this}, {}, at); }

Output TensorList::stack(Location at) const {
  return tensor_list::stack(*this, element_dtype_, element_shape_, any, at);
}

}  // namespace leat
