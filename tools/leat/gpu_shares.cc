#include "tools/leat/gpu_shares.h"

#include <fmt/ranges.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <system_error>

namespace leat {

std::vector<std::string> gpus_of_this_host() {
  std::vector<std::string> out;
  if (const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES")) {
    std::istringstream names(visible);
    for (std::string name; std::getline(names, name, ',') && name != "-1";)  // CUDA ends there
      if (!name.empty()) out.push_back(name);
    return out;
  }
  std::error_code none;
  for (const auto& gpu : std::filesystem::directory_iterator("/proc/driver/nvidia/gpus", none)) {
    (void)gpu;
    out.push_back(std::to_string(out.size()));
  }
  return out;
}

std::map<TaskName, std::string> gpu_shares(const ClusterSpec& cluster,
                                           const std::vector<TaskName>& here,
                                           const std::vector<std::string>& gpus) {
  std::vector<TaskName> tasks;
  for (const TaskName& task : here)
    if (cluster.offers_gpus(task)) tasks.push_back(task);
  std::map<TaskName, std::string> out;
  if (tasks.size() < 2 || gpus.empty()) return out;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const bool is_enough = gpus.size() >= tasks.size();
    const size_t first = is_enough ? i * gpus.size() / tasks.size() : i % gpus.size();
    const size_t last = is_enough ? (i + 1) * gpus.size() / tasks.size() : first + 1;
    const std::vector<std::string> own(gpus.begin() + static_cast<std::ptrdiff_t>(first),
                                       gpus.begin() + static_cast<std::ptrdiff_t>(last));
    out[tasks[i]] = fmt::format("{}", fmt::join(own, ","));
  }
  return out;
}

}  // namespace leat
