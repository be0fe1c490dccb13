// What one process does to train: the result of a strategy, and what a TrainingSession runs.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace leat {

// A node that runs after every `steps` steps of this process, as a step of its own.
struct Periodic {
  int64_t steps = 1;
  Awaited node = nullptr;
  // Runs once more when the training ends, or before a checkpoint, if steps were made since.
  bool at_end = false;
};
// every(10, average)
inline Periodic every(int64_t steps, Awaited node, bool at_end = false) {
  return {steps, node, at_end};
}

struct Training {
  Graph* graph = nullptr;
  Awaited step = nullptr;  // the node of a step
  Output global_step;      // an int64 variable that grows with the steps
  // After a step, in this order: what is due of them.
  std::vector<Periodic> periodic = {};
  // Steps that run over and over beside `step`, each in a thread of its own, until that ends.
  std::vector<Awaited> lanes = {};
  // Runs when the lanes are to end, or one has failed: ends the runs of those that wait.
  Awaited stop_lanes = nullptr;
  // Runs over and over beside the steps, in a thread of its own: it must wait for something.
  Awaited background = nullptr;
  Awaited begin = nullptr;  // once per session, when the variables have values
  Awaited end = nullptr;    // once, when this process makes no more steps, also after an error
  Awaited end_after_error = nullptr;  // instead of it, after an error
  Output loss;                        // of a step, for the progress line
  std::vector<std::pair<std::string, Output>> metrics = {};
  Output samples;                // how many examples a step of this process has, an int32 scalar
  int replicas = 1;              // whose batches one step of global_step uses
  int64_t batches_per_step = 1;  // of each replica, for one step of global_step
  // What reads a batch of each replica. If it is known how many were read until a checkpoint, a
  // session that restores it skips them, and so continues with the next one.
  std::vector<Output> inputs = {};
  // The chief's program trains all replicas: this one makes no step, only its task computes.
  bool is_idle = false;
  // For strategies whose programs all begin again together when one of their tasks was lost:
  // `begin` waits for the programs of all. The chief's variables have their values before it, the
  // copies of the others after it. What the steps before global_step have read is skipped in every
  // new session, of each program.
  bool begins_together = false;
  // Of the chief's program, where the variables outlive the loss of a task: a bool that says
  // whether the step that failed has changed some of them and not others. If it has not, the chief
  // goes on with them, else with its last checkpoint.
  Output is_torn = {};
  bool is_chief = true;  // initialises, restores and saves
  // What the strategy decided and why, as text of several lines; empty if there was nothing to
  // decide.
  std::string explanation = {};
  std::string target = {};  // of the session: "grpc://host:port", or "" for this process
};

}  // namespace leat
