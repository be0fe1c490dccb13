#include "distributed/master/cluster_program.h"

#include <algorithm>
#include <mutex>
#include <set>

#include "distributed/loss_text.h"
#include "distributed/random_id.h"

namespace leat {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto register_limit = std::chrono::seconds(60);

TaskName task_of(const std::string& device) { return TaskName::of(DeviceName::parse(device)); }

// State shared by the workers' answers.
struct Registering {
  std::mutex mutex;
  std::shared_ptr<ClusterProgram> program = std::make_shared<ClusterProgram>();
  size_t missing = 0;
  Status status;
  std::vector<TaskName> restarted;
  std::set<TaskName> silent;  // not answered yet
  const Clock::time_point since = Clock::now();
  std::shared_ptr<const void> listed;

  std::vector<StepActivity> activity() {
    std::vector<StepActivity> out;
    std::lock_guard lock(mutex);
    for (const TaskName& task : silent) {
      out.push_back({"waits for its part of a graph to be compiled", task.to_string(),
                     std::chrono::nanoseconds(Clock::now() - since).count()});
    }
    return out;
  }
};

// What each task is told.
std::map<TaskName, RegisterGraph> requests_of(const Peers& peers, const ProgramOwner& owner,
                                              PartitionedGraph& graph, const TaskStatuses& tasks) {
  std::map<TaskName, RegisterGraph> out;
  for (auto& [device, partition] : graph.partitions) {
    out[task_of(device)].partitions.emplace(device, std::move(partition));
  }
  for (auto& [task, request] : out) {
    const auto known = tasks.find(task);
    check_internal(known != tasks.end(), "nodes were placed on ", task,
                   ", which the session does not know");
    request.request_id = random_id();
    request.worker_incarnation = known->second.incarnation;
    request.session = owner.session;
    request.isolate_state = owner.isolate_state;
    request.master = peers.self;
    request.master_incarnation = owner.master_incarnation;
  }
  for (const CutEdge& edge : graph.edges) {
    for (const TaskName& task : std::set{TaskName::of(edge.source), TaskName::of(edge.destination)})
      if (const auto found = out.find(task); found != out.end())
        found->second.edges.push_back(edge);
  }
  for (const auto& [fetch, device] : graph.fetch_devices) {
    if (const auto found = out.find(task_of(device)); found != out.end())
      found->second.fetches.push_back(fetch);
  }
  return out;
}

}  // namespace

ClusterProgram::~ClusterProgram() {
  for (const Part& part : parts) part.worker->deregister_graph(session, part.graph);
}

void register_program(const Peers& peers, const ProgramOwner& owner, PartitionedGraph graph,
                      const std::vector<std::string>& targets, const TaskStatuses& tasks,
                      ProgramRegistered done) {
  std::map<std::string, TaskName> target_tasks;
  for (const auto& [device, partition] : graph.partitions) {
    for (const std::string& target : targets) {
      if (partition.find(target) != nullptr) target_tasks[target] = task_of(device);
    }
  }
  std::map<std::string, DType> fetch_dtypes;  // while the partitions are here
  for (const auto& [fetch, device] : graph.fetch_devices)
    fetch_dtypes[fetch] = graph.partitions.at(device).output(fetch).dtype();
  std::map<TaskName, RegisterGraph> requests = requests_of(peers, owner, graph, tasks);
  const auto state = std::make_shared<Registering>();
  ClusterProgram& program = *state->program;
  program.session = owner.session;
  program.target_tasks = std::move(target_tasks);
  program.fetch_dtypes = std::move(fetch_dtypes);
  for (const auto& [fetch, device] : graph.fetch_devices) {
    program.fetch_tasks[fetch] = task_of(device);
  }
  std::map<TaskName, std::set<std::string>> feeds;
  for (const auto& [feed, devices] : graph.feed_devices) {
    for (const std::string& device : devices) feeds[task_of(device)].insert(feed);
  }
  for (const auto& [task, request] : requests) {
    ClusterProgram::Part part;
    part.task = task;
    part.worker = peers.worker(task);
    part.incarnation = request.worker_incarnation;
    part.graph = request.request_id;  // deregistered even if the answer does not come
    part.feeds.assign(feeds[task].begin(), feeds[task].end());
    program.parts.push_back(std::move(part));
  }
  program.edges = std::move(graph.edges);
  program.fetch_feeds = std::move(graph.fetch_feeds);
  state->missing = requests.size();
  if (requests.empty()) return done({}, state->program, {});
  for (const auto& [task, request] : requests) state->silent.insert(task);
  if (peers.waits != nullptr) {
    state->listed = peers.waits->add([weak = std::weak_ptr(state)] {
      const auto state = weak.lock();
      return state != nullptr ? state->activity() : std::vector<StepActivity>();
    });
  }

  size_t index = 0;
  for (auto& [task, request] : requests) {
    const auto registered = [state, done, task = task, index, last_heard = peers.last_heard](
                                const Status& status, uint64_t handle) {
      std::shared_ptr<const void> listed;  // goes outside the lock
      {
        std::lock_guard lock(state->mutex);
        state->silent.erase(task);
        if (status.is_ok()) state->program->parts[index].graph = handle;
        if (status.code == Code::aborted) state->restarted.push_back(task);
        if (!status.is_ok() && state->status.is_ok()) {
          state->status = status;
          if (status.code == Code::unavailable) {
            state->status.message += "; " + debt_text("the compilation of its part of the step");
            if (last_heard) state->status.message += ", " + last_heard(task);
          }
        }
        if (--state->missing > 0) return;
        listed.swap(state->listed);
      }
      done(state->status, state->status.is_ok() ? state->program : nullptr, state->restarted);
    };
    program.parts[index++].worker->register_graph(std::move(request), Clock::now() + register_limit,
                                                  registered);
  }
}

}  // namespace leat
