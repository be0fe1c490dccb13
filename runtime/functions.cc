#include "runtime/functions.h"

#include <algorithm>
#include <atomic>

#include "core/execution/step_end.h"
#include "core/execution/thread_pool.h"
#include "core/state/resource.h"
#include "core/state/variable.h"
#include "graph/import/graph_def.h"
#include "graph/passes/pipeline.h"
#include "runtime/local_rendezvous.h"
#include "runtime/pending_step.h"
#include "runtime/registered_graph.h"

namespace leat {
namespace {

constexpr auto for_ever = std::chrono::hours(24 * 365);  // the caller's step ends it before

// State that exists only in the function: the progress of its random ops.
bool has_own_state(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const auto& node) {
    const bool gives_value = !node->outputs.empty() && node->outputs[0].dtype != DType::variant &&
                             !node->outputs[0].is_handle();
    const bool takes_handle = std::any_of(node->inputs.begin(), node->inputs.end(),
                                          [](const Output& input) { return input.is_handle(); });
    return node->op->is_stateful && gives_value && !takes_handle &&
           !node->op->name.starts_with('_');
  });
}

class CompiledFunction final : public CallableFunction,
                               public std::enable_shared_from_this<CompiledFunction> {
 public:
  CompiledFunction(const WrittenFunction& written, Containers& containers, const DeviceName& device,
                   const FileRoots& files, ThreadPool& pool)
      : arguments_(static_cast<int>(written.arguments)),
        device_(make_cpu_device(device, loops_, files)) {
    Graph graph;
    from_graph_def(written.graph, graph);
    has_own_state_ = leat::has_own_state(graph);
    StepSignature signature{.feeds = {}, .fetches = written.results, .targets = written.effects};
    PlacementOptions placement{.devices = {{device, DeviceType::cpu}},
                               .default_device = device,
                               .allow_soft_placement = true};
    PartitionedGraph parts = run_pipeline(
        graph, {.signature = signature.normalised(), .placement = placement, .after_pass = {}});
    check_internal(parts.edges.empty(), "a function on one device has edges between devices");
    graph_ = std::make_unique<RegisteredGraph>(
        std::move(parts.partitions), signature.normalised().fetches, parts.edges,
        TaskResources{
            .devices = {device_.get()},
            .pool = &pool,
            // Not owned: iterators, which own functions, are in the containers.
            .containers = std::shared_ptr<Containers>(std::shared_ptr<void>(), &containers),
            .node_states = std::make_shared<NodeStates>()});
    std::vector<std::string> feeds;
    for (int i = 0; i < arguments_; ++i) feeds.push_back(concat("argument:", i));
    call_ = graph_->prepare(feeds, written.results);
  }

  int arguments() const override { return arguments_; }
  bool has_own_state() const { return has_own_state_; }

  std::vector<Tensor> run(std::vector<Tensor> arguments,
                          Cancellation& cancellation) const override {
    check(static_cast<int>(arguments.size()) == arguments_, "a function of ", arguments_,
          " arguments is called with ", arguments.size());
    std::vector<Tensor> results;
    if (!graph_->runs_on_caller()) return run_and_wait(arguments, cancellation);
    if (StepEnd::of_thread() != nullptr) {
      graph_->run_here(*call_, arguments, results);
      return results;
    }
    // A thread of an iterator, which works ahead of the steps: the iterator's end ends it.
    const auto end = std::make_shared<StepEnd::Flag>(false);
    const auto token =
        cancellation.add([end](const Status&) { end->store(true, std::memory_order_relaxed); });
    const std::unique_ptr<void, std::function<void(void*)>> removed(
        end.get(), [&](void*) { cancellation.remove(token); });
    const StepEnd::Scope scope(end.get());
    graph_->run_here(*call_, arguments, results);
    return results;
  }

 private:
  struct End {
    Status why;
    std::atomic<bool> has_come{false};
  };

  std::vector<Tensor> run_and_wait(std::span<const Tensor> arguments,
                                   Cancellation& cancellation) const {
    auto step = std::make_shared<PendingStep>();
    step->keeps = shared_from_this();
    step->begin(next_step_.fetch_add(1));
    const auto end = std::make_shared<End>();
    // It may be called later than remove().
    const auto token =
        cancellation.add([self = shared_from_this(), id = step->id, end](const Status& why) {
          end->why = why;
          end->has_come = true;
          self->graph_->cancel(id, why);
        });
    graph_->start(*call_, step->id, arguments, std::make_shared<LocalRendezvous>(0), &step->fetches,
                  [step](const Status& status) { step->finish(status); });
    if (end->has_come) graph_->cancel(step->id, end->why);  // it came before the start
    try {
      step->wait(*graph_, for_ever);
    } catch (...) {
      cancellation.remove(token);
      throw;
    }
    cancellation.remove(token);
    return std::move(step->fetches);
  }

  const int arguments_;
  bool has_own_state_ = false;
  ThreadPool loops_{0};  // on the thread that calls
  const std::unique_ptr<Device> device_;
  std::unique_ptr<RegisteredGraph> graph_;
  std::shared_ptr<const RegisteredGraph::Call> call_;
  mutable std::atomic<int64_t> next_step_{1};
};

}  // namespace

Functions::Functions(Containers& containers, const Device& device, ThreadPool& pool)
    : containers_(containers), device_(device.name()), files_(files_of(device)), pool_(pool) {}

std::shared_ptr<const CallableFunction> Functions::compiled(const WrittenFunction& written) {
  const std::lock_guard lock(mutex_);
  const auto known = functions_.find(written.name);
  if (known != functions_.end() && known->second.written == written) return known->second.function;
  const auto function =
      std::make_shared<CompiledFunction>(written, containers_, device_, files_, pool_);
  if (!function->has_own_state()) functions_[written.name] = {written, function};
  return function;
}

}  // namespace leat
