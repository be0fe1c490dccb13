#include "graph/formats/example.h"

#include <cstring>

#include "core/error.h"

namespace leat {
namespace {

// Fields of a message in protobuf's wire format, one by one.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : rest_(bytes) {}

  // Moves to the next field; false at the end.
  bool next() {
    if (rest_.empty()) return false;
    const uint64_t tag = varint();
    number_ = tag >> 3;
    type_ = static_cast<int>(tag & 7);
    switch (type_) {
      case 0:
        value_ = varint();
        break;
      case 1:
        bytes_ = take(8);
        break;
      case 2:
        bytes_ = take(varint());
        break;
      case 5:
        bytes_ = take(4);
        break;
      default:
        fail(Code::invalid_argument, "Could not parse example: a field of wire type ", type_);
    }
    return true;
  }

  bool is_message(uint64_t number) const { return number_ == number && type_ == 2; }
  bool is_varint(uint64_t number) const { return number_ == number && type_ == 0; }
  bool is_float(uint64_t number) const { return number_ == number && type_ == 5; }
  std::string_view bytes() const { return bytes_; }
  uint64_t value() const { return value_; }

  bool is_at_end() const { return rest_.empty(); }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      const auto byte = static_cast<uint8_t>(take(1)[0]);
      if (shift < 64) value |= uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
    fail(Code::invalid_argument, "Could not parse example: a number of more than 10 bytes");
  }
  std::string_view take(uint64_t n) {
    check(n <= rest_.size(), "Could not parse example: it ends within a field");
    const std::string_view out = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return out;
  }

 private:
  std::string_view rest_, bytes_;
  uint64_t number_ = 0, value_ = 0;
  int type_ = 0;
};

float float_of(std::string_view bytes) {
  float value;
  std::memcpy(&value, bytes.data(), sizeof value);  // little-endian, as all our machines
  return value;
}

std::vector<std::string> strings_of(std::string_view list) {
  std::vector<std::string> out;
  for (Fields fields(list); fields.next();) {
    if (fields.is_message(1)) out.emplace_back(fields.bytes());
  }
  return out;
}

// Numbers come packed, or as a field each.
std::vector<float> floats_of(std::string_view list) {
  std::vector<float> out;
  for (Fields fields(list); fields.next();) {
    if (fields.is_float(1)) out.push_back(float_of(fields.bytes()));
    if (!fields.is_message(1)) continue;
    for (Fields packed(fields.bytes()); !packed.is_at_end();)
      out.push_back(float_of(packed.take(sizeof(float))));
  }
  return out;
}

std::vector<int64_t> integers_of(std::string_view list) {
  std::vector<int64_t> out;
  for (Fields fields(list); fields.next();) {
    if (fields.is_varint(1)) out.push_back(static_cast<int64_t>(fields.value()));
    if (!fields.is_message(1)) continue;
    for (Fields packed(fields.bytes()); !packed.is_at_end();)
      out.push_back(static_cast<int64_t>(packed.varint()));
  }
  return out;
}

Feature feature_of(std::string_view message) {
  Feature out;
  for (Fields fields(message); fields.next();) {
    if (fields.is_message(1)) out = strings_of(fields.bytes());
    if (fields.is_message(2)) out = floats_of(fields.bytes());
    if (fields.is_message(3)) out = integers_of(fields.bytes());
  }
  return out;
}

void add_entry(std::string_view entry, Features& features) {
  std::string key;
  Feature feature;
  for (Fields fields(entry); fields.next();) {
    if (fields.is_message(1)) key = fields.bytes();
    if (fields.is_message(2)) feature = feature_of(fields.bytes());
  }
  features[key] = std::move(feature);
}

}  // namespace

Features parse_example(std::string_view serialized) {
  Features features;
  for (Fields example(serialized); example.next();) {
    if (!example.is_message(1)) continue;
    for (Fields list(example.bytes()); list.next();) {
      if (list.is_message(1)) add_entry(list.bytes(), features);
    }
  }
  return features;
}

}  // namespace leat
