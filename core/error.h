// Errors: thrown as leat::Error inside, turned into a Status at three borders only (segment
// completion, rendezvous callback, RPC). The codes are those of gRPC and TensorFlow, so nothing
// translates them.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

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
  // The name of the node whose error it is; empty if it is that of none. with_node() sets it and
  // names it in the message: nobody looks for it there.
  std::string node = {};

  bool is_ok() const { return code == Code::ok; }
  std::string to_string() const;  // "OK", or "INVALID_ARGUMENT: message"
};

class Error : public std::runtime_error {
 public:
  // `node`: as in a Status.
  Error(Code code, const std::string& message, std::string node = {})
      : std::runtime_error(message), code_(code), node_(std::move(node)) {}
  explicit Error(const Status& status)
      : std::runtime_error(status.message),
        code_(status.code),
        derived_(status.derived),
        node_(status.node) {}
  Code code() const { return code_; }
  std::string message() const { return what(); }
  const std::string& node() const { return node_; }
  Status status() const { return {code_, what(), derived_, node_}; }

 private:
  Code code_;
  bool derived_ = false;
  std::string node_;
};

// Throws if the status is an error.
void throw_if_error(const Status& status);

// The status of the exception being handled: call it in a catch block at one of the borders. A
// foreign exception keeps its text (bad_alloc: RESOURCE_EXHAUSTED; anything else: INTERNAL).
Status status_of_current_exception();

// "\n\t [[{{node NAME}}]]": how a message names the node of an error. TensorFlow's clients look for
// it.
std::string node_text(std::string_view node);
// An error of this node: sets `node`, and appends node_text() to the message. Left alone if the
// status has a node already.
Status with_node(Status status, std::string_view node);

// Writes one part of a message. Types whose operator<< writes much have an overload that writes
// less (tensor.h).
template <class Part>
void write_in_message(std::ostream& out, const Part& part) {
  out << part;
}

template <class... Parts>
std::string concat(const Parts&... parts) {
  std::ostringstream out;
  (write_in_message(out, parts), ...);
  return out.str();
}

template <class... Parts>
[[noreturn]] void fail(Code code, const Parts&... parts) {
  throw Error(code, concat(parts...));
}

// The same error with other words around it: the node, if there is one, is that of the error.
template <class... Parts>
[[noreturn]] void fail_again(const Error& error, Code code, const Parts&... parts) {
  throw Error(code, concat(parts...), error.node());
}

// As fail(), but an error of this node.
template <class... Parts>
[[noreturn]] void fail_at(std::string_view node, Code code, const Parts&... parts) {
  throw Error(with_node({code, concat(parts...)}, node));
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
