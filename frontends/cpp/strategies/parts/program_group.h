// Exchanges between programs: each worker's program has its own graph with its own values, and all
// get the same sums. collectives.h is for one program that has the values of all.
//
//   collectives::ProgramGroup group(graph, replicas, "gradients");
//   std::vector<Output> means = group.all_reduce(own_values, names, step);
//   training.begin = group.begin();
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "frontends/cpp/strategies/parts/collectives.h"
#include "graph/ops/collective_result.h"

namespace leat::collectives {

// The programs of all replicas. Each task has a mailbox of that name, in which the other programs
// leave what it needs; so a program sends without waiting, and waits at its own task alone.
//
// Who waits, at which step, for what of which member, is what `leat top` and the error of a step
// whose deadline passes say. A member at another step than the others is ABORTED.
//
// Cost of an all-reduce: as in collectives.h, with "direct" and "chunks" (of which each member sums
// one). A message to each other task and step, beside the tensors.
//
// Where the values of all members are on GPUs that a library connects (NCCL), it computes the sums
// of "automatic", if their dtypes are floats. In each step, every program then sends two short
// messages to every other task: that it takes part, and that it has finished.
class ProgramGroup {
 public:
  // FAILED_PRECONDITION if this program is not a worker's.
  ProgramGroup(Graph& graph, const Replicas& replicas, std::string_view name, Location at = here());

  // The sum or mean over all programs of each value, the same bits on all. `names` are for errors;
  // `step`, an int64 scalar, must be equal on all, and another one each time. All programs call it
  // in the same order with the same dtypes, shapes and options. Run sent() with it. Shapes must be
  // complete. INVALID_ARGUMENT for another algorithm than automatic, direct and chunks.
  std::vector<Output> all_reduce(const std::vector<Output>& values,
                                 const std::vector<std::string>& names, Output step,
                                 const AllReduceOptions& options = {}, Location at = here());
  // What sends: to run in each step that reads a result of all_reduce().
  const std::vector<Output>& sent() const { return sent_; }

  // A node that meets the other programs at the beginning of a session, after the last call of
  // all_reduce(): what this program had posted before is removed, and when the node is done, all
  // have come. INVALID_ARGUMENT, in all programs, names the first tensor that two of them exchange
  // differently. Null if there is one program.
  Node* begin(Location at = here());
  // A node that ends the waits of the others for this program: OUT_OF_RANGE, or FAILED_PRECONDITION
  // if it has failed. Null as above.
  Node* leave(bool has_failed = false, Location at = here());

 private:
  Output mailbox(int k, Location at);  // of worker k
  // Of this program, at the mailbox of worker k.
  Output member_op(std::string_view op, int k, AttrMap attrs, Location at);
  void post(int to, const std::string& slot, Output step, Output value, Location at);
  std::vector<Output> take(const std::vector<int>& from, const std::string& slot, Output step,
                           DType dtype, const Shape& shape, Location at);
  // What the members tell each other where a library sums: before, and after `results`.
  struct Library {
    CollectivePrograms programs;
    Output ticket;                // of the first member; empty if this is it
    std::vector<Output> awaited;  // by collective_signal()
  };
  Library begin_library(Output first_value, Output step, Location at);
  void end_library(Library& library, const std::vector<Output>& results, Output step, Location at);
  Output marked(Output by_messages, Output own, const Library& library, const std::string& slot,
                Reduction reduction, Location at) const;
  Output direct(Output flat, const std::string& slot, Output step, Reduction reduction,
                Location at);
  Output chunked(Output flat, const std::string& slot, Output step, Reduction reduction,
                 Location at);
  std::vector<int> others() const;

  Graph& graph_;
  const Replicas replicas_;
  const std::string name_;
  std::string plan_;
  int buckets_ = 0, exchanges_ = 0;
  std::vector<Output> mailboxes_;  // by worker; empty where none is made yet
  std::vector<Output> sent_;
};

}  // namespace leat::collectives
