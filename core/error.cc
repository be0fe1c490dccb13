#include "core/error.h"

#include <array>
#include <new>
#include <stdexcept>

namespace leat {

std::string_view code_name(Code code) {
  constexpr std::array<std::string_view, 17> names = {"OK",
                                                      "CANCELLED",
                                                      "UNKNOWN",
                                                      "INVALID_ARGUMENT",
                                                      "DEADLINE_EXCEEDED",
                                                      "NOT_FOUND",
                                                      "ALREADY_EXISTS",
                                                      "PERMISSION_DENIED",
                                                      "RESOURCE_EXHAUSTED",
                                                      "FAILED_PRECONDITION",
                                                      "ABORTED",
                                                      "OUT_OF_RANGE",
                                                      "UNIMPLEMENTED",
                                                      "INTERNAL",
                                                      "UNAVAILABLE",
                                                      "DATA_LOSS",
                                                      "UNAUTHENTICATED"};
  const auto index = static_cast<size_t>(code);
  return index < names.size() ? names[index] : "UNKNOWN";
}

std::string Status::to_string() const {
  if (is_ok()) return "OK";
  return concat(code_name(code), ": ", message);
}

void throw_if_error(const Status& status) {
  if (!status.is_ok()) throw Error(status);
}

Status status_of_current_exception() {
  try {
    throw;
  } catch (const Error& error) {
    return error.status();
  } catch (const std::bad_alloc&) {
    return {Code::resource_exhausted, "out of memory"};
  } catch (const std::length_error&) {  // a container of more than any machine holds
    return {Code::resource_exhausted, "out of memory"};
  } catch (const std::exception& error) {
    return {Code::internal, error.what()};
  } catch (...) {
    return {Code::internal, "an exception of unknown type"};
  }
}

std::string node_text(std::string_view node) { return concat("\n\t [[{{node ", node, "}}]]"); }

Status with_node(Status status, std::string_view node) {
  if (!status.node.empty()) return status;
  status.node = node;
  status.message += node_text(node);
  return status;
}

}  // namespace leat
