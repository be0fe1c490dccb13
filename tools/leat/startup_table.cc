#include "tools/leat/startup_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/text_table.h"
#include "distributed/cluster/host_owner.h"

namespace leat {
namespace {

constexpr const char* unresolved = "unresolved";

}  // namespace

std::string format_startup_table(const std::vector<StartupRow>& rows) {
  std::vector<std::vector<std::string>> lines{
      {"task", "address", "pid", "state", "after", "detail"}};
  for (const StartupRow& row : rows) {
    lines.push_back(
        {row.task.to_string(), row.address, row.pid == 0 ? "-" : std::to_string(row.pid), row.state,
         row.state.empty() ? "" : fmt::format("{:.1f}s", row.after.count()), row.detail});
  }
  return aligned(lines, /*right_aligned=*/4);
}

StartupTable::StartupTable(const ClusterSpec& cluster, const std::optional<TaskName>& only,
                           Clock::time_point start)
    : start_(start) {
  for (const TaskName& task : cluster.tasks()) {
    rows_.push_back({.task = task,
                     .address = cluster.address(task),
                     .state = !only           ? unresolved
                              : task == *only ? "starting"
                                              : ""});
  }
}

bool StartupTable::find_hosts() {
  bool is_any_unknown = false;
  for (StartupRow& row : rows_) {
    if (row.state != unresolved) continue;
    const std::string host = HostPort::parse(row.address).host;
    const HostOwner owner = owner_of_host(host);
    if (owner != HostOwner::nobody) {
      row.unknown_since.reset();
    } else if (!row.unknown_since) {
      row.unknown_since = Clock::now();
    }
    if (owner == HostOwner::unknown || owner == HostOwner::nobody) {
      is_any_unknown = true;
      set_state(row, unresolved, host + " cannot be resolved");
    } else {
      set_state(row, owner == HostOwner::ours ? "starting" : "", "");
    }
  }
  return !is_any_unknown;
}

StartupRow& StartupTable::row(const TaskName& task) {
  const auto row =
      std::find_if(rows_.begin(), rows_.end(), [&](const StartupRow& r) { return r.task == task; });
  check_internal(row != rows_.end(), task, " has no row");
  return *row;
}

void StartupTable::set_state(StartupRow& row, const std::string& state, const std::string& detail) {
  if (row.state != state) row.after = Clock::now() - start_;
  row.state = state;
  row.detail = detail;
}

bool StartupTable::are_ours(std::string_view state) const {
  return std::all_of(rows_.begin(), rows_.end(),
                     [&](const StartupRow& row) { return row.pid == 0 || row.state == state; });
}

std::vector<std::string> StartupTable::missing() const {
  std::vector<std::string> out;
  for (const StartupRow& row : rows_) {
    if (row.state == "ready" || row.state.empty()) continue;
    out.push_back(fmt::format("{} ({}): {}{}{}", row.task.to_string(), row.address, row.state,
                              row.detail.empty() ? "" : ", ", row.detail));
  }
  return out;
}

}  // namespace leat
