#include "distributed/cluster/launcher_link.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "runtime/step_activity.h"

namespace leat {
namespace {

using Json = nlohmann::json;

constexpr std::pair<TaskReport::State, std::string_view> state_names[] = {
    {TaskReport::State::bound, "bound"}, {TaskReport::State::waiting, "waiting"},
    {TaskReport::State::ready, "ready"}, {TaskReport::State::left, "left"},
    {TaskReport::State::done, "done"},   {TaskReport::State::failed, "failed"},
};

}  // namespace

std::string TaskReport::to_line() const {
  Json line;
  for (const auto& [state_of_name, name] : state_names) {
    if (state_of_name == state) line["state"] = name;
  }
  if (!address.empty()) line["address"] = address;
  if (!detail.empty()) line["detail"] = detail;
  for (const MissingPeer& peer : missing) {
    line["missing"].push_back({{"task", peer.task.to_string()},
                               {"address", peer.address},
                               {"reason", peer.reason},
                               {"refused", peer.is_refused}});
  }
  return line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

TaskReport TaskReport::parse(std::string_view line) {
  try {
    const Json parsed = Json::parse(line);
    TaskReport report;
    const auto name = parsed.at("state").get<std::string>();
    bool is_known = false;
    for (const auto& [state_of_name, known] : state_names) {
      if (known == name) report.state = state_of_name, is_known = true;
    }
    check(is_known, "unknown state \"", name, "\"");
    report.address = parsed.value("address", "");
    report.detail = parsed.value("detail", "");
    for (const Json& peer : parsed.value("missing", Json::array())) {
      report.missing.push_back({TaskName::parse(peer.at("task").get<std::string>()),
                                peer.at("address").get<std::string>(),
                                peer.at("reason").get<std::string>(),
                                peer.value("refused", false)});
    }
    return report;
  } catch (const Json::exception& error) {
    fail(Code::invalid_argument, "not a task's report: ", line, " (", error.what(), ")");
  }
}

LauncherLink::LauncherLink(int fd) : fd_(fd) {
  const timeval limit{.tv_sec = 5, .tv_usec = 0};
  if (fd_ >= 0) setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

void LauncherLink::send(const TaskReport& report) {
  if (fd_ < 0) return;
  const std::string line = report.to_line();
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t sent = ::send(fd_, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) {
      // Gone: whoever polls fd() ends the task. Or frozen (EAGAIN): nobody looks at its table, and
      // after half a line nothing that follows could be read.
      if (errno == EAGAIN && rest.size() < line.size()) ::shutdown(fd_, SHUT_WR);
      return;
    }
    rest.remove_prefix(static_cast<size_t>(sent));
  }
}

ClusterSpec LauncherLink::bound(const ClusterSpec& spec, const TaskName& task,
                                const std::string& address, std::chrono::milliseconds limit) {
  if (fd_ < 0) {
    ClusterSpec filled = spec;
    filled.set_address(task, address);
    check(!filled.has_open_ports(),
          "the cluster has tasks with port 0, and only `leat up` knows their ports: ",
          filled.to_json());
    return filled;
  }
  send({.state = TaskReport::State::bound, .address = address});
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = limit.count() > 0 ? Clock::now() + limit : Clock::time_point::max();
  std::string answer;
  while (answer.find('\n') == std::string::npos) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0) {
      fail(Code::deadline_exceeded, task, " waited ", seconds_text(limit),
           " for its launcher to send the other tasks' addresses");
    }
    pollfd wait{fd_, POLLIN, 0};
    const auto turn = std::min<std::chrono::milliseconds>(left, std::chrono::minutes(1));
    if (::poll(&wait, 1, static_cast<int>(turn.count())) <= 0) continue;
    char buffer[4096];
    const ssize_t got = ::recv(fd_, buffer, sizeof buffer, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) fail(Code::cancelled, "the launcher of ", task, " has gone");
    answer.append(buffer, static_cast<size_t>(got));
  }
  return ClusterSpec::parse(answer.substr(0, answer.find('\n')), "the launcher's cluster");
}

void LauncherLink::waiting(std::vector<MissingPeer> missing) {
  send({.state = TaskReport::State::waiting, .missing = std::move(missing)});
}

void LauncherLink::ready(std::string detail) {
  send({.state = TaskReport::State::ready, .detail = std::move(detail)});
}

void LauncherLink::left(std::vector<MissingPeer> peers) {
  std::vector<TaskName> tasks;
  for (const MissingPeer& peer : peers) tasks.push_back(peer.task);
  if (tasks == told_left_) return;
  told_left_ = std::move(tasks);
  send({.state = TaskReport::State::left, .missing = std::move(peers)});
}

void LauncherLink::done() { send({.state = TaskReport::State::done}); }

void LauncherLink::failed(std::string detail) {
  send({.state = TaskReport::State::failed, .detail = std::move(detail)});
}

}  // namespace leat
