// Schemas of ops without any kernel. A client's graph often contains some that no step touches
// (readers, summaries of another program), so Leat must be able to read them; prune() refuses the
// steps that need one, with the reason from the table.
#include "graph/refused_ops.h"

#include <map>
#include <string>
#include <vector>

#include "core/error.h"
#include "graph/op_def.h"

namespace leat {
namespace {

using Strings = std::vector<std::string>;

// Its lines, with those that continue them.
Strings entries(std::string_view table) {
  Strings out;
  while (!table.empty()) {
    const size_t end = table.find('\n');
    const std::string_view line = table.substr(0, end);
    table.remove_prefix(end + 1);
    if (line.starts_with(' ')) {
      out.back() += line.substr(1);
    } else if (!line.empty()) {
      out.emplace_back(line);
    }
  }
  return out;
}

Strings split(std::string_view text, std::string_view separator) {
  Strings out;
  while (!text.empty()) {
    const size_t end = text.find(separator);
    out.emplace_back(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + separator.size());
  }
  return out;
}

// "Name(inputs) -> (outputs) {attributes}"
OpDef read_op(std::string_view entry, const std::string& reason) {
  const auto up_to = [&](std::string_view mark) {
    const size_t end = entry.find(mark);
    check_internal(end != entry.npos, "refused_ops_table: no '", mark, "' in '", entry, "'");
    const std::string_view out = entry.substr(0, end);
    entry.remove_prefix(end + mark.size());
    return out;
  };
  OpDef out;
  out.name = up_to("(");
  out.doc = "Not supported: " + reason + ".";
  out.inputs = split(up_to(") -> ("), ", ");
  out.outputs = split(up_to(") {"), ", ");
  out.attrs = split(up_to("}"), "; ");
  out.is_stateful = true;
  out.is_not_differentiable = true;
  return out;
}

struct Refused {
  std::map<std::string, std::string, std::less<>> reasons;  // by op
  std::vector<Op> ops;
};

// Registered before main() like all other ops.
const Refused& refused() {
  static const Refused all = [] {
    Refused out;
    std::string reason;
    for (const std::string& entry : entries(refused_ops_table)) {
      if (entry.starts_with('#')) {
        reason = entry.substr(2);
        continue;
      }
      OpDef op = read_op(entry, reason);
      out.reasons.emplace(op.name, reason);
      out.ops.emplace_back(std::move(op));
    }
    return out;
  }();
  return all;
}
[[maybe_unused]] const Refused& at_start = refused();

}  // namespace

std::string_view refusal(std::string_view op) {
  const auto found = refused().reasons.find(op);
  return found == refused().reasons.end() ? std::string_view() : found->second;
}

}  // namespace leat
