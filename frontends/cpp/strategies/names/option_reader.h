// The options of a strategy, as make_strategy() reads them from text. Not for programs.
#pragma once

#include <charconv>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace leat {

// The options of "name:key=value:key=value", read one by one.
class OptionReader {
 public:
  OptionReader(std::string_view strategy, std::string_view text) : strategy_(strategy) {
    while (!text.empty()) {
      const size_t end = text.find(':');
      const std::string_view pair = text.substr(0, end);
      const size_t equal = pair.find('=');
      check(equal != std::string_view::npos && equal > 0, "strategy '", strategy_, "': '", pair,
            "' is not an option: write ", strategy_, ":option=value:option=value");
      const bool is_new =
          values_.emplace(std::string(pair.substr(0, equal)), std::string(pair.substr(equal + 1)))
              .second;
      check(is_new, "strategy '", strategy_, "': the option '", pair.substr(0, equal),
            "' is given twice");
      text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    }
  }
  const std::map<std::string, std::string>& values() const { return values_; }

  bool has(const std::string& name) const { return values_.contains(name); }
  int64_t integer(const std::string& name, int64_t usual) const {
    return number_of<int64_t>(name, usual, "a whole number");
  }
  double number(const std::string& name, double usual) const {
    return number_of<double>(name, usual, "a number");
  }
  // "GPU:0", …: so many devices; none without the option.
  std::vector<std::string> gpus(const std::string& name) const {
    const int64_t count = integer(name, 0);
    check(count >= 0, where(name), "must not be negative, got ", count);
    std::vector<std::string> out;
    for (int64_t i = 0; i < count; ++i) out.push_back(concat("GPU:", i));
    return out;
  }
  bool boolean(const std::string& name, bool usual) const {
    const auto found = values_.find(name);
    if (found == values_.end()) return usual;
    check(found->second == "true" || found->second == "false", where(name), "needs true or false, ",
          "got '", found->second, "'");
    return found->second == "true";
  }
  std::string text(const std::string& name, const std::string& usual) const {
    const auto found = values_.find(name);
    return found == values_.end() ? usual : found->second;
  }
  std::string where(const std::string& name) const {
    return concat("strategy '", strategy_, "': the option '", name, "' ");
  }

 private:
  template <class Number>
  Number number_of(const std::string& name, Number usual, const char* what) const {
    const auto found = values_.find(name);
    if (found == values_.end()) return usual;
    const std::string& text = found->second;
    Number out{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    check(error == std::errc() && end == text.data() + text.size() && !text.empty(), where(name),
          "needs ", what, ", got '", text, "'");
    return out;
  }

  const std::string strategy_;
  std::map<std::string, std::string> values_;
};

}  // namespace leat
