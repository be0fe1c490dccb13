#include "graph/formats/example.h"

#include <google/protobuf/arena.h>

#include <climits>

#include "core/error.h"
#include "graph/formats/proto/example.pb.h"

namespace leat {
namespace {

template <class T, class List>
std::vector<T> values_of(const List& list) {
  return {list.value().begin(), list.value().end()};
}

Feature to_feature(const tensorflow::Feature& in) {
  switch (in.kind_case()) {
    case tensorflow::Feature::kBytesList:
      return values_of<std::string>(in.bytes_list());
    case tensorflow::Feature::kFloatList:
      return values_of<float>(in.float_list());
    case tensorflow::Feature::kInt64List:
      return values_of<int64_t>(in.int64_list());
    case tensorflow::Feature::KIND_NOT_SET:
      break;
  }
  return {};
}

}  // namespace

Features parse_example(std::string_view serialized) {
  google::protobuf::Arena arena;
  auto& example = *google::protobuf::Arena::CreateMessage<tensorflow::Example>(&arena);
  check(serialized.size() <= INT_MAX &&
            example.ParseFromArray(serialized.data(), static_cast<int>(serialized.size())),
        "Could not parse example: ", serialized.size(), " bytes that are no tf.train.Example");
  Features out;
  for (const auto& [name, feature] : example.features().feature())
    out.emplace(name, to_feature(feature));
  return out;
}

}  // namespace leat
