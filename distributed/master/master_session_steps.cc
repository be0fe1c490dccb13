// The steps of a session, and its callables: from a client's request to a ClusterStep.
#include "distributed/master/master_session.h"

#include "core/execution/thread_pool.h"
#include "core/execution/work_source.h"
#include "graph/endpoint.h"
#include "graph/import/graph_def.h"

namespace leat {
namespace {

struct ParsedRequest {
  StepSignature signature;  // normalised
  ClusterStep::Request step;
};

ParsedRequest parse(ClientRequest request) {
  ParsedRequest out;
  for (auto& [name, tensor] : request.feeds) {
    std::string feed = Endpoint::complete(std::move(name));
    out.signature.feeds.push_back(feed);
    check(out.step.feeds.emplace(feed, std::move(tensor)).second, feed, " is fed more than once.");
  }
  for (std::string& fetch : request.fetches) {
    out.step.fetches.push_back(Endpoint::complete(std::move(fetch)));
    out.signature.fetches.push_back(out.step.fetches.back());
  }
  out.signature.targets = std::move(request.targets);
  out.signature.connections = std::move(request.connections);
  check(!out.signature.fetches.empty() || !out.signature.targets.empty(),
        "Must specify at least one target to fetch or execute.");
  out.signature = out.signature.normalised();
  out.step.trace = request.options.trace;
  out.step.any_size = request.any_size;
  out.step.times = request.times;
  return out;
}

}  // namespace

MasterSession::Cancel MasterSession::run(ClientRequest request, ClusterStep::Done done) {
  const bool with_graphs = request.options.partition_graphs;
  ParsedRequest parsed;
  try {
    parsed = parse(std::move(request));
  } catch (...) {
    done({.status = status_of_current_exception()});
    return [](const Status&) {};
  }
  return start(std::move(parsed.signature), std::move(parsed.step), with_graphs, std::move(done));
}

// `signature` is normalised.
MasterSession::Cancel MasterSession::start(StepSignature signature, ClusterStep::Request step,
                                           bool with_graphs, ClusterStep::Done done) {
  std::shared_ptr<SessionStep> run;
  try {
    run = admit(done);
  } catch (...) {
    done({.status = status_of_current_exception()});
    return [](const Status&) {};
  }
  const auto self = shared_from_this();
  const ClusterStep::Done end = [self, run](StepOutcome outcome) {
    run->end(std::move(outcome));
    self->run_ended(run);
  };
  const Timer::Id too_late = end_unless_built(step.times.deadline, end);
  ClusterStep::Done step_done = with_graphs ? add_partition_graphs(signature, end) : end;
  program(signature,
          [self, run, end, too_late, step = std::move(step), step_done = std::move(step_done)](
              const Status& status, const ClusterProgramCache::Program& program) mutable {
            self->peers_->timer->cancel(too_late);
            if (!status.is_ok()) return end({.status = status});
            const auto started = std::make_shared<ClusterStep>(
                self->peers_, program, std::move(step), std::move(step_done));
            if (!run->begin(started)) return self->run_ended(run);
            started->start();
          });
  return [weak = std::weak_ptr<SessionStep>(run)](const Status& status) {
    if (const auto run = weak.lock()) run->cancel(status);
  };
}

std::shared_ptr<SessionStep> MasterSession::admit(ClusterStep::Done done) {
  auto run = std::make_shared<SessionStep>(
      [self = shared_from_this(), done = std::move(done)](StepOutcome outcome) {
        self->forget_programs_on(outcome.restarted);
        done(std::move(outcome));
      });
  std::lock_guard lock(mutex_);
  throw_if_error(closed_);
  runs_.insert(run);
  has_client_left_ = false;
  return run;
}

// Ends a step whose program is not there by its deadline; when it has begun it minds that itself.
Timer::Id MasterSession::end_unless_built(Deadline deadline, ClusterStep::Done end) {
  if (!deadline) return 0;
  return peers_->timer->at(*deadline, [self = shared_from_this(), end = std::move(end)] {
    std::string text = "the step's deadline passed while its program was being built";
    for (const StepActivity& each : self->waits_.now())
      text += concat("; ", self->peers_->self, ' ', each.to_string());
    end({.status = {Code::deadline_exceeded, text, false}});
  });
}

// What makes the graphs before a step's end is told.
ClusterStep::Done MasterSession::add_partition_graphs(const StepSignature& signature,
                                                      ClusterStep::Done end) {
  return [self = shared_from_this(), signature, end = std::move(end)](StepOutcome outcome) {
    const WorkSource::Scope source(WorkSource::requests);
    self->pool_.schedule([self, end, signature, outcome = std::move(outcome)]() mutable {
      try {
        if (outcome.status.is_ok())
          outcome.metadata.partition_graphs = self->partition_graphs(signature);
      } catch (...) {
        outcome.status = status_of_current_exception();
      }
      end(std::move(outcome));
    });
  };
}

// The cached program's graphs are the workers' now, so they are made again.
std::vector<std::string> MasterSession::partition_graphs(const StepSignature& signature) {
  std::shared_ptr<const Graph> graph;
  TaskStatuses tasks;
  {
    std::lock_guard lock(mutex_);
    graph = graph_.get();
    tasks = tasks_;
  }
  std::vector<std::string> out;
  for (const auto& [device, partition] :
       run_pipeline(*graph, pipeline_options(signature, tasks)).partitions) {
    out.push_back(to_graph_def(partition, /*assigned_devices=*/true));
  }
  return out;
}

void MasterSession::run_ended(const std::shared_ptr<SessionStep>& run) {
  std::vector<std::function<void()>> idle;
  {
    std::lock_guard lock(mutex_);
    runs_.erase(run);
    last_used_ = std::chrono::steady_clock::now();
    if (runs_.empty()) idle.swap(when_idle_);
  }
  for (const auto& action : idle) action();
}

void MasterSession::make_callable(StepSignature signature, const RunOptions& options,
                                  std::function<void(const Status&, int64_t)> done) {
  try {
    check(!signature.fetches.empty() || !signature.targets.empty(),
          "Must specify at least one target to fetch or execute.");
    for (std::string& feed : signature.feeds) feed = Endpoint::complete(std::move(feed));
    for (std::string& fetch : signature.fetches) fetch = Endpoint::complete(std::move(fetch));
    const std::set<std::string> feeds(signature.feeds.begin(), signature.feeds.end());
    check(feeds.size() == signature.feeds.size(), "a callable feeds a tensor more than once");
    std::lock_guard lock(mutex_);
    throw_if_error(closed_);
  } catch (...) {
    return done(status_of_current_exception(), 0);
  }
  program(signature.normalised(),
          [self = shared_from_this(), signature, options, done = std::move(done)](
              const Status& status, const ClusterProgramCache::Program&) {
            if (!status.is_ok()) return done(status, 0);
            int64_t handle = 0;
            {
              std::lock_guard lock(self->mutex_);
              handle = ++self->last_callable_;
              self->callables_[handle] = {signature, options};
            }
            done({}, handle);
          });
}

ClientRequest MasterSession::request_of_callable(int64_t handle, std::vector<Tensor> feeds) const {
  ClientRequest request;
  std::lock_guard lock(mutex_);
  throw_if_error(closed_);
  const auto found = callables_.find(handle);
  check(found != callables_.end(), "No such callable handle: ", handle);
  const StepSignature& signature = found->second.signature;
  check_feeds(signature, feeds.size());
  for (size_t i = 0; i < feeds.size(); ++i)
    request.feeds.emplace_back(signature.feeds[i], std::move(feeds[i]));
  request.fetches = signature.fetches;
  request.targets = signature.targets;
  request.connections = signature.connections;
  request.options = found->second.options;
  return request;
}

void MasterSession::release_callable(int64_t handle) {
  std::lock_guard lock(mutex_);
  check(callables_.erase(handle) == 1, "No such callable handle: ", handle);
}

}  // namespace leat
