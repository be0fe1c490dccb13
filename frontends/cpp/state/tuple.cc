#include "frontends/cpp/state/tuple.h"

namespace leat {
namespace {

Shape behind_first_axis(const Shape& shape) {
  return shape.has_rank() ? Shape(shape.dims().subspan(1)) : shape;
}

Shape with_first_axis(int64_t extent, const Shape& shape) {
  if (!shape.has_rank()) return shape;
  Shape out{extent};
  for (const int64_t other : shape.dims()) out.push_back(other);
  return out;
}

}  // namespace

void TupleSpec::check_valid(std::string_view what) const {
  check(!dtypes.empty(), what, " needs the dtype of at least one component");
  check(shapes.empty() || shapes.size() == dtypes.size(), what, " has ", dtypes.size(),
        " dtypes, but ", shapes.size(), " shapes: give one for each component, or none");
}

std::vector<Output> TupleSpec::inputs(Graph& graph, const Tuple& tuple, bool are_many,
                                      std::string_view what) const {
  const std::vector<Operand>& values = tuple.values();
  check(values.size() == dtypes.size(), what, ": an element has ", dtypes.size(),
        dtypes.size() == 1 ? " component" : " components", ", but ", values.size(),
        values.size() == 1 ? " value was given" : " values were given");
  std::vector<Output> out;
  for (size_t i = 0; i < values.size(); ++i) {
    check(values[i].is_constant() || values[i].output(), what, ": component ", i,
          " is an empty Output");
    const Output value = values[i].as(graph, dtypes[i]);
    check(&value.graph() == &graph, what, ": component ", i, " is '", value.name(),
          "', which belongs to another graph");
    check(value.dtype() == dtypes[i], what, ": component ", i, " is ", dtypes[i], ", but '",
          value.name(), "' is ", value.dtype(), ": use cast()");
    const Shape& shape = value.shape();
    check(!are_many || !shape.has_rank() || shape.rank() > 0, what, ": component ", i, ", '",
          value.name(), "', is a scalar: it needs a first axis, one position for each element");
    const Shape one = are_many ? behind_first_axis(shape) : shape;
    check(shapes.empty() || shapes[i].is_compatible(one), what, ": component ", i, " is ",
          shapes.empty() ? one : shapes[i], ", but that of '", value.name(), "' is ", one);
    out.push_back(value);
  }
  return out;
}

std::vector<Output> TupleSpec::outputs(Node& node, std::optional<int64_t> elements) const {
  std::vector<Output> out;
  for (int i = 0; i < node.num_outputs(); ++i) {
    Shape shape = shapes.empty() ? Shape::unknown() : shapes[static_cast<size_t>(i)];
    if (elements) shape = with_first_axis(*elements, shape);
    out.push_back(with_shape(node.output(i), shape, node.location));
  }
  return out;
}

Output with_shape(Output x, const Shape& shape, Location at) {
  return shape.has_rank() ? op("EnsureShape", {x}, {{"shape", shape}}, at) : x;
}

}  // namespace leat
