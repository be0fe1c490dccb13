#include "graph/signature.h"

#include <algorithm>
#include <utility>

#include "graph/near_misses.h"
#include "graph/op_schema.h"

namespace leat {
namespace {

// By Cast.
bool are_convertible(DType a, DType b) {
  const auto is_number = [](DType dtype) {
    return is_floating(dtype) || is_integer(dtype) || is_complex(dtype) || dtype == DType::boolean;
  };
  return is_number(a) && is_number(b);
}

int length_of(const ArgDef& arg, const AttrMap& attrs) {
  if (!arg.number_attr.empty()) {
    const auto found = attrs.find(arg.number_attr);
    return found == attrs.end() ? -1 : static_cast<int>(found->second.get<int64_t>());
  }
  if (!arg.type_list_attr.empty()) {
    const auto found = attrs.find(arg.type_list_attr);
    return found == attrs.end() ? -1
                                : static_cast<int>(found->second.get<std::vector<DType>>().size());
  }
  return 1;
}

const std::string& length_attr(const ArgDef& arg) {
  return arg.number_attr.empty() ? arg.type_list_attr : arg.number_attr;
}

// An int where a float is asked for, an empty list of whatever kind, and one dtype where a list of
// them is asked for (the invalid one: none) are as good as the kind that is asked for.
AttrValue converted(AttrValue value, const std::string& kind) {
  if (value.kind() == kind) return value;
  if (kind == "float" && value.is<int64_t>()) return static_cast<float>(value.get<int64_t>());
  if (kind == "list(type)" && value.is<DType>()) {
    const auto dtype = value.get<DType>();
    return dtype == DType::invalid ? std::vector<DType>{} : std::vector<DType>{dtype};
  }
  if (kind == "list(float)" && value.is<std::vector<int64_t>>()) {
    const auto& ints = value.get<std::vector<int64_t>>();
    return std::vector<float>(ints.begin(), ints.end());
  }
  if (kind.starts_with("list(") && value.kind().starts_with("list(") &&
      print_attr_value(value) == "{}") {
    std::string_view empty = "{}";
    return parse_attr_value(kind, empty);
  }
  return value;
}

void check_attrs(Node& node) {
  const OpSchema& schema = node.op->schema;
  std::vector<std::pair<std::string, AttrValue>> changed;
  for (const auto& [name, given] : node.attrs) {
    if (name.starts_with('_')) continue;  // free-form
    const AttrDef* attr = schema.attr(name);
    if (attr == nullptr) {
      std::vector<std::string_view> names;
      for (const AttrDef& known : schema.attrs) names.push_back(known.name);
      fail(Code::invalid_argument, "the op has no attribute '", name, "'",
           did_you_mean(name, names));
    }
    const AttrValue* value = &given;
    if (given.kind() != attr->kind) {
      value = &changed.emplace_back(name, converted(given, attr->kind)).second;
      if (value->kind() != attr->kind) {
        fail(Code::invalid_argument, "attribute '", name, "' must be of kind ", attr->kind,
             ", got the ", value->kind(), " ", print_attr_value(*value, 8));
      }
    }
    const std::string wrong = violation(*attr, *value);
    if (!wrong.empty()) fail(Code::invalid_argument, "attribute '", name, "': ", wrong);
  }
  for (auto& [name, value] : changed) node.attrs.insert_or_assign(name, std::move(value));
}

std::string signature_of(const OpDef& op) { return op.schema.to_string(op.name); }

// Sets the attrs that hold the lengths of lists, if the number of inputs determines them.
void resolve_lengths(Node& node) {
  const auto given = static_cast<int>(node.inputs.size());
  int fixed = 0;
  int repeats = 0;  // how many lists have the unknown length
  std::string unknown;
  const ArgDef* list = nullptr;
  for (const ArgDef& arg : node.op->schema.inputs) {
    const int length = length_of(arg, node.attrs);
    if (length >= 0) {
      fixed += length;
      continue;
    }
    check(unknown.empty() || unknown == length_attr(arg), "attribute '", unknown, "' or '",
          length_attr(arg), "' must be given: the number of inputs does not determine both");
    unknown = length_attr(arg);
    if (repeats++ == 0) list = &arg;
  }
  const auto plural = [](int n, std::string_view what) {
    return concat(n, " ", what, n == 1 ? "" : "s");
  };
  if (repeats == 0) {
    if (given == fixed) return;
    fail(Code::invalid_argument, "takes ", plural(fixed, "input"), ", got ", given, ": ",
         signature_of(*node.op));
  }
  if (given < fixed || (given - fixed) % repeats != 0) {
    fail(Code::invalid_argument, "takes ", plural(fixed, "input"), " and ",
         repeats == 1 ? "a list" : concat(repeats, " lists of equal length"), ", got ", given, ": ",
         signature_of(*node.op));
  }
  if (!list->number_attr.empty()) {
    const AttrValue length = (given - fixed) / repeats;
    const AttrDef& attr = *node.op->schema.attr(unknown);
    const std::string wrong = violation(attr, length);
    check(wrong.empty(), "the list '", list->name, "' needs at least ", *attr.minimum,
          " inputs, got ", (given - fixed) / repeats);
    node.attrs.emplace(unknown, length);
  } else {
    check(repeats == 1, "attribute '", unknown, "' must be given");
    int begin = 0;
    for (const ArgDef* arg = node.op->schema.inputs.data(); arg != list; ++arg)
      begin += length_of(*arg, node.attrs);
    std::vector<DType> dtypes;
    for (int i = begin; i < begin + given - fixed; ++i) dtypes.push_back(node.inputs[i].dtype());
    node.attrs.emplace(unknown, std::move(dtypes));
  }
}

void check_inputs(Node& node) {
  const OpDef& op = *node.op;
  std::map<std::string_view, std::string> reasons;  // attr → the input that set it
  for (const ArgRange& range : arg_ranges(op.schema.inputs, node.attrs)) {
    const ArgDef& arg = *range.arg;
    for (int i = range.begin; i < range.end; ++i) {
      const Output input = node.inputs[i];
      const auto name = [&] {
        return arg.is_list() ? concat(arg.name, "[", i - range.begin, "]") : arg.name;
      };
      const DType dtype = input.dtype();
      if (arg.is_ref && !input.is_ref()) {
        fail(Code::invalid_argument, "input ", name(),
             " is updated in place, so it must be a variable; '", input.name(), "' is not");
      }
      if (!arg.type_list_attr.empty()) {
        const DType wanted =
            node.attrs.at(arg.type_list_attr).get<std::vector<DType>>()[i - range.begin];
        if (dtype == wanted) continue;
        fail(Code::invalid_argument, "input ", name(), " must be ", wanted, " (attribute '",
             arg.type_list_attr, "'), got ", dtype);
      } else if (arg.type_attr.empty()) {
        if (dtype == arg.dtype) continue;
        fail(Code::invalid_argument, "input ", name(), " must be ", arg.dtype, ", got ", dtype);
      } else if (const auto found = node.attrs.find(arg.type_attr); found != node.attrs.end()) {
        const auto wanted = found->second.get<DType>();
        if (dtype == wanted) continue;
        const auto reason = reasons.find(arg.type_attr);
        if (reason == reasons.end())
          fail(Code::invalid_argument, "input ", name(), " must be ", wanted, " like attribute '",
               arg.type_attr, "', got ", dtype);
        fail(Code::invalid_argument, "input ", name(), " must be ", wanted, " like input ",
             reason->second, ", got ", dtype,
             are_convertible(dtype, wanted) ? ": convert one with cast()" : "");
      } else {
        const std::string wrong = violation(*op.schema.attr(arg.type_attr), dtype);
        if (!wrong.empty()) fail(Code::invalid_argument, "input ", name(), ": ", wrong);
        node.attrs.emplace(arg.type_attr, dtype);
        reasons.emplace(arg.type_attr, name());
      }
    }
    if (!arg.type_list_attr.empty()) {
      const std::string wrong =
          violation(*op.schema.attr(arg.type_list_attr), node.attrs.at(arg.type_list_attr));
      check(wrong.empty(), "list ", arg.name, ": ", wrong);
    }
  }
}

// Also of list lengths that have one: "N: int >= 1" has none and follows from the inputs.
void fill_defaults(Node& node) {
  std::string missing;
  for (const AttrDef& attr : node.op->schema.attrs) {
    if (node.attrs.contains(attr.name)) continue;
    if (attr.default_value) {
      node.attrs.emplace(attr.name, *attr.default_value);
    } else {
      missing += concat(missing.empty() ? "" : ", ", "'", attr.name, "' (", attr.kind, ")");
    }
  }
  check(missing.empty(), "attributes without a default are missing: ", missing);
}

void make_outputs(Node& node) {
  std::vector<OutputSpec> outputs;
  for (const ArgRange& range : arg_ranges(node.op->schema.outputs, node.attrs)) {
    const ArgDef& arg = *range.arg;
    for (int i = range.begin; i < range.end; ++i) {
      OutputSpec& out = outputs.emplace_back();
      out.is_ref = arg.is_ref;
      out.dtype = !arg.type_list_attr.empty()
                      ? node.attrs.at(arg.type_list_attr).get<std::vector<DType>>()[i - range.begin]
                  : !arg.type_attr.empty() ? node.attrs.at(arg.type_attr).get<DType>()
                                           : arg.dtype;
    }
  }
  node.outputs = std::move(outputs);
}

}  // namespace

void ArgRanges::Iterator::find_end() {
  if (range_.arg != last_) range_.end += std::max(0, length_of(*range_.arg, attrs_));
}

std::string input_name(const OpDef& op, const AttrMap& attrs, int input) {
  for (const ArgDef& arg : op.schema.inputs) {
    if (length_of(arg, attrs) < 0) return concat("#", input);
  }
  for (const ArgRange& range : arg_ranges(op.schema.inputs, attrs)) {
    if (input < range.begin || input >= range.end) continue;
    return range.arg->is_list() ? concat(range.arg->name, "[", input - range.begin, "]")
                                : range.arg->name;
  }
  return concat("#", input);
}

void resolve_signature(Node& node) {
  check_attrs(node);
  resolve_lengths(node);
  check_inputs(node);
  fill_defaults(node);
  make_outputs(node);
}

bool follows_from_inputs(const OpSchema& schema, std::string_view attr) {
  return std::any_of(schema.inputs.begin(), schema.inputs.end(), [&](const ArgDef& arg) {
    return arg.type_attr == attr || arg.number_attr == attr || arg.type_list_attr == attr;
  });
}

}  // namespace leat
