// TrainingSession: a training loop that starts, checkpoints, recovers and stops by itself.
//   TrainingSession training(graph, train, {.inputs = {x, y}, .fetches = {loss},
//                                           .directory = "runs/1", .hooks = {stop_at(10'000)}});
//   while (!training.should_stop()) {
//     if (auto fetched = training.step({examples, labels})) std::cout << (*fetched)[0] << "\n";
//   }
// strategy.h has the one that runs what a strategy has made, with a dataset in the graph.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontends/cpp/session.h"
#include "frontends/cpp/training/readiness.h"
#include "frontends/cpp/training/saver.h"
#include "frontends/cpp/training/training.h"

namespace leat {

class RepeatedRuns;
class TrainingSession;

// Code that runs between steps. training_hooks.h has the usual hooks.
class TrainingHook {
 public:
  virtual ~TrainingHook() = default;
  // Fetched in the steps in which it is due, for after_step(). Called once.
  virtual std::vector<Output> fetches() { return {}; }
  // Whether to fetch fetches() in the next step, with which `step` steps are done, or more if other
  // workers train as well. What is not fetched is not computed. Called before each step.
  virtual bool is_due(int64_t /*step*/) { return true; }
  // Whether after_step() will call placed_graph(). Called once.
  virtual bool wants_placed_graph() const { return false; }
  // Called when the variables have values, initial or from a checkpoint; again after every
  // recovery.
  virtual void begin(TrainingSession&) {}
  // Called after each step: `values` are those of fetches(), none if it was not due;
  // training.global_step() is the number of steps done by now.
  virtual void after_step(TrainingSession&, std::span<const Tensor> values) = 0;
  // Called when a checkpoint was written, after begin(). The last one is written after end().
  virtual void after_save(TrainingSession&, const std::string& /*prefix*/) {}
  // The global step at which this hook ends the training, if it knows.
  virtual std::optional<int64_t> last_step() const { return std::nullopt; }
  // An error does not keep the others from ending, nor the last checkpoint from being written.
  virtual void end(TrainingSession&) {}
};

struct TrainingOptions {
  // The node that a step runs: what minimize() returns. TrainingSession(graph, train, …) sets it.
  Awaited train = nullptr;
  // An int64 variable that `train` increases; none: that of leat::global_step(), if it was made.
  Output global_step = {};
  std::vector<Output> inputs = {};   // fed in every step
  std::vector<Output> fetches = {};  // what step() returns
  SessionOptions session = {};
  bool is_chief = true;        // initialises, restores and saves; the others wait for it
  std::string directory = {};  // of checkpoints; "" = none are written
  Saver::Options saver = {};
  int64_t checkpoint_steps = 0;  // writes a checkpoint every N steps; 0 = not by steps
  std::chrono::milliseconds checkpoint_time{600'000};  // or after this time; 0 = not by time
  // How many recoveries in a row from a lost task: a new session is made and the chief restores
  // the last checkpoint, at once the first time, then after growing pauses (10 take at least 11 s).
  // With 0, or without checkpoints, the error goes to the caller. A task lost while the session
  // starts is waited for as well, as `patience` allows.
  int recoveries = 10;
  std::chrono::milliseconds patience{60'000};  // for lost tasks to come back, and for the chief
  // Called in their order: {stop_at(10'000)}. More by add().
  std::vector<std::shared_ptr<TrainingHook>> hooks = {};
  // After a step: what is due of them, counted from the start of the session. A checkpoint is
  // written when all that run at the end have just run.
  std::vector<Periodic> periodic = {};
  // Datasets that are read n · batches_per_step times when a checkpoint of step n is restored.
  std::vector<Output> data = {};
  int64_t batches_per_step = 1;
  // Steps that run over and over beside `train`, each in a thread of its own, from the first step
  // on until run() or close() ends. The error of one is that of the next step.
  std::vector<Awaited> lanes = {};
  // Run when the lanes are to end, or one has failed: for lanes that wait, and for what waits for
  // them.
  Awaited stop_lanes = nullptr;
  // Run over and over beside the steps, in a thread of its own, from begin on until the session is
  // closed. Its error ends the step that is under way, and is that step's error.
  Awaited background = nullptr;
  Awaited begin = nullptr;       // run when the session has started
  bool begins_together = false;  // these two as in Training
  Output is_torn = {};
  // Run when this program makes no more steps, also after an error: so others do not wait for it.
  Awaited end = nullptr;
  Awaited end_after_error = nullptr;  // instead of it, after an error
  Output loss = {};                   // run() shows it, and the metrics, scalars by name
  std::vector<std::pair<std::string, Output>> metrics = {};
};

class TrainingSession {
 public:
  // Make it when the graph is complete: it adds the nodes of its Saver. Starts: the chief restores
  // the last checkpoint of the directory, or initialises; the others wait. INVALID_ARGUMENT if
  // there is no node to train or no global step.
  TrainingSession(Graph& graph, TrainingOptions options, Location at = here());
  // The same with options.train = train.
  TrainingSession(Graph& graph, Awaited train, TrainingOptions options = {}, Location at = here());
  // Runs what a strategy has made: `options` need not say what `training` knows. If the chief's
  // program trains all replicas and this is another one, there is no session: should_stop() is
  // true.
  explicit TrainingSession(const Training& training, TrainingOptions options = {},
                           Location at = here());
  // Calls close(), with its hooks' end() and its last checkpoint; only prints an error to stderr.
  ~TrainingSession();
  TrainingSession(const TrainingSession&) = delete;

  // Before the first step. Hooks are called in the order in which they were added.
  void add(std::shared_ptr<TrainingHook> hook);

  bool should_stop() const { return should_stop_; }
  void request_stop() { should_stop_ = true; }
  int64_t global_step() const { return step_number_; }  // steps done

  // Runs one step: returns the values of options.fetches. None if a task was lost: the step does
  // not count, and global_step() is that of the checkpoint again: feed from there. None,
  // and no step, if a hook requests a stop in begin(). Throws other errors.
  std::optional<std::vector<Tensor>> step(std::span<const Tensor> feeds);
  std::optional<std::vector<Tensor>> step(std::initializer_list<Tensor> feeds) {
    return step(std::span<const Tensor>(feeds.begin(), feeds.size()));
  }
  // Prints what the strategy explains (Training::explanation), then makes steps until a hook stops
  // the training, or the data ends (OUT_OF_RANGE), with a progress line if options.loss is given.
  // Then the variables are as they will be saved: evaluate, and let close() do the rest.
  void run();
  // Writes a checkpoint now; returns its prefix.
  std::string save();
  // The graph as a GraphDef with complete devices: nodes of the first step where they ran, others
  // where they would. FAILED_PRECONDITION before the first step, or if no hook wants it.
  std::string placed_graph() const;
  // Ends the hooks, writes a last checkpoint (unless the last step failed) and closes the session.
  // Does all of it, then throws the first error. If the session's task is already gone, it logs
  // this and returns.
  void close();

  // FAILED_PRECONDITION if there is none: the chief's program trains for this one.
  Session& session();
  const std::string& directory() const { return options_.directory; }

 private:
  struct Hook {
    std::shared_ptr<TrainingHook> hook;
    std::vector<Output> fetches;
  };
  // What is fetched depends on the hooks that are due.
  struct Step {
    std::vector<Output> fetches;  // of the caller, the global step, of the hooks
    std::vector<size_t> ends;     // where each hook's end
    std::optional<Callable> run;
  };

  static bool is_loss_of_a_task(const Error& error);  // which another session can mend
  void prepare(Location at);
  bool has_whole_variables();
  void skip_data();
  void start();
  void begin();
  void start_patiently(std::chrono::milliseconds pause);
  void recover(const Error& error);
  void close_session();
  void start_background();
  void stop_background();
  void start_lanes();
  void run_stop_lanes();
  void stop_lanes();
  void fail_as_a_lane_has() const;
  Error cause_of(const Error& error) const;
  Step& next_step();
  std::vector<Tensor> run_first(const Step& step, std::span<const Tensor> feeds);
  void note_step(int64_t step);
  void tell_hooks(const Step& step, std::span<const Tensor> values);
  void run_periodic();
  void run_at_end();
  void end_steps();
  void end_after_failure();
  void save_if_due();

  Graph& graph_;
  const TrainingOptions options_;
  Readiness readiness_;
  std::optional<Saver> saver_;  // of the chief with a directory
  std::vector<Hook> hooks_;
  Output step_after_;  // the global step after the update
  struct Due {
    Periodic what;
    Output step;  // the global step after it
    std::optional<Callable> run;
    int64_t steps = 0;  // since it ran
  };
  std::vector<Due> periodic_;
  Node* skip_ = nullptr;  // reads a batch
  std::unique_ptr<Session> session_;
  std::unique_ptr<RepeatedRuns> lanes_, background_;  // they end before the session
  std::map<std::vector<bool>, Step> steps_;           // by which hooks are due
  int64_t step_number_ = 0, saved_step_ = -1;
  int64_t tried_step_ = -1;  // to save
  std::chrono::steady_clock::time_point tried_at_;
  int same_steps_ = 0;  // in a row that left the global step as it was
  int recoveries_in_a_row_ = 0;
  bool wants_placed_graph_ = false;
  std::string placed_graph_;
  const bool is_idle_ = false;
  std::string explanation_;  // of the strategy; run() prints it once
  bool should_stop_ = false, has_begun_ = false, has_failed_ = false, is_closed_ = false,
       has_ended_ = false;
  bool is_awaited_ = false;  // begin has run: others may wait for this program
};

}  // namespace leat
