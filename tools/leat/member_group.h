// The processes of a launch, their output and their logs. The launcher's one thread waits here.
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

  // Sets the log folder, creating it if needed; if empty, a new one in the system's temporary
  // folder. PERMISSION_DENIED says why it cannot.
  void set_log_directory(std::filesystem::path directory);
  const std::filesystem::path& log_directory() const { return log_directory_; }

  // PERMISSION_DENIED if its log cannot be written.
  Member& start(const SpawnOptions& spawn_options, Member member);

  // Waits for output, which it passes on, a report (calls on_report with the member), a signal
  // readable from `signals`, or `limit`. Returns true for a signal. on_report may start members.
  bool wait(const Fd& signals, std::chrono::milliseconds limit,
            const std::function<void(Member&)>& on_report);
  // Records ended members; calls on_end once for each. on_end may start members.
  void reap(const std::function<void(Member&)>& on_end);

  // SIGTERM to all that run, except programs that are done: they now end by themselves, with their
  // own status.
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
