// The signature grammar: arguments and attributes. Values are in attr_text.cc.
#include "graph/op_schema.h"

#include <algorithm>
#include <charconv>

namespace leat {
namespace {

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\n'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

bool take(std::string_view& text, std::string_view prefix) {
  if (text.substr(0, prefix.size()) != prefix) return false;
  text = trimmed(text.substr(prefix.size()));
  return true;
}

bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

// "name: rest" → name, and `text` is the rest.
std::string take_name(std::string_view& text, std::string_view whole) {
  const size_t colon = text.find(':');
  check(colon != std::string_view::npos, "'", whole, "' must have the form 'name: type'");
  const std::string_view name = trimmed(text.substr(0, colon));
  check(is_name(name), "'", whole, "': '", name, "' is not a name");
  text = trimmed(text.substr(colon + 1));
  return std::string(name);
}

const AttrDef* find_attr(const std::vector<AttrDef>& attrs, std::string_view name) {
  for (const AttrDef& attr : attrs) {
    if (attr.name == name) return &attr;
  }
  return nullptr;
}

ArgDef parse_arg(std::string_view whole, const std::vector<AttrDef>& attrs) {
  ArgDef arg;
  std::string_view text = trimmed(whole);
  arg.name = take_name(text, whole);
  const auto expect_attr = [&](std::string_view name) -> const AttrDef& {
    const AttrDef* attr = find_attr(attrs, name);
    check(attr != nullptr, "'", whole, "': '", name, "' is neither a dtype nor an attribute");
    return *attr;
  };
  if (const size_t star = text.find('*'); star != std::string_view::npos) {
    arg.number_attr = trimmed(text.substr(0, star));
    check(expect_attr(arg.number_attr).kind == "int", "'", whole, "': attribute '", arg.number_attr,
          "' counts the list, so it must be an int");
    text = trimmed(text.substr(star + 1));
  }
  if (take(text, "Ref")) {
    check(text.size() > 2 && text.front() == '(' && text.back() == ')', "'", whole,
          "': a ref is written Ref(T)");
    text = trimmed(text.substr(1, text.size() - 2));
    arg.is_ref = true;
  }
  if (const AttrDef* attr = find_attr(attrs, text); attr == nullptr) {
    try {
      arg.dtype = dtype_from_name(text);
    } catch (const Error&) {
      expect_attr(text);
    }
  } else if (attr->kind == "type") {
    arg.type_attr = text;
  } else {
    check(attr->kind == "list(type)", "'", whole, "': attribute '", text, "' is a ", attr->kind,
          ", not a type");
    check(arg.number_attr.empty(), "'", whole, "': a list of types cannot have a number attribute");
    arg.type_list_attr = text;
  }
  return arg;
}

bool is_plain_kind(std::string_view text) {
  return text == "string" || text == "int" || text == "float" || text == "bool" || text == "type" ||
         text == "shape" || text == "tensor" || text == "func";
}

// From the front of "float, …" or "numbertype, …".
void take_types(std::string_view& text, AttrDef& attr) {
  const std::string_view word = trimmed(text.substr(0, text.find(',')));
  if (word.ends_with("type")) {
    const std::span<const DType> types = dtype_list(word);
    attr.allowed_types.insert(attr.allowed_types.end(), types.begin(), types.end());
    text.remove_prefix(word.size());
  } else {
    attr.allowed_types.push_back(parse_attr_value("type", text).get<DType>());
  }
}

// The kind, without default or minimum: "int", "{float, double}", "{'SAME', 'VALID'}",
// "realnumbertype", "{numbertype, variant}".
std::string parse_kind(std::string_view text, AttrDef& attr, std::string_view whole) {
  if (is_plain_kind(text)) return std::string(text);
  if (text.front() != '{') {
    std::span<const DType> types;
    try {
      types = dtype_list(text);
    } catch (const Error&) {
      fail(Code::invalid_argument, "'", whole, "': '", text, "' is not a kind of attribute");
    }
    attr.allowed_types.assign(types.begin(), types.end());
    return "type";
  }
  check(text.back() == '}', "'", whole, "': '{' without '}'");
  text = trimmed(text.substr(1, text.size() - 2));
  check(!text.empty(), "'", whole, "' allows no value");
  const bool is_string = text.front() == '\'' || text.front() == '"';
  while (true) {
    if (is_string) {
      attr.allowed_strings.push_back(parse_attr_value("string", text).get<std::string>());
    } else {
      take_types(text, attr);
    }
    text = trimmed(text);
    if (text.empty()) break;
    check(take(text, ","), "'", whole, "': expected ',' or '}' before '", text, "'");
  }
  return is_string ? "string" : "type";
}

// Where the kind ends: at the first '=' or ">=" outside of brackets and quotes.
size_t end_of_kind(std::string_view text) {
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (quote) {
      if (text[i] == quote) quote = 0;
    } else if (text[i] == '\'' || text[i] == '"') {
      quote = text[i];
    } else if (text[i] == '=') {
      return i;
    } else if (text[i] == '>' && i + 1 < text.size() && text[i + 1] == '=') {
      return i;
    }
  }
  return text.size();
}

AttrDef parse_attr(std::string_view whole) {
  AttrDef attr;
  std::string_view text = trimmed(whole);
  attr.name = take_name(text, whole);
  const size_t end = end_of_kind(text);
  std::string_view kind = trimmed(text.substr(0, end));
  text = trimmed(text.substr(end));
  check(!kind.empty(), "'", whole, "' has no kind");
  if (take(kind, "list(")) {
    check(!kind.empty() && kind.back() == ')', "'", whole, "': 'list(' without ')'");
    attr.kind = "list(" + parse_kind(trimmed(kind.substr(0, kind.size() - 1)), attr, whole) + ")";
  } else {
    attr.kind = parse_kind(kind, attr, whole);
  }
  if (take(text, ">=")) {
    check(attr.kind == "int" || attr.kind.starts_with("list("), "'", whole,
          "': only an int or a list has a minimum");
    int64_t minimum = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), minimum);
    check(error == std::errc(), "'", whole, "': expected a number after '>='");
    attr.minimum = minimum;
    text = trimmed(text.substr(rest - text.data()));
  }
  if (take(text, "=")) {
    try {
      attr.default_value = parse_attr_value(attr.kind, text);
    } catch (const Error& error) {
      fail(Code::invalid_argument, "'", whole, "': ", error.message());
    }
    text = trimmed(text);
    const std::string wrong = violation(attr, *attr.default_value);
    check(wrong.empty(), "'", whole, "': the default ", wrong);
  }
  check(text.empty(), "'", whole, "': '", text, "' is left over");
  return attr;
}

template <class T>
std::string joined(const std::vector<T>& items) {
  std::string out;
  for (const T& item : items) {
    if (!out.empty()) out += ", ";
    if constexpr (std::is_same_v<T, DType>) {
      out += dtype_name(item);
    } else {
      out += "'" + item + "'";
    }
  }
  return out;
}

std::string violation_of_element(const AttrDef& attr, const AttrValue& value) {
  if (value.is<DType>() && !attr.allowed_types.empty()) {
    const auto dtype = value.get<DType>();
    if (std::find(attr.allowed_types.begin(), attr.allowed_types.end(), dtype) ==
        attr.allowed_types.end()) {
      return concat(dtype, " is not one of {", joined(attr.allowed_types), "}");
    }
  }
  if (value.is<std::string>() && !attr.allowed_strings.empty()) {
    const auto& text = value.get<std::string>();
    if (std::find(attr.allowed_strings.begin(), attr.allowed_strings.end(), text) ==
        attr.allowed_strings.end()) {
      return concat("'", text, "' is not one of {", joined(attr.allowed_strings), "}");
    }
  }
  return "";
}

std::string describe(const ArgDef& arg) {
  std::string type = !arg.type_list_attr.empty() ? arg.type_list_attr
                     : !arg.type_attr.empty()    ? arg.type_attr
                                                 : std::string(dtype_name(arg.dtype));
  if (arg.is_ref) type = "Ref(" + type + ")";
  if (!arg.number_attr.empty()) type = arg.number_attr + " * " + type;
  return arg.name + ": " + type;
}

void append(std::string& out, const std::vector<ArgDef>& args) {
  out += '(';
  for (size_t i = 0; i < args.size(); ++i) {
    if (i > 0) out += ", ";
    out += describe(args[i]);
  }
  out += ')';
}

}  // namespace

std::string violation(const AttrDef& attr, const AttrValue& value) {
  return std::visit(
      [&]<class T>(const T& held) -> std::string {
        if constexpr (std::is_same_v<T, int64_t>) {
          if (attr.minimum && held < *attr.minimum) {
            return concat(held, " is less than ", *attr.minimum);
          }
        } else if constexpr (std::is_same_v<T, std::vector<DType>> ||
                             std::is_same_v<T, std::vector<std::string>>) {
          for (const auto& element : held) {
            if (std::string wrong = violation_of_element(attr, element); !wrong.empty())
              return wrong;
          }
        }
        if constexpr (requires {
                        typename T::value_type;
                        held.size();
                      } &&
                      !std::is_same_v<T, std::string>) {
          if (attr.minimum && static_cast<int64_t>(held.size()) < *attr.minimum) {
            return concat("has ", held.size(), " elements, fewer than ", *attr.minimum);
          }
        }
        return violation_of_element(attr, value);
      },
      value.variant());
}

OpSchema parse_schema(const std::vector<std::string>& inputs,
                      const std::vector<std::string>& outputs,
                      const std::vector<std::string>& attrs) {
  OpSchema schema;
  for (const std::string& text : attrs) {
    schema.attrs.push_back(parse_attr(text));
    const AttrDef& attr = schema.attrs.back();
    check(find_attr(schema.attrs, attr.name) == &attr, "attribute '", attr.name,
          "' is defined twice");
  }
  for (const std::string& text : inputs) schema.inputs.push_back(parse_arg(text, schema.attrs));
  for (const std::string& text : outputs) schema.outputs.push_back(parse_arg(text, schema.attrs));
  return schema;
}

const AttrDef* OpSchema::attr(std::string_view name) const { return find_attr(attrs, name); }

std::string OpSchema::to_string(std::string_view op) const {
  std::string out(op);
  append(out, inputs);
  out += " -> ";
  append(out, outputs);
  return out;
}

}  // namespace leat
