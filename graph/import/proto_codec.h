// Converts between protobuf messages and our values; shared by GraphDef, feeds, fetches and
// checkpoints. For .cc files that own a format.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/attr.h"

namespace google::protobuf {
class Message;
}
namespace tensorflow {
class AttrValue;
class NodeDef;
class TensorProto;
class TensorShapeProto;
}  // namespace tensorflow

namespace leat {

struct Node;

// A rank above 16 (Shape::max_rank) or an extent below -1 is INVALID_ARGUMENT.
Shape read_shape(const tensorflow::TensorShapeProto& proto);
void write_shape(const Shape& shape, tensorflow::TensorShapeProto& proto);

// Either form of elements: `tensor_content`, or a list whose last element repeats. INVALID_ARGUMENT
// for a shape, dtype or length that is wrong; RESOURCE_EXHAUSTED if a short list stands for more
// than half of the free memory, or for more than 256 MiB of strings.
Tensor read_tensor(const tensorflow::TensorProto& proto);
// Sets this limit to that many bytes (256 MiB at least), for programs that test hostile messages.
void limit_expansions(uint64_t bytes);
// Few elements, or many equal ones, become a list; others `tensor_content`.
void write_tensor(const Tensor& tensor, tensorflow::TensorProto& proto);
// Elements without dtype and shape, all of them as a list. Reading fails with INVALID_ARGUMENT
// unless there are exactly as many as the shape has.
Tensor read_elements(const tensorflow::TensorProto& proto, DType dtype, const Shape& shape);
void write_elements(const Tensor& tensor, tensorflow::TensorProto& proto);

// `kind` as in schemas ("list(int)"), or "" if it is not known: it matters for empty lists only.
AttrValue read_attr(const tensorflow::AttrValue& proto, std::string_view kind);
void write_attr(const AttrValue& value, tensorflow::AttrValue& proto);

// `assigned_device`: the one after placement instead of the requested one.
void write_node(const Node& node, bool assigned_device, tensorflow::NodeDef& def);

// Parses protobuf's text form. Returns the error ("line 3, column 5: …"), or "". Skips unknown
// fields. At most 2 GiB.
std::string parse_text(std::string_view text, google::protobuf::Message& message);

// "float", "qint8": also for types that Leat does not have.
std::string wire_type_name(int data_type);

}  // namespace leat
