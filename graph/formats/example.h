// tf.train.Example records: named features, each a list of strings, floats or integers; and
// tf.train.SequenceExample records, which have named lists of features, too.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace leat {

// The values of one feature; std::monostate if it has no kind: then it counts as missing.
using Feature = std::variant<std::monostate, std::vector<std::string>, std::vector<float>,
                             std::vector<int64_t>>;
using Features = std::map<std::string, Feature, std::less<>>;

// Reads a serialized Example (proto/example.proto). INVALID_ARGUMENT if the bytes are not one.
Features parse_example(std::string_view serialized);

// The reverse: a serialized Example. Features without a kind are left without one.
std::string serialized_example(const Features& features);

// Converts JSON to a serialized Example, by protobuf's rules. INVALID_ARGUMENT, with the position,
// if it is malformed.
std::string example_from_json(const std::string& json);

struct SequenceFeatures {
  Features context;
  std::map<std::string, std::vector<Feature>, std::less<>> lists;  // a feature per step
};

// Reads a serialized SequenceExample. INVALID_ARGUMENT if the bytes are not one.
SequenceFeatures parse_sequence_example(std::string_view serialized);

}  // namespace leat
