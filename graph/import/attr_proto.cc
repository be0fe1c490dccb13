#include <limits>

#include "graph/import/proto_codec.h"
#include "graph/proto/graph.pb.h"

namespace leat {
namespace {

using ListValue = tensorflow::AttrValue::ListValue;

// Types without kernels keep their number, so that they come out as they went in.
DType read_dtype(int data_type) {
  check(data_type >= 0 && data_type <= std::numeric_limits<uint8_t>::max(), "the dtype number ",
        data_type, " does not exist in TensorFlow");
  return static_cast<DType>(data_type);
}

FunctionRef read_function(const tensorflow::NameAttrList& proto) {
  AttrMap attrs;
  for (const auto& [name, value] : proto.attr()) attrs.emplace(name, read_attr(value, ""));
  return {proto.name(), std::make_shared<const AttrMap>(std::move(attrs))};
}

void write_function(const FunctionRef& function, tensorflow::NameAttrList& proto) {
  proto.set_name(function.name);
  if (!function.attrs) return;
  for (const auto& [name, value] : *function.attrs)
    write_attr(value, (*proto.mutable_attr())[name]);
}

template <class T, class List, class Read>
AttrValue read_all(const List& list, Read read) {
  std::vector<T> out;
  out.reserve(list.size());
  for (const auto& element : list) out.push_back(read(element));
  return AttrValue(std::move(out));
}

std::string_view kind_of(const ListValue& list) {
  // clang-format off
  if (list.s_size() > 0) return "list(string)";
  if (list.i_size() > 0) return "list(int)";
  if (list.f_size() > 0) return "list(float)";
  if (list.b_size() > 0) return "list(bool)";
  if (list.type_size() > 0) return "list(type)";
  if (list.shape_size() > 0) return "list(shape)";
  if (list.tensor_size() > 0) return "list(tensor)";
  if (list.func_size() > 0) return "list(func)";
  // clang-format on
  return "";
}

AttrValue read_list(const ListValue& list, std::string_view wanted) {
  const auto same = [](const auto& x) { return x; };
  const std::string_view found = kind_of(list);
  const std::string_view kind = found.empty() ? wanted : found;
  // clang-format off
  if (kind == "list(int)") return read_all<int64_t>(list.i(), same);
  if (kind == "list(float)") return read_all<float>(list.f(), same);
  if (kind == "list(bool)") return read_all<bool>(list.b(), same);
  if (kind == "list(type)") return read_all<DType>(list.type(), read_dtype);
  if (kind == "list(shape)") return read_all<Shape>(list.shape(), read_shape);
  if (kind == "list(tensor)") return read_all<Tensor>(list.tensor(), read_tensor);
  if (kind == "list(func)") return read_all<FunctionRef>(list.func(), read_function);
  // clang-format on
  return read_all<std::string>(list.s(), same);
}

// clang-format off
void write(std::monostate, tensorflow::AttrValue&) {}
void write(const std::string& v, tensorflow::AttrValue& out) { out.set_s(v); }
void write(int64_t v, tensorflow::AttrValue& out) { out.set_i(v); }
void write(float v, tensorflow::AttrValue& out) { out.set_f(v); }
void write(bool v, tensorflow::AttrValue& out) { out.set_b(v); }
void write(DType v, tensorflow::AttrValue& out) { out.set_type(static_cast<tensorflow::DataType>(v)); }
void write(const Shape& v, tensorflow::AttrValue& out) { write_shape(v, *out.mutable_shape()); }
void write(const Tensor& v, tensorflow::AttrValue& out) { write_tensor(v, *out.mutable_tensor()); }
void write(const FunctionRef& v, tensorflow::AttrValue& out) { write_function(v, *out.mutable_func()); }

void add(const std::string& v, ListValue& out) { out.add_s(v); }
void add(int64_t v, ListValue& out) { out.add_i(v); }
void add(float v, ListValue& out) { out.add_f(v); }
void add(bool v, ListValue& out) { out.add_b(v); }
void add(DType v, ListValue& out) { out.add_type(static_cast<tensorflow::DataType>(v)); }
void add(const Shape& v, ListValue& out) { write_shape(v, *out.add_shape()); }
void add(const Tensor& v, ListValue& out) { write_tensor(v, *out.add_tensor()); }
void add(const FunctionRef& v, ListValue& out) { write_function(v, *out.add_func()); }
// clang-format on

template <class T>
void write(const std::vector<T>& values, tensorflow::AttrValue& out) {
  ListValue& list = *out.mutable_list();
  for (const T& value : values) add(value, list);
}

}  // namespace

AttrValue read_attr(const tensorflow::AttrValue& proto, std::string_view kind) {
  switch (proto.value_case()) {
    case tensorflow::AttrValue::kList:
      return read_list(proto.list(), kind);
    case tensorflow::AttrValue::kS:
      return proto.s();
    case tensorflow::AttrValue::kI:
      return proto.i();
    case tensorflow::AttrValue::kF:
      return proto.f();
    case tensorflow::AttrValue::kB:
      return proto.b();
    case tensorflow::AttrValue::kType:
      return read_dtype(proto.type());
    case tensorflow::AttrValue::kShape:
      return read_shape(proto.shape());
    case tensorflow::AttrValue::kTensor:
      return read_tensor(proto.tensor());
    case tensorflow::AttrValue::kFunc:
      return read_function(proto.func());
    case tensorflow::AttrValue::kPlaceholder:
      fail(Code::invalid_argument, "the placeholder '", proto.placeholder(),
           "' is valid only in functions");
    case tensorflow::AttrValue::VALUE_NOT_SET:
      break;
  }
  fail(Code::invalid_argument, "it has no value");
}

void write_attr(const AttrValue& value, tensorflow::AttrValue& proto) {
  std::visit([&](const auto& v) { write(v, proto); }, value.variant());
}

}  // namespace leat
