#include "frontends/cpp/cluster_member.h"

#include <fcntl.h>

#include <charconv>
#include <cstdlib>
#include <exception>
#include <optional>

#include "core/error.h"
#include "distributed/hosted_task.h"

namespace leat {
namespace {

// The launcher's socket, if it has started this program as a task. It is this process's alone:
// taken once, and not passed on to children.
int take_launcher_fd() {
  const char* text = std::getenv(launcher_fd_variable);
  if (text == nullptr) return -1;
  const std::string_view number = text;
  int fd = -1;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), fd);
  check(error == std::errc() && end == number.data() + number.size() &&
            fcntl(fd, F_SETFD, FD_CLOEXEC) == 0,
        launcher_fd_variable, "=\"", number, "\" is no open file: `leat run --embed` sets it");
  unsetenv(launcher_fd_variable);
  return fd;
}

}  // namespace

struct ClusterMember::State {
  ResolvedCluster cluster;
  std::optional<HostedTask> hosted;
  bool has_launcher = false;
  int exceptions = std::uncaught_exceptions();
};

ClusterMember::ClusterMember(std::unique_ptr<State> state) : state_(std::move(state)) {}
ClusterMember::ClusterMember(ClusterMember&&) noexcept = default;

ClusterMember::~ClusterMember() {
  if (state_ == nullptr || !state_->hosted) return;
  const bool is_failing = std::uncaught_exceptions() > state_->exceptions;
  if (is_failing || !state_->has_launcher) return;
  state_->hosted->done();
  state_->hosted->serve();
}

const ResolvedCluster& ClusterMember::cluster() const { return state_->cluster; }

std::string ClusterMember::target() const {
  const ResolvedCluster& cluster = state_->cluster;
  return cluster.task ? "grpc://" + cluster.spec.address(*cluster.task) : "";
}

bool ClusterMember::is_chief() const { return !state_->cluster.task || state_->cluster.is_chief(); }

ClusterMember join_cluster(const JoinOptions& options) {
  auto state = std::make_unique<ClusterMember::State>();
  const int launcher_fd = take_launcher_fd();
  if (auto cluster = cluster_from_environment()) state->cluster = std::move(*cluster);
  state->has_launcher = launcher_fd >= 0;
  if (state->cluster.task && (state->has_launcher || options.embed)) {
    HostedTaskOptions hosted;
    hosted.task = options.task;
    hosted.launcher_fd = launcher_fd;
    hosted.start_timeout = options.start_timeout;
    state->hosted.emplace(state->cluster, hosted);
    state->cluster.spec = state->hosted->cluster();
    if (!state->hosted->wait_for_peers())
      fail(Code::cancelled, *state->cluster.task, " was told to stop before all tasks were there");
  }
  return ClusterMember(std::move(state));
}

}  // namespace leat
