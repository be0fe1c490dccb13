#include "graph/formats/example.h"

#include <google/protobuf/arena.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/type_resolver_util.h>

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

Features to_features(const tensorflow::Features& in) {
  Features out;
  for (const auto& [name, feature] : in.feature()) out.emplace(name, to_feature(feature));
  return out;
}

template <class Message>
const Message& parse(std::string_view serialized, google::protobuf::Arena& arena) {
  auto& message = *google::protobuf::Arena::CreateMessage<Message>(&arena);
  check(serialized.size() <= INT_MAX &&
            message.ParseFromArray(serialized.data(), static_cast<int>(serialized.size())),
        "Could not parse example: ", serialized.size(), " bytes are not a tf.train.",
        message.GetDescriptor()->name());
  return message;
}

}  // namespace

Features parse_example(std::string_view serialized) {
  google::protobuf::Arena arena;
  return to_features(parse<tensorflow::Example>(serialized, arena).features());
}

std::string serialized_example(const Features& features) {
  tensorflow::Example example;
  auto& out = *example.mutable_features()->mutable_feature();
  for (const auto& [name, feature] : features) {
    tensorflow::Feature& to = out[name];
    if (const auto* texts = std::get_if<std::vector<std::string>>(&feature)) {
      for (const std::string& text : *texts) to.mutable_bytes_list()->add_value(text);
      if (texts->empty()) to.mutable_bytes_list();
    } else if (const auto* floats = std::get_if<std::vector<float>>(&feature)) {
      to.mutable_float_list()->mutable_value()->Add(floats->begin(), floats->end());
    } else if (const auto* integers = std::get_if<std::vector<int64_t>>(&feature)) {
      to.mutable_int64_list()->mutable_value()->Add(integers->begin(), integers->end());
    }
  }
  return example.SerializeAsString();
}

std::string example_from_json(const std::string& json) {
  namespace util = google::protobuf::util;
  static util::TypeResolver* const types = util::NewTypeResolverForDescriptorPool(
      "type.googleapis.com", google::protobuf::DescriptorPool::generated_pool());
  std::string out;
  const auto status = util::JsonToBinaryString(
      types, "type.googleapis.com/" + tensorflow::Example::descriptor()->full_name(), json, &out);
  check(status.ok(), "Error while parsing JSON: ", std::string(status.message()));
  return out;
}

SequenceFeatures parse_sequence_example(std::string_view serialized) {
  google::protobuf::Arena arena;
  const auto& example = parse<tensorflow::SequenceExample>(serialized, arena);
  SequenceFeatures out{.context = to_features(example.context())};
  for (const auto& [name, list] : example.feature_lists().feature_list()) {
    std::vector<Feature>& features = out.lists[name];
    for (const tensorflow::Feature& feature : list.feature())
      features.push_back(to_feature(feature));
  }
  return out;
}

}  // namespace leat
