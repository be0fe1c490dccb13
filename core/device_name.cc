#include "core/device_name.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <ostream>

#include "core/error.h"

namespace leat {
namespace {

constexpr std::string_view example = "; a correct name is /job:worker/task:1/device:GPU:0";

std::optional<int> parse_index(std::string_view text, std::string_view whole) {
  if (text == "*") return std::nullopt;
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  check(error == std::errc() && end == text.data() + text.size() && value >= 0, "device name '",
        whole, "': '", text, "' is not a number", example);
  return value;
}

std::string upper(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return std::toupper(c); });
  return out;
}

void parse_type_and_id(std::string_view text, std::string_view whole, DeviceName& out) {
  const size_t colon = text.find(':');
  const std::string_view type = text.substr(0, colon);
  check(!type.empty(), "device name '", whole, "' has an empty device type", example);
  if (type != "*") out.type = upper(type);
  if (colon != std::string_view::npos) out.id = parse_index(text.substr(colon + 1), whole);
}

template <class T>
bool fits(const std::optional<T>& constraint, const std::optional<T>& value) {
  return !constraint || (value && *constraint == *value);
}

template <class T>
bool agree(const std::optional<T>& a, const std::optional<T>& b) {
  return !a || !b || *a == *b;
}

template <class T>
std::optional<T> first(const std::optional<T>& a, const std::optional<T>& b) {
  return a ? a : b;
}

}  // namespace

DeviceName DeviceName::parse(std::string_view text) {
  DeviceName out;
  std::string_view rest = text;
  while (!rest.empty()) {
    if (rest.front() == '/') rest.remove_prefix(1);  // tf.device takes "CPU:0", too
    const size_t end = rest.find('/');
    const std::string_view part = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end);
    const size_t colon = part.find(':');
    const std::string_view key = part.substr(0, colon);
    const std::string_view value =
        colon == std::string_view::npos ? std::string_view{} : part.substr(colon + 1);
    if (key == "job") {
      const bool is_name = !value.empty() &&
                           std::isalpha(static_cast<unsigned char>(value.front())) &&
                           std::all_of(value.begin(), value.end(),
                                       [](unsigned char c) { return std::isalnum(c) || c == '_'; });
      check(value == "*" || is_name, "device name '", text, "': job '", value,
            "' must be a letter followed by letters, digits or '_'", example);
      if (value != "*") out.job = std::string(value);
    } else if (key == "replica") {
      out.replica = parse_index(value, text);
    } else if (key == "task") {
      out.task = parse_index(value, text);
    } else if (key == "device") {
      parse_type_and_id(value, text, out);
    } else if (upper(key) == "CPU" || upper(key) == "GPU") {
      parse_type_and_id(part, text, out);
    } else {
      fail(Code::invalid_argument, "device name '", text, "' has an unknown part '/", part, "'",
           example);
    }
  }
  return out;
}

std::string DeviceName::task_string() const {
  std::string out;
  if (job) out += "/job:" + *job;
  if (replica) out += "/replica:" + std::to_string(*replica);
  if (task) out += "/task:" + std::to_string(*task);
  return out;
}

std::string DeviceName::to_string() const {
  std::string out = task_string();
  if (type || id) out += "/device:" + type.value_or("*") + ":" + (id ? std::to_string(*id) : "*");
  return out;
}

DeviceName DeviceName::task_name() const {
  return {job, replica, task, std::nullopt, std::nullopt};
}

bool DeviceName::matches(const DeviceName& device) const {
  // A device without a replica is replica 0.
  return fits(job, device.job) && (!replica || *replica == device.replica.value_or(0)) &&
         fits(task, device.task) && fits(type, device.type) && fits(id, device.id);
}

bool DeviceName::is_compatible(const DeviceName& other) const {
  return agree(job, other.job) && agree(replica, other.replica) && agree(task, other.task) &&
         agree(type, other.type) && agree(id, other.id);
}

DeviceName DeviceName::merged(const DeviceName& other) const {
  check(is_compatible(other), "devices '", to_string(), "' and '", other.to_string(),
        "' contradict each other");
  return with_defaults(other);
}

DeviceName DeviceName::with_defaults(const DeviceName& defaults) const {
  DeviceName out;
  out.job = first(job, defaults.job);
  out.replica = first(replica, defaults.replica);
  out.task = first(task, defaults.task);
  out.type = first(type, defaults.type);
  out.id = first(id, defaults.id);
  return out;
}

std::ostream& operator<<(std::ostream& out, const DeviceName& name) {
  return out << name.to_string();
}

}  // namespace leat
