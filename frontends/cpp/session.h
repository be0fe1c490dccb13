// Session: runs the graph of a C++ program, in this process or on a cluster.
//   Session session{graph, {.target = "grpc://10.0.1.1:2222"}};
//   session.run({{x, examples}, {y, labels}}, {train});
//   auto [l] = session.run({{x, examples}, {y, labels}}, fetch(loss), {train});
#pragma once

#include <array>
#include <atomic>
#include <concepts>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/ops/operand.h"
#include "runtime/session.h"

namespace leat {

// A value for an endpoint of the graph, usually a placeholder. It must have the endpoint's shape,
// and a Tensor its dtype; numbers are converted to that dtype: {x, 0.5}, {x, {{1, 2}, {3, 4}}}.
struct Feed {
  Output endpoint;
  Tensor value;
  Feed(Output endpoint, Tensor value) : endpoint(endpoint), value(std::move(value)) {}
  Feed(Output endpoint, const Literal& value, Location at = here());
};
using Feeds = std::vector<Feed>;

// Something to run: a node for its effect, or an Output, whose value run(list) returns.
struct Target {
  const Node* node;
  Output output = {};                                           // none of a node
  Target(Output output) : node(output.node), output(output) {}  // NOLINT: converts
  Target(const Node& to_run) : node(&to_run) {}                 // NOLINT
};
using Targets = std::vector<Target>;

// A fixed number of fetches, so that the result can be unpacked:
//   auto [a, b] = Session(graph).run(feeds, fetch(x, y));
template <size_t count>
struct Fetch {
  std::array<Output, count> outputs;
};
template <class... Outputs>
Fetch<sizeof...(Outputs)> fetch(Outputs... outputs) {
  return {{Output(outputs)...}};
}

// What run() returns: each value on a line of its own.
std::ostream& operator<<(std::ostream& out, const std::vector<Tensor>& values);

// A prepared step, which a training loop calls. Feeds and results are in the order given to
// prepare(). Thread-safe; must not outlive its session, nor the graph.
class Callable {
 public:
  std::vector<Tensor> operator()(std::initializer_list<Tensor> feeds) const {
    return (*this)(std::span<const Tensor>(feeds.begin(), feeds.size()));
  }
  std::vector<Tensor> operator()(std::span<const Tensor> feeds = {}) const;
  template <std::same_as<Tensor>... Others>
  std::vector<Tensor> operator()(const Tensor& feed, const Others&... others) const {
    return (*this)({feed, others...});
  }
  // The same into `fetches`, whose memory is reused: nothing is allocated in steady state (in
  // process).
  void run(std::span<const Tensor> feeds, std::vector<Tensor>& fetches) const;

  // Runs it `steps` times. Up to `in_flight` steps are under way at once, so that a cluster need
  // not wait for this program, nor this program for the cluster:
  //   Session session(graph);
  //   const Callable prepared = session.prepare({x}, {loss}, {train});
  //   prepared.run_steps(1'000, [&](int64_t, std::vector<Tensor>& batch) { batch = {examples}; },
  //                      [&](int64_t, std::vector<Tensor>& value) { std::cout << value[0]; });
  // Both functions may be empty; they are called on this thread, in the order of the steps. On
  // several devices, steps under way are not ordered: one may read a variable before the preceding
  // step has written it, as an asynchronous worker does. After the first error no further step
  // begins; the call waits for those under way and throws it, its message begins with "step 7: ".
  using StepFeeds = SessionInterface::StepFeeds;
  using StepFetches = SessionInterface::StepFetches;
  void run_steps(int64_t steps, const StepFeeds& feed, const StepFetches& result,
                 int in_flight = 2) const;
  void run_steps(int64_t steps, int in_flight = 2) const { run_steps(steps, {}, {}, in_flight); }

 private:
  friend class Session;
  Callable(std::shared_ptr<SessionInterface> session, SessionInterface::CallableHandle handle,
           const Graph& graph);
  struct Registration;
  std::shared_ptr<Registration> registration_;
};

// Thread-safe as long as no thread adds to the graph at the same time. Each call picks up the nodes
// added since the last one. The destructor closes the session. Errors: leat::Error, with the node
// and the user's line where there is one; FAILED_PRECONDITION after it was moved from. Tensors are
// handles: in this process a fed or fetched tensor may share its memory with a constant, a
// variable, a queue or a later step. Do not write to it afterwards: fill another tensor for the
// next step, and change a clone() of a fetched one.
class Session {
 public:
  explicit Session(const Graph& graph, SessionOptions options = {});
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) = delete;

  std::vector<Tensor> run(const Feeds& feeds, const std::vector<Output>& fetches,
                          const Targets& targets = {}, const RunOptions& options = {},
                          RunMetadata* metadata = nullptr);
  // Outputs in braces are fetches: auto value = session.run(feeds, {loss})[0];
  std::vector<Tensor> run(const Feeds& feeds, std::initializer_list<Output> fetches,
                          const Targets& targets = {}, const RunOptions& options = {},
                          RunMetadata* metadata = nullptr) {
    return run(feeds, std::vector<Output>(fetches), targets, options, metadata);
  }
  // The values of the Outputs in the list, in their order; nodes are run for their effect:
  // session.run({train}), session.run({loss})[0], session.run(feeds, {loss, train})[0].
  std::vector<Tensor> run(const Feeds& feeds, const Targets& list);
  std::vector<Tensor> run(const Targets& list) { return run({}, list); }
  // One of them, without braces.
  template <std::derived_from<Output> T>
  Tensor run(const T& fetched) {
    return run({}, std::vector<Output>{fetched}).front();
  }
  template <std::derived_from<Output> T>
  Tensor run(const Feeds& feeds, const T& fetched) {
    return run(feeds, std::vector<Output>{fetched}).front();
  }
  void run(const Node& target) { run({}, Targets{target}); }
  void run(const Feeds& feeds, const Node& target) { run(feeds, Targets{target}); }
  // In TensorFlow's order: session.run(loss, {{x, batch}}).
  template <std::derived_from<Output> T>
  Tensor run(const T& fetched, const Feeds& feeds) {
    return run(feeds, fetched);
  }
  void run(const Node& target, const Feeds& feeds) { run(feeds, target); }
  std::vector<Tensor> run(const Targets& list, const Feeds& feeds) { return run(feeds, list); }
  // A vector that was made before: session.run(gradients({loss}, {w, b}), {{x, batch}}).
  template <std::same_as<std::vector<Output>> T>
  std::vector<Tensor> run(const T& fetches, const Feeds& feeds = {}) {
    return run(feeds, fetches);
  }
  template <size_t count>
  std::array<Tensor, count> run(const Feeds& feeds, const Fetch<count>& fetches,
                                const Targets& targets = {}, const RunOptions& options = {},
                                RunMetadata* metadata = nullptr) {
    std::vector<Tensor> values =
        run(feeds, std::vector<Output>(fetches.outputs.begin(), fetches.outputs.end()), targets,
            options, metadata);
    std::array<Tensor, count> out;
    std::move(values.begin(), values.end(), out.begin());
    return out;
  }

  // Gives all variables and tables that the graph has now their initial values. Variables made
  // later need another call, which initialises all of them again. initialize_variables(graph) is
  // the same as a node of the graph, for hooks and other programs. FAILED_PRECONDITION if the graph
  // has variables, but initialisers of none: a graph from from_graph_def() has no collections.
  void initialize();

  // Looks everything up once, for the steps of a loop. In process it compiles the step and throws
  // its errors: NOT_FOUND for an endpoint that the graph does not have. On a cluster it only keeps
  // the names; the first run compiles the step and throws.
  Callable prepare(const std::vector<Output>& feeds, const std::vector<Output>& fetches,
                   const Targets& targets = {});

  // Of this process, or of all tasks of the cluster; the dialled task's first.
  std::vector<DeviceDescription> list_devices();
  // Ends running steps with CANCELLED and waits for them (with a deadline). Every later call but
  // close() is FAILED_PRECONDITION "Session is closed.".
  void close();

 private:
  SessionInterface& session() const;
  SessionInterface& up_to_date();

  const Graph& graph_;
  std::shared_ptr<SessionInterface> session_;
  std::unique_ptr<std::atomic<size_t>> nodes_taken_;  // a pointer, for sessions move
};

}  // namespace leat
