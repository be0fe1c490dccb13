#include "tools/leat/member_group.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "core/error.h"

namespace leat {
namespace {

std::filesystem::path fresh_directory() {
  const char* given = std::getenv("TMPDIR");
  const std::filesystem::path parent = given == nullptr || *given == 0 ? "/tmp" : given;
  std::string name = (parent / "leat-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) {
    const std::string reason = std::strerror(errno);
    fail(Code::permission_denied, "cannot make a log folder in ", parent.string(), ": ", reason,
         " (set TMPDIR to another place, or name the folder with --log-dir)");
  }
  return name;
}

}  // namespace

void MemberGroup::set_log_directory(std::filesystem::path directory) {
  log_directory_ = directory.empty() ? fresh_directory() : std::move(directory);
  std::error_code error;
  std::filesystem::create_directories(log_directory_, error);
  if (error)
    fail(Code::permission_denied, "cannot make ", log_directory_.string(), ": ", error.message());
}

Member& MemberGroup::start(const SpawnOptions& spawn_options, Member member) {
  const std::string name = fmt::format("{}-{}{}.log", member.task.job, member.task.index,
                                       member.is_program ? ".program" : "");
  member.log_path = (log_directory_ / name).string();
  member.log.open(member.log_path, std::ios::binary | std::ios::trunc);
  if (!member.log)
    fail(Code::permission_denied, "cannot write ", member.log_path, ": ", std::strerror(errno));
  member.process = spawn(spawn_options);
  members_.push_back(std::make_unique<Member>(std::move(member)));
  return *members_.back();
}

bool MemberGroup::wait(const Fd& signals, std::chrono::milliseconds limit,
                       const std::function<void(Member&)>& on_report) {
  std::vector<pollfd> polled{{signals.get(), POLLIN, 0}};
  std::vector<std::pair<Member*, bool>> of;  // and whether it is its link
  for (const auto& member : members_) {
    if (member->process.output) {
      polled.push_back({member->process.output.get(), POLLIN, 0});
      of.emplace_back(member.get(), false);
    }
    if (member->process.link) {
      polled.push_back({member->process.link.get(), POLLIN, 0});
      of.emplace_back(member.get(), true);
    }
  }
  if (poll(polled.data(), polled.size(), static_cast<int>(limit.count())) < 0 && errno != EINTR) {
    fail(Code::internal, "poll: ", std::strerror(errno));
  }
  for (size_t i = 0; i < of.size(); ++i) {
    if (polled[i + 1].revents == 0) continue;
    if (of[i].second) {
      on_report(*of[i].first);
    } else {
      of[i].first->read_output(console_);
    }
  }
  return polled[0].revents != 0;
}

void MemberGroup::reap(const std::function<void(Member&)>& on_end) {
  for (const auto& member : members_) {
    if (!member->is_running()) continue;
    member->ending = leat::reap(member->process.pid);
    if (member->ending) member->ended = Member::Clock::now();
  }
  for (size_t i = 0; i < members_.size(); ++i) {  // on_end may append
    Member& member = *members_[i];
    if (!member.ending || member.is_handled) continue;
    member.is_handled = true;
    on_end(member);
  }
}

void MemberGroup::terminate() {
  for (const auto& member : members_) {
    if (!member->is_running()) continue;
    if (member->is_done) {
      member->process.link.close();
    } else {
      stop(*member, SIGTERM);
    }
  }
}

void MemberGroup::kill() {
  for (const auto& member : members_) {
    if (member->is_running()) stop(*member, SIGKILL);
  }
}

void MemberGroup::stop(Member& member, int signal) {
  member.process.link.close();  // wakes a task that still waits for our answer
  member.was_stopped = true;
  signal_group(member.process.pid, signal);
}

bool MemberGroup::is_any_running() const {
  return std::any_of(members_.begin(), members_.end(),
                     [](const auto& member) { return member->is_running(); });
}

bool MemberGroup::is_any_busy() const {
  return std::any_of(members_.begin(), members_.end(),
                     [](const auto& member) { return member->is_busy(); });
}

}  // namespace leat
