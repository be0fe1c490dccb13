// Reads and writes TensorProto. Its two forms of elements and their traps make this file long:
// short lists whose last element repeats, strings packed into tensor_content, sizes larger than the
// data.
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cctype>
#include <complex>
#include <limits>

#include "core/bools.h"
#include "core/memory/host_memory.h"
#include "core/visit_dtype.h"
#include "graph/import/graph_def.h"
#include "graph/import/proto_codec.h"
#include "graph/proto/graph.pb.h"

namespace leat {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;
using tensorflow::TensorProto;

// Bytes that a short list may stand for: of strings; of numbers, this at least.
constexpr uint64_t largest_expansion = 256u << 20;
std::atomic<uint64_t> expansion_limit = std::numeric_limits<uint64_t>::max();
constexpr int64_t longest_list = 8;  // elements that are written as a list
constexpr uint64_t largest_message = std::numeric_limits<int>::max();

bool has_elements(DType dtype) {
  return visit_dtype(dtype, [](auto) {});
}

DType read_element_type(int data_type) {
  check(data_type != tensorflow::DT_INVALID, "a tensor has no dtype");
  const auto dtype = static_cast<DType>(data_type);
  if (data_type < 0 || data_type > 100 || !has_elements(dtype)) {
    fail(Code::invalid_argument, "a tensor has the dtype ", wire_type_name(data_type),
         ", which Leat does not support");
  }
  return dtype;
}

Shape read_complete_shape(const tensorflow::TensorShapeProto& proto) {
  const Shape shape = read_shape(proto);
  check(shape.is_complete(), "a tensor has the partial shape ", shape);
  return shape;
}

uint64_t byte_count(DType dtype, const Shape& shape) {
  uint64_t bytes = 0;
  const bool overflows =
      __builtin_mul_overflow(static_cast<uint64_t>(shape.elements()), dtype_size(dtype), &bytes);
  check(!overflows, "a tensor of shape ", shape, " has more than 2^64 bytes");
  return bytes;
}

// ---- tensor_content ----

void read_strings(std::string_view content, Tensor& tensor) {
  const auto n = static_cast<uint64_t>(tensor.elements());
  CodedInputStream in(reinterpret_cast<const uint8_t*>(content.data()),
                      static_cast<int>(content.size()));
  std::vector<uint32_t> lengths(n);
  uint64_t total = 0;
  for (uint32_t& length : lengths) {
    check(in.ReadVarint32(&length), "tensor_content of ", n, " strings ends within their lengths");
    total += length;
  }
  const auto begin = static_cast<size_t>(in.CurrentPosition());
  check(content.size() - begin == total, "tensor_content of ", n, " strings has ",
        content.size() - begin, " bytes of text, but their lengths add up to ", total);
  std::string_view rest = content.substr(begin);
  std::string* out = tensor.data<std::string>();
  for (size_t i = 0; i < n; ++i) {
    out[i] = rest.substr(0, lengths[i]);
    rest.remove_prefix(lengths[i]);
  }
}

std::string written_strings(const Tensor& tensor) {
  std::string lengths, text;
  for (const std::string& value : tensor.span<std::string>()) {
    check(value.size() <= largest_message, "a string of ", value.size(),
          " bytes does not fit into a protobuf message");
    uint8_t length[5];
    const uint8_t* end =
        CodedOutputStream::WriteVarint32ToArray(static_cast<uint32_t>(value.size()), length);
    lengths.append(reinterpret_cast<const char*>(length), end - length);
    text += value;
  }
  return lengths + text;
}

Tensor from_content(DType dtype, const Shape& shape, std::string_view content) {
  if (dtype == DType::string) {
    check(static_cast<uint64_t>(shape.elements()) <= content.size(), "tensor_content of ",
          content.size(), " bytes is too short for ", shape.elements(), " strings");
    Tensor out(dtype, shape);
    read_strings(content, out);
    return out;
  }
  check(byte_count(dtype, shape) == content.size(), "tensor_content has ", content.size(),
        " bytes, but ", dtype, shape, " needs ", byte_count(dtype, shape));
  Tensor out(dtype, shape);
  if (!content.empty()) std::memcpy(out.raw(), content.data(), content.size());
  normalise_bools(out);
  return out;
}

// ---- Lists ----

// Element i of a list is at `get(i)`; there are `given` of them.
template <class T, class Get>
void expand(int given, Get get, T* out, int64_t n) {
  const int64_t literal = std::min<int64_t>(given, n);
  for (int64_t i = 0; i < literal; ++i) out[i] = get(static_cast<int>(i));
  const T last = given > 0 && n > literal ? out[literal - 1] : T{};
  std::fill(out + literal, out + n, last);
}

template <class T, class List>
void expand_list(const List& list, Tensor& tensor) {
  expand(
      list.size(), [&](int i) { return static_cast<T>(list.Get(i)); }, tensor.data<T>(),
      tensor.elements());
}

template <class T>
T from_bits(int32_t bits) {
  return std::bit_cast<T>(static_cast<uint16_t>(bits));
}

template <class T, class List>
void expand_complex(const List& list, Tensor& tensor) {
  expand(
      list.size() / 2, [&](int i) { return std::complex<T>(list.Get(2 * i), list.Get(2 * i + 1)); },
      static_cast<std::complex<T>*>(tensor.raw()), tensor.elements());
}

int list_length(const TensorProto& proto, DType dtype) {
  switch (dtype) {
    case DType::f32:
      return proto.float_val_size();
    case DType::f64:
      return proto.double_val_size();
    case DType::i64:
      return proto.int64_val_size();
    case DType::u32:
      return proto.uint32_val_size();
    case DType::u64:
      return proto.uint64_val_size();
    case DType::boolean:
      return proto.bool_val_size();
    case DType::string:
      return proto.string_val_size();
    case DType::f16:
    case DType::bf16:
      return proto.half_val_size();
    case DType::complex64:
      return proto.scomplex_val_size() / 2;
    case DType::complex128:
      return proto.dcomplex_val_size() / 2;
    default:
      return proto.int_val_size();
  }
}

// A list shorter than the tensor: its last element is repeated, strings with all their text.
void check_expansion(const TensorProto& proto, DType dtype, const Shape& shape) {
  uint64_t bytes = byte_count(dtype, shape);
  if (dtype == DType::string && proto.string_val_size() > 0) {
    const uint64_t text = proto.string_val(proto.string_val_size() - 1).size();
    if (__builtin_mul_overflow(dtype_size(dtype) + text, static_cast<uint64_t>(shape.elements()),
                               &bytes))
      bytes = std::numeric_limits<uint64_t>::max();
  }
  if (bytes <= largest_expansion) return;
  const uint64_t limit = dtype == DType::string
                             ? largest_expansion
                             : std::max(largest_expansion, std::min(expansion_limit.load(),
                                                                    available_host_memory() / 2));
  if (bytes <= limit) return;
  fail(Code::resource_exhausted, "a tensor ", dtype, shape, " of ", bytes,
       " bytes is expanded from ", list_length(proto, dtype), " elements; the limit for that is ",
       limit, " bytes", dtype == DType::string ? "" : ", half of the free memory", ": use Fill");
}

void read_list(const TensorProto& proto, Tensor& tensor) {
  // clang-format off
  switch (tensor.dtype()) {
    case DType::f32: return expand_list<float>(proto.float_val(), tensor);
    case DType::f64: return expand_list<double>(proto.double_val(), tensor);
    case DType::i32: return expand_list<int32_t>(proto.int_val(), tensor);
    case DType::i16: return expand_list<int16_t>(proto.int_val(), tensor);
    case DType::i8: return expand_list<int8_t>(proto.int_val(), tensor);
    case DType::u8: return expand_list<uint8_t>(proto.int_val(), tensor);
    case DType::u16: return expand_list<uint16_t>(proto.int_val(), tensor);
    case DType::i64: return expand_list<int64_t>(proto.int64_val(), tensor);
    case DType::u32: return expand_list<uint32_t>(proto.uint32_val(), tensor);
    case DType::u64: return expand_list<uint64_t>(proto.uint64_val(), tensor);
    case DType::boolean: return expand_list<bool>(proto.bool_val(), tensor);
    case DType::string: return expand_list<std::string>(proto.string_val(), tensor);
    case DType::complex64: return expand_complex<float>(proto.scomplex_val(), tensor);
    case DType::complex128: return expand_complex<double>(proto.dcomplex_val(), tensor);
    case DType::f16:
      return expand(proto.half_val_size(), [&](int i) { return from_bits<half>(proto.half_val(i)); },
                    tensor.data<half>(), tensor.elements());
    case DType::bf16:
      return expand(proto.half_val_size(), [&](int i) { return from_bits<bfloat16>(proto.half_val(i)); },
                    tensor.data<bfloat16>(), tensor.elements());
    default: fail(Code::internal, "no list of elements for ", tensor.dtype());
  }
  // clang-format on
}

template <class T>
int32_t to_bits(T value) {
  return std::bit_cast<uint16_t>(value);
}

void add_element(float value, TensorProto& proto) { proto.add_float_val(value); }
void add_element(double value, TensorProto& proto) { proto.add_double_val(value); }
void add_element(int64_t value, TensorProto& proto) { proto.add_int64_val(value); }
void add_element(uint32_t value, TensorProto& proto) { proto.add_uint32_val(value); }
void add_element(uint64_t value, TensorProto& proto) { proto.add_uint64_val(value); }
void add_element(bool value, TensorProto& proto) { proto.add_bool_val(value); }
void add_element(half value, TensorProto& proto) { proto.add_half_val(to_bits(value)); }
void add_element(bfloat16 value, TensorProto& proto) { proto.add_half_val(to_bits(value)); }
void add_element(int32_t value, TensorProto& proto) { proto.add_int_val(value); }
void add_element(const complex64& value, TensorProto& proto) {
  proto.add_scomplex_val(value.real());
  proto.add_scomplex_val(value.imag());
}
void add_element(const complex128& value, TensorProto& proto) {
  proto.add_dcomplex_val(value.real());
  proto.add_dcomplex_val(value.imag());
}
void add_element(const std::string& value, TensorProto& proto) { proto.add_string_val(value); }

bool are_all_equal(const Tensor& tensor) {
  const size_t size = dtype_size(tensor.dtype());
  const auto* bytes = static_cast<const char*>(tensor.raw());
  return std::memcmp(bytes, bytes + size, tensor.bytes() - size) == 0;
}

[[noreturn]] void fail_too_large(const Tensor& tensor, uint64_t bytes) {
  fail(Code::resource_exhausted, "a tensor ", tensor.dtype(), tensor.shape(), " of ", bytes,
       " bytes does not fit into a protobuf message, whose limit is ", largest_message, " bytes");
}

// The dtype and shape of a TensorProto that has nothing else but tensor_content; false for any
// other.
bool scan_content(std::string_view bytes, DType& dtype, Shape& shape, std::string_view& content) {
  CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                      static_cast<int>(bytes.size()));
  tensorflow::TensorShapeProto shape_proto;
  uint32_t data_type = 0;
  while (const uint32_t tag = in.ReadTag()) {
    uint32_t value = 0;
    const int field = WireFormatLite::GetTagFieldNumber(tag);
    if (tag ==
        WireFormatLite::MakeTag(TensorProto::kDtypeFieldNumber, WireFormatLite::WIRETYPE_VARINT)) {
      if (!in.ReadVarint32(&data_type)) return false;
    } else if (field == TensorProto::kVersionNumberFieldNumber) {
      if (!in.ReadVarint32(&value)) return false;
    } else if (field == TensorProto::kTensorShapeFieldNumber ||
               field == TensorProto::kTensorContentFieldNumber) {
      if (WireFormatLite::GetTagWireType(tag) != WireFormatLite::WIRETYPE_LENGTH_DELIMITED ||
          !in.ReadVarint32(&value)) {
        return false;
      }
      const auto begin = static_cast<size_t>(in.CurrentPosition());
      if (value > bytes.size() - begin || !in.Skip(static_cast<int>(value))) return false;
      if (field == TensorProto::kTensorContentFieldNumber) {
        content = bytes.substr(begin, value);
      } else if (!shape_proto.ParseFromArray(bytes.data() + begin, static_cast<int>(value))) {
        return false;
      }
    } else {
      return false;
    }
  }
  if (!in.ConsumedEntireMessage() || content.empty()) return false;
  dtype = read_element_type(static_cast<int>(data_type));
  shape = read_complete_shape(shape_proto);
  return true;
}

}  // namespace

std::string wire_type_name(int data_type) {
  const bool is_ref = data_type > 100 && data_type < 200;
  std::string name = tensorflow::DataType_Name(
      static_cast<tensorflow::DataType>(is_ref ? data_type - 100 : data_type));
  if (name.empty()) return concat("number ", data_type);
  name = name.substr(3);  // "DT_"
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return is_ref ? "Ref(" + name + ")" : name;
}

Shape read_shape(const tensorflow::TensorShapeProto& proto) {
  if (proto.unknown_rank()) return Shape::unknown();
  check(proto.dim_size() <= Shape::max_rank, "a shape has ", proto.dim_size(),
        " dimensions; at most ", Shape::max_rank, " are supported");
  Shape out;
  for (const auto& dim : proto.dim()) {
    check(dim.size() >= -1, "a shape has the extent ", dim.size());
    out.push_back(dim.size());
  }
  return out;
}

void write_shape(const Shape& shape, tensorflow::TensorShapeProto& proto) {
  proto.set_unknown_rank(!shape.has_rank());
  for (const int64_t extent : shape.dims()) proto.add_dim()->set_size(extent);
}

void limit_expansions(uint64_t bytes) { expansion_limit = bytes; }

Tensor read_tensor(const TensorProto& proto) {
  const DType dtype = read_element_type(proto.dtype());
  const Shape shape = read_complete_shape(proto.tensor_shape());
  if (!proto.tensor_content().empty()) return from_content(dtype, shape, proto.tensor_content());
  if (shape.elements() > list_length(proto, dtype)) check_expansion(proto, dtype, shape);
  Tensor out(dtype, shape);
  read_list(proto, out);
  return out;
}

Tensor read_elements(const TensorProto& proto, DType dtype, const Shape& shape) {
  check(list_length(proto, dtype) == shape.elements(), "a tensor ", dtype, shape, " has a list of ",
        list_length(proto, dtype), " elements");
  Tensor out(dtype, shape);
  read_list(proto, out);
  return out;
}

void write_elements(const Tensor& tensor, TensorProto& proto) {
  visit_dtype(tensor.dtype(), [&]<class T>(TypeTag<T>) {
    for (const T& value : tensor.span<T>()) add_element(value, proto);
  });
}

void write_tensor(const Tensor& tensor, TensorProto& proto) {
  proto.set_dtype(static_cast<tensorflow::DataType>(tensor.dtype()));
  write_shape(tensor.shape(), *proto.mutable_tensor_shape());
  const int64_t n = tensor.elements();
  if (n == 0) return;
  const bool is_list = tensor.dtype() == DType::string || n <= longest_list;
  const bool is_repeated = !is_list && tensor.bytes() <= largest_expansion && are_all_equal(tensor);
  const bool is_done =
      (is_list || is_repeated) && visit_dtype(tensor.dtype(), [&]<class T>(TypeTag<T>) {
        for (int64_t i = 0; i < (is_repeated ? 1 : n); ++i) add_element(tensor.data<T>()[i], proto);
      });
  if (!is_done) proto.set_tensor_content(tensor.raw(), tensor.bytes());
}

std::string to_tensor_proto(const Tensor& tensor) {
  TensorProto proto;
  if (tensor.dtype() == DType::string) {
    write_tensor(tensor, proto);
    if (const uint64_t bytes = proto.ByteSizeLong(); bytes > largest_message)
      fail_too_large(tensor, bytes);
    return proto.SerializeAsString();
  }
  return to_tensor_content_proto(tensor);
}

std::string to_tensor_content_proto(const Tensor& tensor) {
  // The elements are appended behind the rest, which saves a copy of them.
  TensorProto proto;
  proto.set_dtype(static_cast<tensorflow::DataType>(tensor.dtype()));
  write_shape(tensor.shape(), *proto.mutable_tensor_shape());
  std::string out = proto.SerializeAsString();
  std::string strings;
  if (tensor.dtype() == DType::string) strings = written_strings(tensor);
  const uint64_t bytes = tensor.dtype() == DType::string ? strings.size() : tensor.bytes();
  if (bytes == 0) return out;
  if (bytes > largest_message - out.size() - 16) fail_too_large(tensor, bytes);
  uint8_t header[16];
  uint8_t* end = WireFormatLite::WriteTagToArray(TensorProto::kTensorContentFieldNumber,
                                                 WireFormatLite::WIRETYPE_LENGTH_DELIMITED, header);
  end = CodedOutputStream::WriteVarint32ToArray(static_cast<uint32_t>(bytes), end);
  out.reserve(out.size() + sizeof(header) + bytes);
  out.append(header, end);
  out.append(
      tensor.dtype() == DType::string ? strings.data() : static_cast<const char*>(tensor.raw()),
      bytes);
  return out;
}

Tensor from_tensor_proto(std::string_view bytes) {
  if (bytes.size() > largest_message) {
    fail(Code::resource_exhausted, "a TensorProto of ", bytes.size(),
         " bytes is too large; the limit is ", largest_message);
  }
  DType dtype = DType::invalid;
  Shape shape;
  std::string_view content;
  if (scan_content(bytes, dtype, shape, content)) return from_content(dtype, shape, content);
  TensorProto proto;
  check(proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())),
        "this is not a TensorProto: its ", bytes.size(), " bytes do not parse");
  return read_tensor(proto);
}

}  // namespace leat
