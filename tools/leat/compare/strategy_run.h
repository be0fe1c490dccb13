// One training of a comparison: `leat run` as a child process, with somebody who looks at its
// cluster.
#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "core/fd.h"
#include "tools/leat/compare/cluster_samples.h"
#include "tools/leat/process.h"

namespace leat {

// SIGINT, SIGTERM and SIGHUP as events. Blocks them for the process: make it before any thread.
class StopSignals {
 public:
  StopSignals();
  int fd() const { return fd_.get(); }
  int take();  // the next one, or 0

 private:
  Fd fd_;
};

struct StrategyRun {
  std::vector<std::string> command;  // leat run … --log-dir LOGS -- PROGRAM …
  std::filesystem::path records, logs;
  std::chrono::milliseconds timeout{0};  // 0: none
  // Called a few times a second, for a line of progress.
  std::function<void(std::chrono::duration<double> time, double bytes)> on_look;
};

struct StrategyOutcome {
  Ending ending;
  bool is_late = false;  // ended by the timeout
  int stop_signal = 0;   // that came meanwhile; then nothing else is to be run
  std::vector<std::string> last_lines;
  ClusterSamples samples;
};

// Makes both folders, and removes records of earlier runs from them. Call it from the main thread:
// the child ends with it, also if it is killed.
StrategyOutcome run_strategy(const StrategyRun& run, StopSignals& signals);

}  // namespace leat
