// JSON values in messages.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace leat {

// For messages: also of strings that are no UTF-8.
inline std::string text_of(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Quoted, for messages: what does not print is escaped, and the end of a long text left out.
inline std::string quoted(std::string_view text) {
  constexpr size_t most = 100;
  const std::string shown = text_of(std::string(text.substr(0, most)));
  return text.size() > most ? shown.substr(0, shown.size() - 1) + "…\"" : shown;
}

}  // namespace leat
