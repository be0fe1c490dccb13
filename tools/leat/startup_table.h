// The table that is printed while a cluster starts: every task, and what it waits for.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "distributed/cluster_spec.h"

namespace leat {

struct StartupRow {
  TaskName task;
  std::string address;
  pid_t pid = 0;                           // 0: a task of another host
  std::string state;                       // "starting", "waiting", "ready", "no answer", "failed"
  std::chrono::duration<double> after{0};  // since the start, when it came into that state
  std::string detail;
};

// Aligned columns with a heading, a line each:
//   task                address        pid   state      after  detail
//   /job:ps/task:0      10.0.0.1:2222  4711  ready       0.2s  16 cores
std::string format_startup_table(const std::vector<StartupRow>& rows);

}  // namespace leat
