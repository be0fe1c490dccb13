// Errors: thrown as leat::Error inside, turned into a Status at three borders only (segment
// completion, rendezvous callback, RPC). The codes are those of gRPC and TensorFlow, so nothing
// translates them.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace leat {

enum class Code {
  ok = 0,
  cancelled = 1,
  unknown = 2,
  invalid_argument = 3,
  deadline_exceeded = 4,
  not_found = 5,
  already_exists = 6,
  permission_denied = 7,
  resource_exhausted = 8,
  failed_precondition = 9,
  aborted = 10,
  out_of_range = 11,
  unimplemented = 12,
  internal = 13,
  unavailable = 14,
  data_loss = 15,
  unauthenticated = 16,
};

// "INVALID_ARGUMENT" and so on, as gRPC spells them.
std::string_view code_name(Code code);
inline std::ostream& operator<<(std::ostream& out, Code code) { return out << code_name(code); }

// An outcome that is passed instead of thrown: at the three borders, and in callbacks. `derived`
// marks an error that only follows from another one (a cancelled neighbour). The root cause is
// reported; derived errors are hidden behind it.
struct Status {
  Code code = Code::ok;
  std::string message;
  bool derived = false;

  bool is_ok() const { return code == Code::ok; }
  std::string to_string() const;  // "OK", or "INVALID_ARGUMENT: message"
};

class Error : public std::runtime_error {
 public:
  Error(Code code, const std::string& message) : std::runtime_error(message), code_(code) {}
  explicit Error(const Status& status)
      : std::runtime_error(status.message), code_(status.code), derived_(status.derived) {}
  Code code() const { return code_; }
  std::string message() const { return what(); }
  Status status() const { return {code_, what(), derived_}; }

 private:
  Code code_;
  bool derived_ = false;
};

// Throws if the status is an error.
void throw_if_error(const Status& status);

// The status of the exception being handled: call it in a catch block at one of the borders. A
// foreign exception keeps its text (bad_alloc: RESOURCE_EXHAUSTED; anything else: INTERNAL).
Status status_of_current_exception();

// Appends the form that TensorFlow clients look for: "\n\t [[{{node NAME}}]]". Leaves a message
// that names a node unchanged.
std::string with_node(std::string message, std::string_view node_name);

template <class... Parts>
std::string concat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

template <class... Parts>
[[noreturn]] void fail(Code code, const Parts&... parts) {
  throw Error(code, concat(parts...));
}

// For the caller's mistakes: INVALID_ARGUMENT with the parts joined. Parts are formatted only on
// failure.
template <class... Parts>
void check(bool condition, const Parts&... parts) {
  if (!condition) [[unlikely]]
    fail(Code::invalid_argument, parts...);
}

// For our own mistakes: INTERNAL.
template <class... Parts>
void check_internal(bool condition, const Parts&... parts) {
  if (!condition) [[unlikely]]
    fail(Code::internal, parts...);
}

}  // namespace leat
