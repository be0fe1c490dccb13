#include "distributed/quoted.h"

#include <nlohmann/json.hpp>

namespace leat {

std::string quoted(std::string_view text) {
  constexpr size_t most = 100;
  const nlohmann::json start(std::string(text.substr(0, most)));
  const std::string shown =
      start.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);  // may be no UTF-8
  return text.size() > most ? shown.substr(0, shown.size() - 1) + "…\"" : shown;
}

}  // namespace leat
