// The table printed while a cluster starts: every task, and what it waits for.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "distributed/cluster/cluster_spec.h"

namespace leat {

struct StartupRow {
  TaskName task;
  std::string address;
  pid_t pid = 0;                           // 0: a task of another host
  std::string state;                       // "starting", "waiting", "ready", "no answer", "failed"
  std::chrono::duration<double> after{0};  // when it entered that state, since the start
  std::string detail;
  // Since then a resolver has reported that the host's name does not exist.
  std::optional<std::chrono::steady_clock::time_point> unknown_since = {};
};

// Aligned columns with a heading, a line each:
//   task                address        pid   state      after  detail
//   /job:ps/task:0      10.0.0.1:2222  4711  ready       0.2s  16 cores
std::string format_startup_table(const std::vector<StartupRow>& rows);

// The state of each task of the cluster, a row each. Tasks of this host are "starting", those of
// other hosts have no state at first.
class StartupTable {
 public:
  using Clock = std::chrono::steady_clock;

  // `only`: the one task of this host; else all whose host is ours, see find_hosts().
  StartupTable(const ClusterSpec& cluster, const std::optional<TaskName>& only,
               Clock::time_point start);

  // Finds which hosts are this one, as far as that is not known yet. False if a name cannot be
  // resolved: its rows say so.
  bool find_hosts();

  std::vector<StartupRow>& rows() { return rows_; }
  const std::vector<StartupRow>& rows() const { return rows_; }
  StartupRow& row(const TaskName& task);
  void set_state(StartupRow& row, const std::string& state, const std::string& detail);
  // Whether all the processes that we started have this state.
  bool are_ours(std::string_view state) const;
  // A line for each task that is not ready: "/job:ps/task:0 (10.0.0.1:2222): no answer, …".
  std::vector<std::string> missing() const;

 private:
  Clock::time_point start_;
  std::vector<StartupRow> rows_;  // in the cluster's order
};

}  // namespace leat
