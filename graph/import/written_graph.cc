// Reads a GraphDef for display, even with unregistered ops, attributes of no schema and dtypes of
// later versions.
#include "core/error.h"
#include "graph/import/graph_def.h"
#include "graph/import/graph_file.h"
#include "graph/import/proto_codec.h"
#include "graph/proto/graph.pb.h"

namespace leat {
namespace {

DType read_dtype(int number) {
  constexpr int first_ref = 100;
  if (number > first_ref) number -= first_ref;
  const bool is_ours = number >= 0 && number <= static_cast<int>(DType::u64) &&
                       dtype_name(static_cast<DType>(number)) != dtype_name(DType::invalid);
  return is_ours ? static_cast<DType>(number) : DType::invalid;
}

Shape read_shape(const tensorflow::TensorShapeProto& shape) {
  if (shape.unknown_rank() || shape.dim_size() > Shape::max_rank) return Shape::unknown();
  Shape out;
  for (const auto& dim : shape.dim()) out.push_back(dim.size() < 0 ? any : dim.size());
  return out;
}

template <class T, class From>
std::vector<T> list_of(const From& values) {
  return {values.begin(), values.end()};
}

AttrValue read_list(const tensorflow::AttrValue::ListValue& list) {
  if (list.s_size() > 0) return list_of<std::string>(list.s());
  if (list.i_size() > 0) return list_of<int64_t>(list.i());
  if (list.f_size() > 0) return list_of<float>(list.f());
  if (list.b_size() > 0) return list_of<bool>(list.b());
  if (list.type_size() > 0) {
    std::vector<DType> types;
    for (const int type : list.type()) types.push_back(read_dtype(type));
    return types;
  }
  if (list.shape_size() > 0) {
    std::vector<Shape> shapes;
    for (const auto& shape : list.shape()) shapes.push_back(read_shape(shape));
    return shapes;
  }
  return std::vector<std::string>{};
}

void read_attr(const std::string& name, const tensorflow::AttrValue& attr, WrittenNode& node) {
  switch (attr.value_case()) {
    case tensorflow::AttrValue::kList:
      node.attrs[name] = read_list(attr.list());
      break;
    case tensorflow::AttrValue::kS:
      node.attrs[name] = attr.s();
      break;
    case tensorflow::AttrValue::kI:
      node.attrs[name] = static_cast<int64_t>(attr.i());
      break;
    case tensorflow::AttrValue::kF:
      node.attrs[name] = attr.f();
      break;
    case tensorflow::AttrValue::kB:
      node.attrs[name] = attr.b();
      break;
    case tensorflow::AttrValue::kType:
      node.attrs[name] = read_dtype(attr.type());
      break;
    case tensorflow::AttrValue::kShape:
      node.attrs[name] = read_shape(attr.shape());
      break;
    case tensorflow::AttrValue::kTensor:
      node.tensors[name] = {.dtype = read_dtype(attr.tensor().dtype()),
                            .shape = read_shape(attr.tensor().tensor_shape())};
      break;
    default:
      break;
  }
}

}  // namespace

std::vector<WrittenNode> read_graph_def(std::string_view bytes, std::string_view origin) {
  tensorflow::GraphDef graph;
  read_graph_file(bytes, origin, graph);
  std::vector<WrittenNode> nodes;
  nodes.reserve(static_cast<size_t>(graph.node_size()));
  for (const auto& def : graph.node()) {
    WrittenNode node{.name = def.name(), .op = def.op(), .device = def.device()};
    node.inputs = list_of<std::string>(def.input());
    for (const auto& [name, attr] : def.attr()) read_attr(name, attr, node);
    nodes.push_back(std::move(node));
  }
  return nodes;
}

}  // namespace leat
