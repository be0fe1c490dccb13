// tf.train.Example records: named features, each a list of strings, floats or integers.
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

// Reads a serialized Example (proto/example.proto). INVALID_ARGUMENT if the bytes are none.
Features parse_example(std::string_view serialized);

}  // namespace leat
