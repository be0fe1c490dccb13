#include "tools/leat/doctor_text.h"

#include <link.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <sstream>
#include <string_view>
#include <thread>

#include "core/error.h"
#include "core/text_table.h"
#include "frontends/cpp/session.h"
#include "graph/op_def.h"

namespace leat {
namespace {

using Rows = std::vector<std::vector<std::string>>;

#ifdef __clang__
constexpr const char* compiler = "clang " __clang_version__;
#else
constexpr const char* compiler = "gcc " __VERSION__;
#endif

// ---- This machine ----

std::string section(const char* title, Rows rows) {
  for (auto& row : rows) row.insert(row.begin(), " ");
  return concat(title, "\n", aligned(rows));
}

// What stands behind "key : " in a file of /proc.
std::string entry(const char* file, std::string_view key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key)) continue;
    const size_t at = line.find_first_not_of(" \t:", key.size());
    return at == line.npos ? "" : line.substr(at);
  }
  return "unknown";
}

std::string instruction_sets() {
#if defined(__x86_64__)
  std::string out;
  const auto add = [&](bool is_there, const char* name) {
    if (is_there) out += concat(out.empty() ? "" : " ", name);
  };
  add(__builtin_cpu_supports("sse4.2"), "SSE4.2");
  add(__builtin_cpu_supports("avx2"), "AVX2");
  add(__builtin_cpu_supports("fma"), "FMA");
  add(__builtin_cpu_supports("avx512f"), "AVX-512");
  add(__builtin_cpu_supports("avx512vnni"), "VNNI");
  return out;
#else
  return "not detected on this processor";
#endif
}

std::string gibibytes(int64_t bytes) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(1) << static_cast<double>(bytes) / (1 << 30) << " GiB";
  return out.str();
}

std::string memory() {
  const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGE_SIZE);
  return gibibytes(static_cast<int64_t>(pages) * size);
}

std::string open_files() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur == RLIM_INFINITY ? "no limit" : std::to_string(limit.rlim_cur);
}

// Those that make a difference: of the others the package manager knows the version.
constexpr std::array library_names = {"libleat",     "libdnnl",     "libgrpc.so",   "libgrpc++.so",
                                      "libprotobuf", "libcuda.so",  "libcublas.so", "libcublasLt",
                                      "libcudnn.so", "libcusolver", "libnccl",      "libtcmalloc",
                                      "libjemalloc"};

Rows libraries() {
  Rows rows;
  const auto visit = [](dl_phdr_info* info, size_t, void* out) {
    const std::filesystem::path path = info->dlpi_name;
    const std::string file = path.filename();
    const bool is_wanted = std::any_of(library_names.begin(), library_names.end(),
                                       [&](const char* name) { return file.starts_with(name); });
    if (!is_wanted) return 0;
    std::error_code ignored;
    const auto real = std::filesystem::canonical(path, ignored);
    static_cast<Rows*>(out)->push_back({file, ignored ? path.string() : real.string()});
    return 0;
  };
  dl_iterate_phdr(visit, &rows);
  std::sort(rows.begin(), rows.end());
  return rows;
}

std::string path_of(const Rows& libraries, std::string_view name) {
  for (const auto& row : libraries) {
    if (row[0].starts_with(name)) return row[1];
  }
  return "";
}

// Once the devices were asked for: that loads the plug-in where there is a driver.
Rows gpu(const Rows& libraries, bool has_gpu) {
  const std::string driver = path_of(libraries, "libcuda.so"),
                    plugin = path_of(libraries, "libleat_cuda.so");
  const auto beside =
      std::filesystem::path(path_of(libraries, "libleat.so")).parent_path() / "libleat_cuda.so";
  std::error_code ignored;
  const bool is_built = std::filesystem::exists(beside, ignored);
  return {{"driver", driver.empty() ? "none: libcuda.so.1 was not found" : driver},
          {"plug-in", !plugin.empty() ? plugin
                      : is_built      ? beside.string() + ", not loaded"
                                      : "not built: cmake found no nvcc"},
          {"in use", has_gpu ? "yes" : "no: steps run on the CPU"}};
}

Rows environment() {
  Rows rows;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const size_t equals = text.find('=');
    if (text.starts_with("LEAT_") || text.starts_with("TF_CONFIG=") ||
        text.starts_with("CUDA_VISIBLE_DEVICES=") || text.starts_with("DNNL_"))
      rows.push_back({std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))});
  }
  std::sort(rows.begin(), rows.end());
  if (rows.empty())
    rows.push_back({"none of LEAT_…, TF_CONFIG, CUDA_VISIBLE_DEVICES, DNNL_… is set"});
  return rows;
}

size_t runnable_ops() {
  const std::vector<const OpDef*> ops = all_ops();
  return static_cast<size_t>(
      std::count_if(ops.begin(), ops.end(), [](const OpDef* op) { return !op->kernels.empty(); }));
}

}  // namespace

std::string description_of_this_machine() {
  const Graph graph;
  Session session(graph);
  Rows devices;
  bool has_gpu = false;
  for (const DeviceDescription& device : session.list_devices()) {
    has_gpu |= device.type == "GPU";
    devices.push_back({device.name, device.problem.empty() ? gibibytes(device.memory_limit)
                                                           : "out of use: " + device.problem});
  }
  const Rows found = libraries();
  return section("program", {{"version", LEAT_VERSION},
                             {"compiler", compiler},
                             {"ops", concat(runnable_ops(), " with a kernel (leat ops)")}}) +
         section("machine", {{"processor", entry("/proc/cpuinfo", "model name")},
                             {"cores", concat(std::thread::hardware_concurrency())},
                             {"instructions", instruction_sets()},
                             {"memory", memory()},
                             {"open files", open_files()}}) +
         section("libraries", found) + section("GPU", gpu(found, has_gpu)) +
         section("devices", devices) + section("environment", environment());
}

// ---- A cluster ----

std::vector<Reach> who_reaches_whom(const std::string& target) {
  const ClusterView first = view_cluster(target);
  std::vector<Reach> out;
  for (const TaskView& task : first.tasks) {
    Reach reach{.from = task.task, .address = task.address, .problem = {}, .view = {}};
    if (task.task == first.asked) {
      reach.view = first;
    } else {
      try {
        reach.view = view_cluster("grpc://" + task.address);
        if (reach.view.asked != task.task)
          reach.problem = concat("its address belongs to ", reach.view.asked.to_string(),
                                 " of another cluster");
      } catch (const Error& error) {
        reach.problem = error.message();
      }
    }
    out.push_back(std::move(reach));
  }
  return out;
}

namespace {

constexpr size_t tasks_listed = 8;

// "through shared memory: /job:ps/task:0, /job:worker/task:1"; "" if no task is reached so.
std::string way_text(const std::vector<PeerLink>& links, bool is_shared_memory) {
  std::string out;
  size_t count = 0;
  for (const PeerLink& link : links) {
    if (link.is_shared_memory != is_shared_memory) continue;
    if (count++ < tasks_listed) out += (count == 1 ? "" : ", ") + link.task.to_string();
  }
  if (count > tasks_listed) out += concat(" and ", count - tasks_listed, " more");
  if (count == 0) return "";
  return (is_shared_memory ? "through shared memory: " : "through gRPC: ") + out;
}

}  // namespace

std::string to_text(const std::vector<Reach>& reaches, bool& all) {
  all = true;
  Rows rows = {{"task", "address", "reaches"}};
  for (const Reach& reach : reaches) {
    std::vector<std::string> lines;
    if (!reach.problem.empty()) lines.push_back("cannot ask it from here: " + reach.problem);
    for (const TaskView& task : reach.view.tasks) {
      if (!task.problem.empty())
        lines.push_back(concat("not ", task.task.to_string(), ": ", task.problem));
    }
    all &= lines.empty();
    if (lines.empty()) lines.push_back(concat("all ", reach.view.tasks.size()));
    for (const TaskView& task : reach.view.tasks) {
      if (task.task != reach.from) continue;
      for (const bool is_shared_memory : {true, false}) {
        if (std::string text = way_text(task.links, is_shared_memory); !text.empty())
          lines.push_back(std::move(text));
      }
    }
    for (size_t i = 0; i < lines.size(); ++i)
      rows.push_back({i == 0 ? reach.from.to_string() : "", i == 0 ? reach.address : "", lines[i]});
  }
  return aligned(rows);
}

}  // namespace leat
