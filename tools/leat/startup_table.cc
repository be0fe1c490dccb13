#include "tools/leat/startup_table.h"

#include <fmt/format.h>

#include "core/text_table.h"

namespace leat {

std::string format_startup_table(const std::vector<StartupRow>& rows) {
  std::vector<std::vector<std::string>> lines{
      {"task", "address", "pid", "state", "after", "detail"}};
  for (const StartupRow& row : rows) {
    lines.push_back(
        {row.task.to_string(), row.address, row.pid == 0 ? "-" : std::to_string(row.pid), row.state,
         row.state.empty() ? "" : fmt::format("{:.1f}s", row.after.count()), row.detail});
  }
  return aligned(lines, /*right_aligned=*/4);
}

}  // namespace leat
