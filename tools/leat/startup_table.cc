#include "tools/leat/startup_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace leat {

std::string format_startup_table(const std::vector<StartupRow>& rows) {
  constexpr size_t columns = 6, right_aligned = 4;
  using Cells = std::array<std::string, columns>;
  std::vector<Cells> lines{{"task", "address", "pid", "state", "after", "detail"}};
  for (const StartupRow& row : rows) {
    lines.push_back(
        {row.task.to_string(), row.address, row.pid == 0 ? "-" : std::to_string(row.pid), row.state,
         row.state.empty() ? "" : fmt::format("{:.1f}s", row.after.count()), row.detail});
  }
  std::array<size_t, columns> widths{};
  for (const Cells& cells : lines) {
    for (size_t i = 0; i < columns; ++i) widths[i] = std::max(widths[i], cells[i].size());
  }
  std::string out;
  for (const Cells& cells : lines) {
    std::string line;
    for (size_t i = 0; i < columns; ++i) {
      line += i == right_aligned ? fmt::format("{:>{}}  ", cells[i], widths[i])
                                 : fmt::format("{:<{}}  ", cells[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

}  // namespace leat
