// The processes of a launch, their output and their logs. The launcher's one thread waits in here.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "tools/leat/console.h"
#include "tools/leat/member.h"
#include "tools/leat/process.h"

namespace leat {

class MemberGroup {
 public:
  explicit MemberGroup(Console& console) : console_(console) {}

  // Where the logs are from now on: a folder that is made if it is not there; if empty, a fresh one
  // in the system's folder for temporary files. PERMISSION_DENIED says why it cannot be.
  void set_log_directory(std::filesystem::path directory);
  const std::filesystem::path& log_directory() const { return log_directory_; }

  // PERMISSION_DENIED if its log cannot be written.
  Member& start(const SpawnOptions& spawn_options, Member member);

  // Until there is output, which is passed on, a report (on_report is told whose), a signal to be
  // read from `signals` or nothing for `limit`. True for a signal. Members may be started in
  // on_report.
  bool wait(const Fd& signals, std::chrono::milliseconds limit,
            const std::function<void(Member&)>& on_report);
  // Notes who has ended; tells of each once. Members may be started in on_end.
  void reap(const std::function<void(Member&)>& on_end);

  // SIGTERM to all that run, but for programs that are done: they end by themselves now, and their
  // status is their own.
  void terminate();
  void kill();  // SIGKILL to all that run

  bool is_any_running() const;
  bool is_any_busy() const;
  const std::vector<std::unique_ptr<Member>>& all() const { return members_; }

 private:
  void stop(Member& member, int signal);

  Console& console_;
  std::filesystem::path log_directory_;
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace leat
