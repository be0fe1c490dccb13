#include "tools/leat/ops_text.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <vector>

#include "core/error.h"
#include "core/text_table.h"
#include "graph/near_misses.h"
#include "graph/op_def.h"
#include "graph/op_schema.h"
#include "graph/refused_ops.h"

namespace leat {
namespace {

// Ops that passes make have names that begin with '_'; no user adds them.
bool is_for_users(const OpDef& op) { return op.name.front() != '_'; }
bool is_runnable(const OpDef& op) { return refusal(op.name).empty(); }

std::string first_sentence(std::string_view doc) {
  size_t end = 0;
  while ((end = doc.find('.', end)) != doc.npos) {
    if (end + 1 == doc.size() || doc[end + 1] == ' ' || doc[end + 1] == '\n') break;
    ++end;
  }
  std::string out(doc.substr(0, end));
  std::replace(out.begin(), out.end(), '\n', ' ');
  return out;
}

std::string devices_of(const OpDef& op) {
  std::set<std::string> names;
  for (const Kernel& kernel : op.kernels)
    names.insert(kernel.device == DeviceType::cpu ? "CPU" : "GPU");
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : " ") + name;
  return out;
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

std::string gradient_of(const OpDef& op) {
  if (op.gradient) return "yes";
  return op.is_not_differentiable ? "none: gradients() stops here" : "none: gradients() fails here";
}

std::string text_of(const Tensor& tensor) { return print_attr_value(AttrValue(tensor), 8); }

std::string text_of(const Example& example) {
  std::string out;
  for (const Tensor& input : example.inputs) out += concat("  ", text_of(input), "\n");
  for (const auto& [name, value] : example.attrs)
    out += concat("  ", name, " = ", print_attr_value(value, 8), "\n");
  for (const Tensor& output : example.outputs) out += concat("  → ", text_of(output), "\n");
  return out;
}

// "|" ends a cell of a table.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

}  // namespace

std::string list_of_ops(std::string_view filter) {
  const std::string wanted = lower(filter);
  std::vector<std::vector<std::string>> rows = {{"op", "devices", "what it gives"}};
  for (const OpDef* op : all_ops()) {
    if (!is_for_users(*op) || !is_runnable(*op)) continue;
    if (lower(op->name + " " + op->doc).find(wanted) == std::string::npos) continue;
    rows.push_back({op->name, devices_of(*op), first_sentence(op->doc)});
  }
  if (rows.size() == 1)
    fail(Code::not_found, "no op has \"", filter, "\" in its name or description");
  return aligned(rows);
}

std::string description_of_op(std::string_view name) {
  const OpDef* op = find_op(name);
  if (op == nullptr) {
    std::vector<std::string_view> names;
    for (const OpDef* candidate : all_ops()) names.push_back(candidate->name);
    fail(Code::not_found, "there is no op \"", name, "\"", did_you_mean(name, names));
  }
  std::string out = op->schema.to_string(op->name) + "\n";
  if (is_runnable(*op)) out += "\n" + op->doc + "\n";
  if (!op->attrs.empty()) out += "\nattributes\n";
  for (const std::string& attr : op->attrs) out += "  " + attr + "\n";
  if (!is_runnable(*op))
    return out +
           concat("\nA graph may contain this op, but no step can run it: ", refusal(op->name),
                  "\n");
  out += concat("\nkernels   ",
                op->kernels.empty() ? "none: a pass replaces it" : describe_kernels(*op),
                "\ngradient  ", gradient_of(*op), "\n");
  if (op->is_stateful)
    out += "state     runs in every step that needs it, is never folded or merged\n";
  if (!op->examples.empty()) out += "\nexample\n" + text_of(op->examples.front());
  return out;
}

std::string page_of_ops() {
  std::string out =
      "# Ops\n\nMade by `leat ops --markdown`. `leat ops NAME` describes one: its attributes, "
      "kernels, gradient and an example.\n\n| op | what it gives |\n|---|---|\n";
  for (const OpDef* op : all_ops()) {
    if (!is_for_users(*op) || !is_runnable(*op)) continue;
    out += concat("| `", cell(op->schema.to_string(op->name)), "` | ",
                  cell(first_sentence(op->doc)), " |\n");
  }
  return out;
}

}  // namespace leat
