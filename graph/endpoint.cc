#include "graph/endpoint.h"

#include <charconv>

namespace leat {

std::optional<Endpoint> Endpoint::parse(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return Endpoint{text, 0};
  Endpoint out{text.substr(0, colon), 0};
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, out.index);
  if (error != std::errc() || rest != end || out.index < 0 || colon == 0) return std::nullopt;
  return out;
}

std::string Endpoint::complete(std::string text) {
  if (text.find(':') == std::string::npos) text += ":0";
  return text;
}

std::string Endpoint::short_name() const { return index == 0 ? std::string(node) : full_name(); }

std::string Endpoint::full_name() const {
  std::string out(node);
  out += ':';
  return out += std::to_string(index);
}

}  // namespace leat
