#include "tools/leat/member.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace leat {
namespace {

constexpr size_t kept_lines = 20;
// Enough for the largest pipe, 1 MiB, in which a read may find a page at a time.
constexpr int most_last_turns = 256;
// Of a redrawn line, where there is no terminal.
constexpr std::chrono::seconds redraw_interval{5};

}  // namespace

void Member::keep_line(const std::string& line, Console& console) {
  last_lines.push_back(line);
  if (last_lines.size() > kept_lines) last_lines.pop_front();
  console.line(prefix, line);
}

void Member::read_output(Console& console) {
  const auto keep = [&](const std::string& line) { keep_line(line, console); };
  const auto redraw = [&](const std::string& text) {
    if (has_terminal && console.is_terminal()) {
      console.redraw(prefix, text);
    } else if (Clock::now() - redrawn >= redraw_interval) {
      redrawn = Clock::now();
      console.line(prefix, text);
    }
  };
  if (!process.output) return;
  // One read: who writes faster than this must not keep signals and the others' turns away.
  char buffer[65536];
  ssize_t got = 0;
  do {
    got = read(process.output.get(), buffer, sizeof buffer);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && errno == EAGAIN) return;
  if (got <= 0) return end_output(console);  // end of file; of a pseudo-terminal it is EIO
  const std::string_view bytes(buffer, static_cast<size_t>(got));
  write_log(bytes);
  lines.feed(bytes, keep, redraw);
}

// After the first that fails no more is written: a log ends early, but has no gaps.
void Member::write_log(std::string_view bytes) {
  if (!log_problem.empty()) return;
  errno = 0;
  log << bytes << std::flush;
  if (!log) log_problem = errno == 0 ? "it cannot be written" : std::strerror(errno);
}

void Member::read_last_output(Console& console) {
  // A descendant that left its group may keep it open, and write on.
  for (int turn = 0; process.output && turn < most_last_turns; ++turn) {
    pollfd more{process.output.get(), POLLIN, 0};
    if (poll(&more, 1, 0) <= 0) break;
    read_output(console);
  }
  if (process.output) end_output(console);
}

// With the last line, which may have no end.
void Member::end_output(Console& console) {
  lines.finish([&](const std::string& line) { keep_line(line, console); });
  process.output.close();
}

std::vector<TaskReport> Member::read_reports() {
  char buffer[4096];
  while (process.link) {
    const ssize_t got = recv(process.link.get(), buffer, sizeof buffer, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    if (got <= 0) {
      process.link.close();
    } else {
      link_text.append(buffer, static_cast<size_t>(got));
    }
  }
  std::vector<TaskReport> out;
  for (size_t end; (end = link_text.find('\n')) != std::string::npos;) {
    const std::string line = link_text.substr(0, end);
    link_text.erase(0, end + 1);
    try {
      out.push_back(TaskReport::parse(line));
    } catch (const Error& error) {
      fail(Code::internal, prefix, ", process ", process.pid,
           ", does not follow the protocol of `leat task`: ", error.message());
    }
  }
  return out;
}

}  // namespace leat
