// ProgramStep: one run of a Program with more than one segment. program.h describes its life.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/execution/step_end.h"
#include "core/execution/work_source.h"
#include "core/rendezvous.h"
#include "runtime/program.h"

namespace leat {

class LoopRun;
class StreamMark;

// One step of a Program. Reused: start() begins the next one.
class ProgramStep {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // Called once per start(), on any thread, when nothing of the step is under way any more.
    virtual void step_done(ProgramStep& step) = 0;
    // True (from then on cancel_status() has the reason) ends the steps at the next item. Any
    // thread.
    virtual bool is_ending() const = 0;
    virtual Status cancel_status() const = 0;
    // Set when is_ending() becomes true, and when one of its steps fails: for running kernels.
    virtual const StepEnd::Flag& step_end() const = 0;
    // For waiting kernels. Cancelled together with the step.
    virtual Cancellation& cancellation() = 0;
    // The step has failed and waits for what is under way: waiting kernels must end.
    virtual void step_failed(const Status& status) = 0;
  };

  ProgramStep(Program& program, Owner& owner);
  ~ProgramStep();
  ProgramStep(const ProgramStep&) = delete;

  Program& program() const { return program_; }
  Owner& owner() const { return owner_; }

  // Feeds in the order of the plan, already checked. Afterwards call drive() for the started steps.
  void start(std::vector<Tensor> feeds, Rendezvous* rendezvous, bool is_traced);
  // Runs what is ready of these steps, and of steps that they wake, on the calling thread. Shares
  // long work of several steps with the pool.
  static void drive(std::span<ProgramStep* const> steps);
  // Calls `first`, then runs the steps that it woke, and in turn the steps that those woke.
  static void run_in_turn(const std::function<void()>& first);
  // It has failed, or must end. Any thread.
  bool is_ending() const { return has_failed_ || owner_.is_ending(); }
  // The source that it was started for.
  WorkSource::Id source() const { return source_; }

  // After step_done(), until the next start().
  const Status& status() const { return status_; }
  // INVALID_ARGUMENT "The tensor returned for N was not valid." if it is dead.
  Tensor fetch(int i) const;
  std::vector<TraceEvent>& events() { return events_; }
  // Drops all values.
  void clear();

  // What it waits for and runs, and for how long. Any thread, any time between start() and
  // step_done().
  struct Busy {
    const Item* item;
    const ProgramPlan* plan;  // the program's, or that of a loop's part
    int64_t ns;
  };
  std::vector<Busy> busy() const;

 private:
  struct Arrival {
    int item;  // -1: the device has drained
    Status status;
    Tensor value;
    bool is_dead;
  };
  class Context;

  template <class F>
  static void in_turn(F&& first);
  void work();
  bool run_ready();
  bool may_take_long(int index) const;
  void go_on_in_pool();
  void run_item(int index);
  bool is_dead(const std::vector<int>& flags) const;
  const Tensor& value_of(const ItemSource& source) const;
  Tensor take(const ItemSource& source);
  void set(int slot, Tensor value);

  void run_segment(int index, std::vector<TraceEvent>& events);
  void send(int index, Tensor value, bool is_dead, std::vector<TraceEvent>& events);
  void set_mark(int slot);
  void run_handed_out(int index);
  void run_switch(const Item& item, bool is_dead);
  void run_merge(const Item& item);
  void run_loop(int index);
  void deliver_from_loop(const Item& item);
  void receive(int index, const Status& status, Tensor value, bool is_dead);
  Status deliver_from_kernel(int index);
  void trace_wait(const Item& item, int64_t since_ns, const Tensor& value);
  void run_kernel_async(int index);
  void copy_to_device(const Item& item);
  void copy_to_host(int index);
  Tensor copy_from_peer(Device& peer, const Tensor& value) const;
  void hand_out_slow_segments();
  bool is_slow(int index) const;
  bool has_slow_work() const;

  void complete(int index);
  void merge_input_arrived(int index, int input);
  bool is_merge_decided(const Item& item) const;
  void make_ready(int index);
  void process(Arrival& arrival);
  void arrive(int item, const Status& status, Tensor value, bool is_dead);
  void wake();
  void begin_wait(int index);
  void fail_step(Status status);
  Status status_of_item(int index) const;
  Status status_of_arrival(Arrival arrival) const;
  Status check_received(const Item& item, const Arrival& arrival) const;
  void drain();

  Program& program_;
  const ProgramPlan& plan_;
  Owner& owner_;
  Rendezvous* rendezvous_ = nullptr;
  bool is_traced_ = false;
  WorkSource::Id source_ = WorkSource::none;

  // Touched only by the thread that runs the step.
  std::vector<int> pending_;   // dependencies left, by item
  std::vector<int> counters_;  // of Merges: completions left by input, then arrived inputs, then
                               // the chosen input + 1
  std::vector<Tensor> slots_;
  std::vector<int> uses_;    // readers left, by slot
  std::vector<char> flags_;  // dead
  // By item: sent while its segment ran. A segment's thread writes those of its own results.
  std::vector<char> is_sent_;
  // By slot: where the device's stream has computed the value. Used again in every step; of this
  // one if is_marked_.
  std::vector<std::shared_ptr<StreamMark>> marks_;
  std::vector<char> is_marked_;
  std::vector<int> ready_boundary_, ready_segments_;
  int unfinished_ = 0;  // items left
  int under_way_ = 0;   // items whose completion is still to arrive
  bool is_drained_ = false;
  Status status_;
  std::atomic<bool> has_failed_{false};  // status_, for other threads
  std::vector<TraceEvent> events_;
  std::vector<Arrival> arrivals_;                // being processed
  std::vector<std::unique_ptr<LoopRun>> loops_;  // made when first needed

  std::unique_ptr<std::atomic<int64_t>[]> waiting_since_;  // by item; 0 = not waiting
  std::atomic<int> running_item_{-1};                      // on the thread that runs the step
  std::atomic<int64_t> running_since_{0};                  // when that thread arrived

  std::mutex mutex_;  // guards what follows
  std::vector<Arrival> inbox_;
  std::vector<TraceEvent> handed_out_events_;
  std::vector<std::shared_ptr<Context>> finished_kernels_;
  bool is_running_ = false;
};

}  // namespace leat
