#include "tools/leat/failure_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace leat {

size_t root_cause(const std::vector<Failure>& failures, std::chrono::duration<double> close) {
  std::chrono::duration<double> first = std::chrono::duration<double>::max();
  for (const Failure& failure : failures) {
    if (!failure.was_stopped) first = std::min(first, failure.after);
  }
  const auto rank = [&](const Failure& failure) {
    const bool is_early = !failure.was_stopped && failure.after - first <= close;
    return std::tuple(!is_early, failure.ending.signal == 0, !failure.is_task, failure.after);
  };
  size_t best = 0;
  for (size_t i = 1; i < failures.size(); ++i) {
    if (rank(failures[i]) < rank(failures[best])) best = i;
  }
  return best;
}

std::string format_failure_report(const std::vector<Failure>& failures) {
  if (failures.empty()) return "";
  const size_t root = root_cause(failures);
  const Failure& cause = failures[root];
  std::string out = fmt::format("leat: {} {}: {}, {:.1f} s after the start.\n", cause.label,
                                cause.what, cause.ending.describe(), cause.after.count());
  if (cause.last_lines.empty()) {
    out += "      It wrote nothing.\n";
  } else {
    out += fmt::format("      Its last {}:\n", cause.last_lines.size() == 1 ? "line" : "lines");
    for (const std::string& line : cause.last_lines) out += "        " + line + "\n";
  }
  if (!cause.log_problem.empty()) {
    out += "      The rest is lost: its log could not be written: " + cause.log_problem + "\n";
  } else if (!cause.log.empty()) {
    out += "      All of it: " + cause.log + "\n";
  }

  std::vector<const Failure*> others;
  std::string stopped;
  for (size_t i = 0; i < failures.size(); ++i) {
    if (i == root) continue;
    if (failures[i].was_stopped) {
      stopped += (stopped.empty() ? "" : ", ") + failures[i].label;
    } else {
      others.push_back(&failures[i]);
    }
  }
  std::sort(others.begin(), others.end(),
            [](const Failure* a, const Failure* b) { return a->after < b->after; });
  for (const Failure* other : others) {
    out += fmt::format("      {:.1f} s later {} {}: {}", (other->after - cause.after).count(),
                       other->label, other->what, other->ending.describe());
    if (!other->last_lines.empty()) {
      const bool is_same =
          !cause.last_lines.empty() && other->last_lines.back() == cause.last_lines.back();
      out += is_same ? ", with the same last line" : ": " + other->last_lines.back();
    }
    out += "\n";
  }
  if (!stopped.empty()) out += "      Stopped because of it: " + stopped + "\n";
  return out;
}

}  // namespace leat
