// Attribute values as text, in schemas and in graph dumps.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/visit_dtype.h"
#include "graph/op_schema.h"

namespace leat {
namespace {

void skip_space(std::string_view& text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
}

bool take(std::string_view& text, char c) {
  skip_space(text);
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

[[noreturn]] void fail_at(std::string_view text, std::string_view expected) {
  text = text.substr(0, text.find('\n'));
  if (text.empty()) fail(Code::invalid_argument, "expected ", expected, " at the end");
  fail(Code::invalid_argument, "expected ", expected, " before '", text.substr(0, 20), "'");
}

std::string_view take_word(std::string_view& text) {
  skip_space(text);
  size_t size = 0;
  while (size < text.size() &&
         (std::isalnum(static_cast<unsigned char>(text[size])) || text[size] == '_'))
    ++size;
  const std::string_view word = text.substr(0, size);
  text.remove_prefix(size);
  return word;
}

std::string parse_string(std::string_view& text) {
  skip_space(text);
  if (text.empty() || (text.front() != '\'' && text.front() != '"'))
    fail_at(text, "a quoted string");
  const char quote = text.front();
  std::string out;
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == quote) {
      text.remove_prefix(i + 1);
      return out;
    }
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    const char escaped = text[++i];
    if (escaped == 'x' && i + 2 < text.size()) {
      int byte = 0;
      std::from_chars(text.data() + i + 1, text.data() + i + 3, byte, 16);
      out += static_cast<char>(byte);
      i += 2;
    } else {
      out += escaped == 'n' ? '\n' : escaped == 't' ? '\t' : escaped;
    }
  }
  fail(Code::invalid_argument, "a string has no closing ", quote);
}

std::string print_string(std::string_view value) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += "\\x";
      out += digits[byte >> 4];
      out += digits[byte & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

template <class T>
T parse_number(std::string_view& text, std::string_view expected) {
  skip_space(text);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) fail_at(text, expected);
  text.remove_prefix(end - text.data());
  return value;
}

// The shortest text that gives the same number again, and that cannot be taken for an int.
template <class T>
std::string print_float(T value) {
  char buffer[32];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value);
  std::string out(buffer, end);
  if (std::isfinite(value) && out.find_first_of(".e") == std::string::npos) out += ".0";
  return out;
}

bool parse_bool(std::string_view& text) {
  const std::string_view before = text;
  const std::string_view word = take_word(text);
  if (word != "true" && word != "false" && word != "True" && word != "False") {
    fail_at(before, "true or false");
  }
  return word == "true" || word == "True";
}

DType parse_type(std::string_view& text) {
  const std::string_view before = text;
  std::string name(take_word(text));
  if (name.starts_with("DT_")) {
    name.erase(0, 3);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return std::tolower(c); });
  }
  if (name.empty()) fail_at(before, "a dtype");
  return dtype_from_name(name);
}

Shape parse_shape(std::string_view& text) {
  skip_space(text);
  if (text.starts_with("<unknown>")) {
    text.remove_prefix(9);
    return Shape::unknown();
  }
  if (!take(text, '[')) fail_at(text, "a shape such as [2,?] or <unknown>");
  Shape out;
  if (take(text, ']')) return out;
  do {
    out.push_back(take(text, '?') ? any : parse_number<int64_t>(text, "an extent"));
  } while (take(text, ','));
  if (!take(text, ']')) fail_at(text, "',' or ']'");
  return out;
}

template <class T>
T parse_element(std::string_view& text) {
  if constexpr (std::is_same_v<T, std::string>) {
    return parse_string(text);
  } else if constexpr (std::is_same_v<T, bool>) {
    return parse_bool(text);
  } else if constexpr (is_complex_type<T>) {
    if (!take(text, '(')) fail_at(text, "'(' and two numbers");
    const auto re = parse_number<typename T::value_type>(text, "a number");
    if (!take(text, ',')) fail_at(text, "',' and the imaginary part");
    const auto im = parse_number<typename T::value_type>(text, "a number");
    if (!take(text, ')')) fail_at(text, "')'");
    return T(re, im);
  } else if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>) {
    return T(parse_number<float>(text, "a number"));
  } else {
    return parse_number<T>(text, "a number");
  }
}

template <class T>
std::string print_element(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return print_string(value);
  } else if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>) {
    return print_float(static_cast<float>(value));
  } else if constexpr (is_complex_type<T>) {
    return "(" + print_float(value.real()) + ", " + print_float(value.imag()) + ")";
  } else if constexpr (std::is_floating_point_v<T>) {
    return print_float(value);
  } else {
    return std::to_string(value);
  }
}

// float[2] [1.0, 2.0]
Tensor parse_tensor(std::string_view& text) {
  const DType dtype = parse_type(text);
  Tensor out(dtype, parse_shape(text));
  if (!take(text, '[')) fail_at(text, "'[' and the elements");
  visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
    for (int64_t i = 0; i < out.elements(); ++i) {
      if (i > 0 && !take(text, ',')) fail_at(text, "',' and another element");
      out.data<T>()[i] = parse_element<T>(text);
    }
  });
  if (!take(text, ']')) fail_at(text, "']'");
  return out;
}

std::string print_tensor(const Tensor& tensor, int64_t limit) {
  std::string out = concat(tensor.dtype(), tensor.shape(), " [");
  visit_dtype(tensor.dtype(), [&]<class T>(TypeTag<T>) {
    for (int64_t i = 0; i < std::min(limit, tensor.elements()); ++i) {
      if (i > 0) out += ", ";
      out += print_element(tensor.data<T>()[i]);
    }
    if (limit < tensor.elements()) out += ", …";
  });
  return out + "]";
}

template <class T>
T parse_one(std::string_view& text) {
  if constexpr (std::is_same_v<T, DType>) {
    return parse_type(text);
  } else if constexpr (std::is_same_v<T, Shape>) {
    return parse_shape(text);
  } else if constexpr (std::is_same_v<T, Tensor>) {
    return parse_tensor(text);
  } else if constexpr (std::is_same_v<T, FunctionRef>) {
    const std::string_view name = take_word(text);
    if (name.empty()) fail_at(text, "the name of a function");
    if (take(text, '(') && !take(text, ')')) fail_at(text, "')'");
    return {std::string(name), nullptr};
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return parse_number<int64_t>(text, "an int");
  } else {
    return parse_element<T>(text);
  }
}

template <class T>
AttrValue parse_list(std::string_view& text) {
  std::vector<T> out;
  const bool is_braced = take(text, '{');
  if (!is_braced && !take(text, '[')) {
    if constexpr (std::is_same_v<T, DType>) return std::vector<DType>{parse_type(text)};
    fail_at(text, "a list such as [1, 2]");
  }
  const char close = is_braced ? '}' : ']';
  if (take(text, close)) return out;
  do {
    out.push_back(parse_one<T>(text));
  } while (take(text, ','));
  if (!take(text, close)) fail_at(text, std::string("',' or '") + close + "'");
  return out;
}

template <class T>
AttrValue parse_as(bool is_list, std::string_view& text) {
  if (is_list) return parse_list<T>(text);
  return parse_one<T>(text);
}

std::string print_one(std::monostate, int64_t) { return "<none>"; }
std::string print_one(DType value, int64_t) { return std::string(dtype_name(value)); }
std::string print_one(const Shape& value, int64_t) { return value.to_string(); }
std::string print_one(const Tensor& value, int64_t limit) { return print_tensor(value, limit); }
std::string print_one(const FunctionRef& value, int64_t) { return value.name + "()"; }
template <class T>
std::string print_one(const T& value, int64_t) {
  return print_element(value);
}
template <class T>
std::string print_one(const std::vector<T>& values, int64_t limit) {
  std::string out = "{";
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += ", ";
    const T value = values[i];  // a copy: vector<bool> has no references
    out += print_one(value, limit);
  }
  return out + "}";
}

}  // namespace

AttrValue parse_attr_value(std::string_view kind, std::string_view& text) {
  const bool is_list = kind.starts_with("list(");
  if (is_list) kind = kind.substr(5, kind.size() - 6);
  if (kind == "string") return parse_as<std::string>(is_list, text);
  if (kind == "int") return parse_as<int64_t>(is_list, text);
  if (kind == "float") return parse_as<float>(is_list, text);
  if (kind == "bool") return parse_as<bool>(is_list, text);
  if (kind == "type") return parse_as<DType>(is_list, text);
  if (kind == "shape") return parse_as<Shape>(is_list, text);
  if (kind == "tensor") return parse_as<Tensor>(is_list, text);
  if (kind == "func") return parse_as<FunctionRef>(is_list, text);
  fail(Code::invalid_argument, "'", kind, "' is not a kind of attribute");
}

std::string print_attr_value(const AttrValue& value, int64_t elements) {
  return std::visit([&](const auto& held) { return print_one(held, elements); }, value.variant());
}

}  // namespace leat
