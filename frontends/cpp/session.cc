#include "frontends/cpp/session.h"

#include <algorithm>

#include "distributed/session_factory.h"
#include "graph/variable_node.h"

namespace leat {
namespace {

// Names alone could be those of other nodes here.
void check_graph(const Node* node, const Graph& graph, std::string_view role) {
  check(node != nullptr, "a ", role,
        " is an empty Output: it was never set to a result of the graph");
  check(node->graph == &graph, "a ", role, ", '", node->name,
        "', belongs to another graph than the session's");
}

std::vector<std::string> names_of(const std::vector<Output>& outputs, const Graph& graph,
                                  std::string_view role) {
  std::vector<std::string> out;
  out.reserve(outputs.size());
  for (const Output& output : outputs) {
    check_graph(output.node, graph, role);
    out.push_back(output.name());
  }
  return out;
}

std::vector<std::string> names_of(const Targets& targets, const Graph& graph) {
  std::vector<std::string> out;
  out.reserve(targets.size());
  for (const Target& target : targets) {
    check_graph(target.node, graph, "target");
    out.push_back(target.node->name);
  }
  return out;
}

// A cluster knows the names of nodes, this process also the lines that made them.
[[noreturn]] void rethrow_located(const Error& error, const Graph& graph) {
  std::string message = error.message();
  const Node* node = error.node().empty() ? nullptr : graph.find(error.node());
  if (node == nullptr || !node->location.is_known()) throw error;
  const std::string line = concat(node->location);
  if (message.find(line) != message.npos) throw error;
  const size_t place = message.find(concat("(", node->op->name, " on "));
  const size_t close = place == message.npos ? message.npos : message.find(')', place);
  if (close == message.npos) {
    message.insert(std::min(message.find('\n'), message.size()), concat(" (", line, ")"));
  } else {
    message.insert(close, ", " + line);
  }
  throw Error(Status{error.code(), std::move(message), error.status().derived, error.node()});
}

// What would initialise the variables: the first NoOp that waits for the first assignment to one,
// such as TensorFlow's global_variables_initializer(), else that assignment. Null if there is none.
const Node* initialiser_in(const Graph& graph) {
  const Node* assign = nullptr;
  for (const auto& node : graph.nodes()) {
    if (assign == nullptr) {
      const bool assigns = node->is("Assign") || node->is("AssignVariableOp");
      if (assigns && variable_node(node->inputs[0]) != nullptr) assign = node.get();
    } else if (node->is("NoOp") && std::ranges::count(node->control_inputs, assign) > 0) {
      return node.get();
    }
  }
  return assign;
}

// A graph that was read from a GraphDef has variables, but no collection tells what initialises
// them.
void check_without_initialisers(const Graph& graph) {
  int64_t variables = 0;
  const Node* first = nullptr;
  for (const auto& node : graph.nodes()) {
    if (!node->op->is_variable) continue;
    if (variables++ == 0) first = node.get();
  }
  if (variables == 0) return;
  const Node* initialiser = initialiser_in(graph);
  fail(Code::failed_precondition, "initialize(): the graph has ", variables,
       variables == 1 ? " variable, '" : " variables, the first is '", first->name,
       "', but its collection \"initializers\" is empty, as in a graph that was read from a "
       "GraphDef, which has no collections; restore a checkpoint (Saver::Options::variables)",
       initialiser == nullptr ? std::string(", or assign values to the variables")
                              : concat(", or run what initialises them by its name: "
                                       "session.run({*graph.find(\"",
                                       initialiser->name, "\")})"));
}

template <class Run>
auto located(const Graph& graph, Run run) {
  try {
    return run();
  } catch (const Error& error) {
    rethrow_located(error, graph);
  }
}

}  // namespace

Feed::Feed(Output endpoint, const Literal& literal, Location at)
    : endpoint(endpoint),
      value(endpoint ? literal.tensor(endpoint.dtype(), at) : literal.tensor(at)) {}

// Released once, when the last copy of the Callable goes.
struct Callable::Registration {
  const std::shared_ptr<SessionInterface> session;
  const SessionInterface::CallableHandle handle;
  const Graph& graph;

  Registration(std::shared_ptr<SessionInterface> s, SessionInterface::CallableHandle h,
               const Graph& g)
      : session(std::move(s)), handle(h), graph(g) {}
  Registration(const Registration&) = delete;
  ~Registration() {
    try {
      session->release_callable(handle);
    } catch (const Error&) {
      // The session or its cluster is gone, and the handle with it.
    }
  }
};

Callable::Callable(std::shared_ptr<SessionInterface> session,
                   SessionInterface::CallableHandle handle, const Graph& graph)
    : registration_(std::make_shared<Registration>(std::move(session), handle, graph)) {}

std::vector<Tensor> Callable::operator()(std::span<const Tensor> feeds) const {
  std::vector<Tensor> out;
  run(feeds, out);
  return out;
}

void Callable::run(std::span<const Tensor> feeds, std::vector<Tensor>& fetches) const {
  located(registration_->graph,
          [&] { registration_->session->run_callable(registration_->handle, feeds, fetches); });
}

void Callable::run_steps(int64_t steps, const StepFeeds& feed, const StepFetches& result,
                         int in_flight) const {
  const StepFeeds no_feeds = [](int64_t, std::vector<Tensor>&) {};
  const StepFetches no_results = [](int64_t, std::vector<Tensor>&) {};
  located(registration_->graph, [&] {
    registration_->session->run_steps(registration_->handle, steps, feed ? feed : no_feeds,
                                      result ? result : no_results, in_flight);
  });
}

Session::Session(const Graph& graph, SessionOptions options)
    : graph_(graph),
      session_(new_session(options)),
      nodes_taken_(std::make_unique<std::atomic<size_t>>(0)) {}

Session::Session(Session&&) noexcept = default;

Session::~Session() {
  if (!session_) return;
  try {
    session_->close();
  } catch (const Error&) {
    // Nobody is left to tell; the cluster frees the session when it notices.
  }
}

SessionInterface& Session::session() const {
  if (!session_) fail(Code::failed_precondition, "this Session was moved from");
  return *session_;
}

SessionInterface& Session::up_to_date() {
  SessionInterface& session = this->session();
  const size_t nodes = graph_.size();
  if (nodes != *nodes_taken_) {
    session.extend(graph_);  // by one thread at a time, each time by what is new
    *nodes_taken_ = nodes;
  }
  return session;
}

void Session::initialize() {
  Targets all;
  for (const char* collection : {"initializers", "table_initializers"}) {
    for (const Output& initializer : graph_.collection(collection))
      all.push_back(Target(*initializer.node));
  }
  if (all.empty()) return check_without_initialisers(graph_);
  run({}, std::vector<Output>(), all);
}

std::vector<Tensor> Session::run(const Feeds& feeds, const std::vector<Output>& fetches,
                                 const Targets& targets, const RunOptions& options,
                                 RunMetadata* metadata) {
  NamedTensors named;
  named.reserve(feeds.size());
  for (const Feed& feed : feeds) {
    check_graph(feed.endpoint.node, graph_, "feed");
    named.emplace_back(feed.endpoint.name(), feed.value);
  }
  return located(graph_, [&] {
    return up_to_date().run(named, names_of(fetches, graph_, "fetch"), names_of(targets, graph_),
                            options, metadata);
  });
}

std::vector<Tensor> Session::run(const Feeds& feeds, const Targets& list) {
  std::vector<Output> fetches;
  Targets targets;
  for (const Target& each : list) {
    // Of a node without outputs, and of state, there is nothing to fetch.
    const bool has_value = each.output && each.output.index < each.node->num_outputs() &&
                           each.output.dtype() != DType::resource &&
                           each.output.dtype() != DType::variant;
    if (has_value) {
      fetches.push_back(each.output);
    } else {
      targets.push_back(each);
    }
  }
  return run(feeds, fetches, targets);
}

Callable Session::prepare(const std::vector<Output>& feeds, const std::vector<Output>& fetches,
                          const Targets& targets) {
  StepSignature signature{names_of(feeds, graph_, "feed"), names_of(fetches, graph_, "fetch"),
                          names_of(targets, graph_)};
  const auto handle = up_to_date().make_callable(signature);
  return {session_, handle, graph_};
}

std::vector<DeviceDescription> Session::list_devices() { return session().list_devices(); }

void Session::close() { session().close(); }

std::ostream& operator<<(std::ostream& out, const std::vector<Tensor>& values) {
  for (size_t i = 0; i < values.size(); ++i) out << (i == 0 ? "" : "\n") << values[i];
  return out;
}

}  // namespace leat
