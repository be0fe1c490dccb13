#include "frontends/cpp/cluster.h"

#include <fcntl.h>

#include <charconv>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <optional>

#include "core/error.h"
#include "distributed/cluster/cluster_resolvers.h"
#include "distributed/hosted_task.h"

namespace leat {
namespace {

// What the launcher tells this process alone: taken once, and not passed on to children. None if it
// is not there.
template <class Number>
std::optional<Number> take_from_environment(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  const std::string value = text;
  unsetenv(variable);
  Number out{};
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), out);
  check(error == std::errc() && end == value.data() + value.size(), variable, "=\"", value,
        "\" is not a number: unset it; only `leat run --embed` sets it");
  return out;
}

// The launcher's socket, if it has started this program as a task.
std::optional<int> take_launcher_fd() {
  const std::optional<int> fd = take_from_environment<int>(launcher_fd_variable);
  check(!fd || fcntl(*fd, F_SETFD, FD_CLOEXEC) == 0, launcher_fd_variable, "=", fd.value_or(-1),
        " is not an open file: unset it; only `leat run --embed` sets it");
  return fd;
}

}  // namespace

struct Cluster::State {
  ResolvedCluster cluster;
  std::optional<HostedTask> hosted;
  bool has_launcher = false;
  int exceptions = std::uncaught_exceptions();
};

Cluster::Cluster(std::unique_ptr<State> state) : state_(std::move(state)) {}
Cluster::Cluster(Cluster&&) noexcept = default;

Cluster::~Cluster() {
  if (state_ == nullptr || !state_->hosted) return;
  const bool is_failing = std::uncaught_exceptions() > state_->exceptions;
  if (is_failing || !state_->has_launcher) return;
  state_->hosted->done();
  state_->hosted->serve();
}

const ClusterSpec& Cluster::spec() const { return state_->cluster.spec; }
const std::optional<TaskName>& Cluster::task() const { return state_->cluster.task; }

std::string Cluster::target() const {
  const ResolvedCluster& cluster = state_->cluster;
  return cluster.task ? "grpc://" + cluster.spec.address(*cluster.task) : "";
}

bool Cluster::is_chief() const { return !state_->cluster.task || state_->cluster.is_chief(); }

Cluster join_cluster(const JoinOptions& options) {
  auto state = std::make_unique<Cluster::State>();
  const std::optional<int> launcher_fd = take_launcher_fd();
  const auto start_timeout = take_from_environment<double>(start_timeout_variable);
  if (auto cluster = cluster_from_environment()) {
    state->cluster = std::move(*cluster);
  } else if (const std::string note = note_on_unused_ranks(process_environment()); !note.empty()) {
    std::cerr << note << std::endl;
  }
  const ResolvedCluster& found = state->cluster;
  check(found.task || found.spec.size() == 0,
        "TF_CONFIG has a cluster but does not name this process's task: add "
        "\"task\": {\"type\": \"worker\", \"index\": 0}");
  state->has_launcher = launcher_fd.has_value();
  if (state->cluster.task && (state->has_launcher || options.embed)) {
    HostedTaskOptions hosted;
    hosted.task = options.task;
    hosted.launcher_fd = launcher_fd.value_or(-1);
    hosted.start_timeout = options.start_timeout;
    if (start_timeout) {
      hosted.start_timeout = std::chrono::milliseconds(static_cast<int64_t>(*start_timeout * 1e3));
    }
    state->hosted.emplace(state->cluster, hosted);
    state->cluster.spec = state->hosted->cluster();
    if (!state->hosted->wait_for_peers())
      fail(Code::cancelled, *state->cluster.task, " was stopped before all tasks were ready");
  }
  return Cluster(std::move(state));
}

}  // namespace leat
