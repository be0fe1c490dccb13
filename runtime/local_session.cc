#include "runtime/local_session.h"

#include <algorithm>
#include <thread>

#include "core/memory/block_memory.h"
#include "graph/endpoint.h"
#include "graph/import/graph_def.h"
#include "graph/passes/placer.h"
#include "runtime/local_rendezvous.h"
#include "runtime/pending_step.h"
#include "runtime/program.h"

namespace leat {
namespace {

// close() waits this long for steps that it ended.
constexpr auto patience = std::chrono::seconds(60);
constexpr size_t max_graphs = 64;
constexpr size_t max_spellings = 1024;  // of their signatures

int threads_of(const SessionOptions& options) {
  check(options.threads >= 0, "a session cannot have ", options.threads,
        " threads: give 0 for one per core, or more");
  if (options.threads > 0) return options.threads;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

size_t hash_of(const StepSignature& signature) {
  size_t hash = 0;
  const auto add = [&](const std::vector<std::string>& names) {
    for (const std::string& name : names) hash = hash * 31 + std::hash<std::string>()(name);
    hash = hash * 31 + names.size();
  };
  add(signature.feeds);
  add(signature.fetches);
  add(signature.targets);
  return hash;
}

std::vector<std::string> endpoints(const std::vector<std::string>& names) {
  std::vector<std::string> out;
  for (const std::string& name : names) out.push_back(Endpoint::complete(name));
  return out;
}

Status cancelled_by_close() {
  return {Code::cancelled, "Step was cancelled by an explicit call to `Session::Close()`."};
}

}  // namespace

LocalSession::Running::Running(LocalSession& session) : session_(session) {
  session_.running_.fetch_add(1);
  if (!session_.is_closed_.load()) return;
  leave();
  fail(Code::failed_precondition, "Session is closed.");
}

void LocalSession::Running::leave() {
  if (session_.running_.fetch_sub(1) == 1 && session_.is_closed_.load()) {
    const std::lock_guard lock(session_.idle_mutex_);
    session_.idle_.notify_all();
  }
}

LocalSession::LocalSession(const SessionOptions& options, const LocalDevices& devices)
    : options_(options), timeout_(call_timeout(options)), pool_(threads_of(options)) {
  const DeviceName task = DeviceName::parse("/job:localhost/replica:0/task:0");
  for (int i = 0; i < devices.cpus; ++i) {
    DeviceName name = task;
    name.type = "CPU";
    name.id = i;
    devices_.push_back(make_cpu_device(name, pool_));
  }
  if (devices.gpus) {
    for (auto& gpu : make_gpu_devices(task)) devices_.push_back(std::move(gpu));
  }
  for (const auto& device : devices_) {
    resources_.devices.push_back(device.get());
    placement_.devices.push_back({device->name(), device->type()});
  }
  placement_.default_device = devices_.front()->name();
  placement_.allow_soft_placement = options.allow_soft_placement;
  placement_.log_placement = options.log_placement;
  placement_.gpus = options.gpus;
  resources_.pool = &pool_;
  resources_.containers = std::make_shared<Containers>();
  resources_.node_states = std::make_shared<NodeStates>();
}

LocalSession::~LocalSession() {
  try {
    close();
  } catch (const Error&) {
    // A step does not end; nobody is left to tell.
  }
  // Graphs before the devices whose memory they hold.
  callables_.clear();
  spellings_.clear();
  entries_.clear();
}

void LocalSession::extend(const Graph& graph) {
  const Running running(*this);
  const std::unique_lock lock(graph_mutex_);
  // All or nothing: what may be wrong first.
  for (size_t n = nodes_.size(); n < graph.size(); ++n) {
    const Node& node = *graph.nodes()[n];
    check(graph_.find(node.name) == nullptr, "node '", node.name,
          "' is already in the session's graph");
    const auto check_is_before = [&](const Node& other) {
      check(other.id < node.id, "node '", node.name, "' depends on '", other.name,
            "', which was added to the graph after it: add a node's inputs before it, and "
            "make loops with while_loop()");
    };
    for (const Output& input : node.inputs) check_is_before(*input.node);
    for (const Node* control : node.control_inputs) check_is_before(*control);
  }
  for (size_t n = nodes_.size(); n < graph.size(); ++n) {
    const Node& node = *graph.nodes()[n];
    std::vector<Output> inputs;
    for (const Output& input : node.inputs)
      inputs.push_back({nodes_.at(input.node->id), input.index});
    std::vector<Node*> controls;
    for (const Node* control : node.control_inputs) controls.push_back(nodes_.at(control->id));
    nodes_.push_back(&graph_.copy(node, std::move(inputs), std::move(controls)));
  }
  place_stateful(graph_, placement_);
}

// ---- Signatures ----

std::shared_ptr<const LocalSession::Prepared> LocalSession::prepared(
    const StepSignature& spelling) {
  const size_t hash = hash_of(spelling);
  {
    const std::lock_guard lock(cache_mutex_);
    const auto [begin, end] = spellings_.equal_range(hash);
    for (auto it = begin; it != end; ++it) {
      if (it->second->spelling == spelling) return it->second;
    }
  }
  StepSignature complete = spelling;
  complete.feeds = endpoints(spelling.feeds);
  complete.fetches = endpoints(spelling.fetches);
  std::vector<std::string> feeds = complete.feeds;
  std::sort(feeds.begin(), feeds.end());
  if (const auto twice = std::adjacent_find(feeds.begin(), feeds.end()); twice != feeds.end()) {
    fail(Code::invalid_argument, "Endpoint \"", *twice, "\" fed more than once.");
  }
  const std::shared_ptr<Entry> entry = entry_of(complete.normalised());
  auto prepared = std::make_shared<Prepared>();
  prepared->spelling = spelling;
  prepared->graph = entry->graph;
  prepared->edges = entry->edges;
  prepared->call = entry->graph->prepare(complete.feeds, complete.fetches);
  const std::lock_guard lock(cache_mutex_);
  if (std::find(entries_.begin(), entries_.end(), entry) == entries_.end()) return prepared;
  if (spellings_.size() >= max_spellings) spellings_.clear();
  spellings_.emplace(hash, prepared);
  return prepared;
}

std::shared_ptr<LocalSession::Entry> LocalSession::entry_of(const StepSignature& signature) {
  std::shared_ptr<Entry> entry;
  {
    std::unique_lock lock(cache_mutex_);
    const auto found = std::find_if(entries_.begin(), entries_.end(),
                                    [&](const auto& e) { return e->signature == signature; });
    if (found != entries_.end()) {
      entries_.splice(entries_.begin(), entries_, found);
      entry = entries_.front();
      const bool is_built = built_.wait_for(lock, timeout_, [&] { return entry->is_built; });
      if (!is_built)
        fail(Code::deadline_exceeded, "another thread is still preparing the same step (",
             signature.to_string(), ")");
      throw_if_error(entry->failure);
      return entry;
    }
    entry = std::make_shared<Entry>();
    entry->signature = signature;
    entries_.push_front(entry);
  }
  try {
    build(*entry);
  } catch (...) {
    const std::lock_guard lock(cache_mutex_);
    entry->failure = status_of_current_exception();
    entry->is_built = true;
    entries_.remove(entry);
    built_.notify_all();
    throw;
  }
  std::vector<std::shared_ptr<const void>> dropped;  // dies outside the lock
  const std::lock_guard lock(cache_mutex_);
  entry->is_built = true;
  built_.notify_all();
  while (entries_.size() > max_graphs && entries_.back()->is_built && entries_.back() != entry) {
    const auto oldest = std::move(entries_.back());
    entries_.pop_back();
    std::erase_if(evicted_, [](const auto& graph) { return graph.expired(); });
    evicted_.push_back(oldest->graph);
    for (auto it = spellings_.begin(); it != spellings_.end();) {
      const bool is_its = it->second->graph == oldest->graph;
      if (is_its) dropped.push_back(it->second);
      it = is_its ? spellings_.erase(it) : std::next(it);
    }
    dropped.push_back(oldest);
  }
  return entry;
}

void LocalSession::build(Entry& entry) {
  PartitionedGraph partitioned;
  {
    const std::shared_lock lock(graph_mutex_);
    partitioned = run_pipeline(
        graph_, {.signature = entry.signature,
                 .placement = placement_,
                 .simplify = simplify_extent(options_.simplify, options_.simplify_arithmetic),
                 .fuse = options_.fuse,
                 .recompute = options_.recompute,
                 .mixed_precision = options_.mixed_precision,
                 .after_pass = {}});
  }
  entry.edges = partitioned.edges.size();
  entry.graph = std::make_shared<RegisteredGraph>(
      std::move(partitioned.partitions), entry.signature.fetches, partitioned.edges, resources_);
}

size_t LocalSession::prepared_graphs() const {
  const std::lock_guard lock(cache_mutex_);
  return entries_.size();
}

// ---- Steps ----

std::vector<Tensor> LocalSession::run(const NamedTensors& feeds,
                                      const std::vector<std::string>& fetches,
                                      const std::vector<std::string>& targets,
                                      const RunOptions& options, RunMetadata* metadata) {
  const Running running(*this);
  StepSignature spelling;
  std::vector<Tensor> values, out;
  for (const auto& [name, value] : feeds) {
    spelling.feeds.push_back(name);
    values.push_back(value);
  }
  spelling.fetches = fetches;
  spelling.targets = targets;
  const auto step = prepared(spelling);
  if (options.trace && metadata != nullptr) {
    run_traced(step, values, out, call_timeout(options_, options.timeout), *metadata);
  } else {
    run(step, values, out, call_timeout(options_, options.timeout));
  }
  if (options.partition_graphs && metadata != nullptr) {
    for (const auto& program : step->graph->programs())
      metadata->partition_graphs.push_back(to_graph_def(program->plan().graph, true));
  }
  return out;
}

// Of the cache, and those that it has dropped and callables or running steps still hold.
std::vector<std::shared_ptr<RegisteredGraph>> LocalSession::graphs() {
  std::vector<std::shared_ptr<RegisteredGraph>> graphs;
  {
    const std::lock_guard lock(cache_mutex_);
    for (const auto& entry : entries_) {
      if (entry->is_built && entry->graph) graphs.push_back(entry->graph);
    }
    for (const auto& evicted : evicted_) {
      if (auto graph = evicted.lock()) graphs.push_back(std::move(graph));
    }
  }
  {
    const std::lock_guard lock(callables_mutex_);
    for (const auto& callable : callables_) {
      if (callable) graphs.push_back(callable->graph);
    }
  }
  std::sort(graphs.begin(), graphs.end());
  graphs.erase(std::unique(graphs.begin(), graphs.end()), graphs.end());
  return graphs;
}

// Gives back the memory of steps that are no longer run.
void LocalSession::drop_unused() {
  for (const auto& graph : graphs()) graph->drop_unused();
  BlockMemory::process().trim();
}

void LocalSession::run(const std::shared_ptr<const Prepared>& prepared,
                       std::span<const Tensor> feeds, std::vector<Tensor>& fetches,
                       std::chrono::milliseconds timeout) {
  const int64_t calls = calls_.load(std::memory_order_relaxed) + 1;
  const bool is_due = calls >= calls_of_memory;
  calls_.store(is_due ? 0 : calls, std::memory_order_relaxed);  // a lost count does no harm
  if (is_due) drop_unused();
  if (prepared->graph->runs_on_caller())
    return prepared->graph->run_here(*prepared->call, feeds, fetches);
  auto step = std::make_shared<PendingStep>();
  step->keeps = prepared;
  step->begin(next_step_.fetch_add(1));
  step->fetches = std::move(fetches);
  prepared->graph->start(*prepared->call, step->id, feeds,
                         std::make_shared<LocalRendezvous>(prepared->edges), &step->fetches,
                         [step](const Status& status) { step->finish(status); });
  cancel_if_closed(*prepared->graph, step->id);
  step->wait(*prepared->graph, timeout);
  fetches = std::move(step->fetches);
}

// close() may have cancelled the steps of the graph before this one was among them.
void LocalSession::cancel_if_closed(RegisteredGraph& graph, int64_t step) const {
  if (is_closed_.load()) graph.cancel(step, cancelled_by_close());
}

void LocalSession::run_traced(const std::shared_ptr<const Prepared>& prepared,
                              std::span<const Tensor> feeds, std::vector<Tensor>& fetches,
                              std::chrono::milliseconds timeout, RunMetadata& metadata) {
  StepRequest request{.step_id = next_step_.fetch_add(1),
                      .feeds = {},
                      .rendezvous = std::make_shared<LocalRendezvous>(prepared->edges),
                      .trace = true};
  const std::vector<std::string> names = endpoints(prepared->spelling.feeds);
  for (size_t i = 0; i < feeds.size(); ++i) {
    if (prepared->graph->has_feed(names[i])) request.feeds.emplace_back(names[i], feeds[i]);
  }
  auto step = std::make_shared<PendingStep>();
  step->keeps = prepared;
  auto result = std::make_shared<StepResult>();
  step->begin(request.step_id);
  prepared->graph->run(std::move(request), [step, result](StepResult r) {
    *result = std::move(r);
    step->finish(result->status);
  });
  cancel_if_closed(*prepared->graph, step->id);
  step->wait(*prepared->graph, timeout);
  metadata.events = std::move(result->events);
  fetches.clear();
  for (const std::string& name : endpoints(prepared->spelling.fetches)) {
    for (const auto& [fetch, value] : result->fetches) {
      if (fetch == name) fetches.push_back(value);
    }
  }
}

// ---- Callables ----

SessionInterface::CallableHandle LocalSession::make_callable(const StepSignature& signature) {
  const Running running(*this);
  auto step = prepared(signature);
  const std::lock_guard lock(callables_mutex_);
  callables_.push_back(std::move(step));
  return static_cast<CallableHandle>(callables_.size()) - 1;
}

std::shared_ptr<const LocalSession::Prepared> LocalSession::callable(CallableHandle handle) const {
  const std::lock_guard lock(callables_mutex_);
  const bool is_known = handle >= 0 && handle < static_cast<CallableHandle>(callables_.size()) &&
                        callables_[handle] != nullptr;
  check(is_known, "No such callable handle: ", handle);
  return callables_[handle];
}

std::shared_ptr<const RegisteredGraph> LocalSession::registered_graph(CallableHandle handle) const {
  return callable(handle)->graph;
}

void LocalSession::run_callable(CallableHandle handle, std::span<const Tensor> feeds,
                                std::vector<Tensor>& fetches) {
  const Running running(*this);
  const auto step = callable(handle);
  check_feeds(step->spelling, feeds.size());
  run(step, feeds, fetches, timeout_);
}

void LocalSession::release_callable(CallableHandle handle) {
  std::shared_ptr<const Prepared> dropped = callable(handle);
  const std::lock_guard lock(callables_mutex_);
  callables_[handle].reset();
}

// ---- The rest ----

std::vector<DeviceDescription> LocalSession::list_devices() {
  const Running running(*this);
  std::vector<DeviceDescription> out;
  for (const auto& device : devices_) {
    out.push_back({device->name().to_string(), std::string(device_type_name(device->type())),
                   device->memory_limit(), 1, device->problem()});
  }
  return out;
}

void LocalSession::close() {
  is_closed_.store(true);
  for (const auto& graph : graphs()) graph->cancel(cancelled_by_close());
  std::unique_lock lock(idle_mutex_);
  const bool is_idle = idle_.wait_for(lock, patience, [&] { return running_.load() == 0; });
  if (!is_idle)
    fail(Code::deadline_exceeded, running_.load(), " calls of a closed session did not end within ",
         patience.count(), " s");
}

}  // namespace leat
