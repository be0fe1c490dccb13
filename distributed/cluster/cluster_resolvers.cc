#include "distributed/cluster/cluster_resolvers.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <numeric>
#include <sstream>

#include "core/error.h"

namespace leat {
namespace {

constexpr int default_port = 8888;
constexpr int most_ranks = 1 << 16;

int number(std::string_view text, std::string_view what) {
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  check(error != std::errc::result_out_of_range || text[0] == '-', what, " is ", text,
        ", which is too large");
  check(error == std::errc() && end == text.data() + text.size() && value >= 0, what, " is \"",
        text, "\", which is not a number of 0 or more");
  return value;
}

void check_ranks(int ranks, const char* variable) {
  check(ranks > 0 && ranks <= most_ranks, variable, " is ", ranks, ", but a cluster has 1 to ",
        most_ranks, " tasks");
}

// The user's request.
struct Wanted {
  std::map<std::string, int> jobs;  // -1: the ranks that are left
  int port = default_port;
  std::vector<std::string> hosts;
};

Wanted parse_wanted(std::string_view text) {
  constexpr const char* example = "; write for example ps=1,worker=3 or ps=1,worker=*,port=9000";
  Wanted out;
  std::istringstream parts{std::string(text.empty() ? "ps=1,worker=*" : text)};
  for (std::string part; std::getline(parts, part, ',');) {
    const size_t equals = part.find('=');
    check(equals != std::string::npos, "\"", part, "\" is not JOB=COUNT", example);
    const std::string key = part.substr(0, equals), value = part.substr(equals + 1);
    if (key == "port") {
      out.port = number(value, "port");
      check(out.port > 0 && out.port < 65536, "port ", out.port, " is not from 1 to 65535");
    } else if (key == "hosts") {
      std::istringstream hosts(value);
      for (std::string host; std::getline(hosts, host, ';');) out.hosts.push_back(host);
    } else {
      const int count = value == "*" ? -1 : number(value, "the count of job " + key);
      check(count != 0, "job ", key, " has no tasks", example);
      check(out.jobs.emplace(key, count).second, "job ", key, " appears twice", example);
    }
  }
  const auto is_open = [](const auto& job) { return job.second < 0; };
  check(std::count_if(out.jobs.begin(), out.jobs.end(), is_open) <= 1,
        "only one job can take the remaining ranks", example);
  check(!out.jobs.empty(), "no jobs", example);
  return out;
}

// Where the ranks are: the host of each, and how many ranks before it are on the same one.
struct Layout {
  std::vector<std::string> hosts;
  std::vector<int> local;
};

Layout lay_out(const std::vector<std::string>& hosts, const std::vector<int>& ranks_per_host) {
  Layout out;
  for (size_t h = 0; h < hosts.size(); ++h) {
    for (int i = 0; i < ranks_per_host[h]; ++i) {
      out.hosts.push_back(hosts[h]);
      out.local.push_back(i);
    }
  }
  return out;
}

// `rank_name` and `size_name` are the variables that they come from.
ResolvedCluster deal(const Wanted& wanted, const Layout& layout, int rank, std::string id,
                     const char* rank_name, const char* size_name) {
  const int ranks = static_cast<int>(layout.hosts.size());
  int given = 0, open = 0;
  for (const auto& [job, count] : wanted.jobs) (count < 0 ? open : given) += count < 0 ? 1 : count;
  check(given + open <= ranks && (open > 0 || given == ranks), "the jobs have ", given, " tasks",
        open > 0 ? " and one job takes the rest" : "", ", but there are ", ranks,
        " ranks: every rank is one task");
  check(rank < ranks, rank_name, " is ", rank, ", but ", size_name, " says that there are ", ranks,
        " ranks, from 0");
  ResolvedCluster out;
  int next = 0;
  for (const auto& [job, count] : wanted.jobs) {
    for (int index = 0; index < (count < 0 ? ranks - given : count); ++index, ++next) {
      const auto at = static_cast<size_t>(next);
      out.spec.add({job, index},
                   HostPort{layout.hosts[at], wanted.port + layout.local[at]}.to_string());
      if (next == rank) out.task = TaskName{job, index};
    }
  }
  out.spec.set_id(std::move(id));
  return out;
}

std::string needed(const Environment& environment, std::initializer_list<const char*> names,
                   const char* how) {
  for (const char* name : names) {
    if (const auto value = environment(name)) return *value;
  }
  fail(Code::invalid_argument, *names.begin(), " is not set: ", how);
}

constexpr const char* slurm_how =
    "this process is not part of a Slurm job step; start it with srun, one process per task";
constexpr const char* mpi_how =
    "this process was not started by Open MPI; start it with mpirun, one process per task";

// Where there is a rank.
constexpr const char* mpi_part =
    "mpirun sets it together with OMPI_COMM_WORLD_RANK, so something removed it from the "
    "environment";

// "2(x3),1" → 2 2 2 1
std::vector<int> expand_counts(const std::string& text) {
  std::vector<int> out;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const size_t bracket = part.find("(x");
    const int count = number(part.substr(0, bracket), "SLURM_STEP_TASKS_PER_NODE");
    int times = 1;
    if (bracket != std::string::npos) {
      check(part.back() == ')', "SLURM_STEP_TASKS_PER_NODE is \"", text, "\": \"", part,
            "\" has no closing bracket");
      times = number(part.substr(bracket + 2, part.size() - bracket - 3), "its repetition");
    }
    check(times <= most_ranks, "SLURM_STEP_TASKS_PER_NODE is \"", text, "\": \"", part,
          "\" stands for more than ", most_ranks, " nodes");
    out.insert(out.end(), static_cast<size_t>(times), count);
  }
  return out;
}

struct SlurmStep {
  Layout layout;
  std::string id;
};

SlurmStep slurm_step(const Environment& environment) {
  const std::vector<std::string> hosts = expand_host_list(needed(
      environment, {"SLURM_STEP_NODELIST", "SLURM_NODELIST", "SLURM_JOB_NODELIST"}, slurm_how));
  const int ranks = number(
      needed(environment, {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"}, slurm_how),
      "SLURM_STEP_NUM_TASKS");
  check_ranks(ranks, "SLURM_STEP_NUM_TASKS");
  std::vector<int> counts;
  if (const auto text = environment("SLURM_STEP_TASKS_PER_NODE")) {
    counts = expand_counts(*text);
  } else if (const auto each = environment("SLURM_NTASKS_PER_NODE")) {
    counts.assign(hosts.size(), number(*each, "SLURM_NTASKS_PER_NODE"));
  } else {
    counts = expand_counts(needed(environment, {"SLURM_TASKS_PER_NODE"}, slurm_how));
  }
  check(counts.size() == hosts.size() &&
            std::accumulate(counts.begin(), counts.end(), int64_t{0}) == ranks,
        "Slurm says ", ranks, " tasks on ", hosts.size(),
        " nodes, but their counts per node do not add up to that");
  SlurmStep out{lay_out(hosts, counts), ""};
  const auto job = environment("SLURM_JOB_ID"), step = environment("SLURM_STEP_ID");
  if (job) out.id = concat("slurm-", *job, step ? "." + *step : "");
  return out;
}

// A rank that is not where block distribution puts it would listen on an address that nobody dials.
void check_place(const Layout& layout, int rank, const std::optional<std::string>& local,
                 const char* variable, const char* advice) {
  if (!local || rank >= static_cast<int>(layout.local.size())) return;
  const int expected = layout.local[static_cast<size_t>(rank)];
  check(number(*local, variable) == expected, "rank ", rank, " has ", variable, "=", *local,
        ", but with ranks in blocks it would be ", expected, ": ", advice);
}

}  // namespace

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
  };
}

std::vector<std::string> expand_host_list(std::string_view text) {
  std::vector<std::string> out;
  for (size_t at = 0; at <= text.size();) {
    // To the comma that stands outside of brackets.
    size_t end = at;
    for (bool is_inside = false; end < text.size() && (is_inside || text[end] != ','); ++end) {
      if (text[end] == '[') is_inside = true;
      if (text[end] == ']') is_inside = false;
    }
    const std::string_view item = text.substr(at, end - at);
    at = end + 1;
    const size_t open = item.find('['), close = item.find(']', open);
    if (open == std::string_view::npos) {
      check(!item.empty() && item.find(']') == std::string_view::npos, "\"", text,
            "\" is not a list of hosts");
      out.emplace_back(item);
      continue;
    }
    check(close != std::string_view::npos, "\"", text,
          "\" is not a list of hosts: a bracket is not closed");
    // Brackets without a number would make no host of all that the brackets before them stand for.
    check(close > open + 1, "\"", text, "\" is not a list of hosts: the brackets are empty");
    std::istringstream ranges{std::string(item.substr(open + 1, close - open - 1))};
    for (std::string range; std::getline(ranges, range, ',');) {
      const size_t dash = range.find('-');
      const std::string first = range.substr(0, dash);
      const std::string last = dash == std::string::npos ? first : range.substr(dash + 1);
      const int from = number(first, "a host number"), to = number(last, "a host number");
      check(from <= to && to - from < most_ranks, "\"", text, "\" is not a list of hosts: \"",
            range, "\"");
      for (int i = from; i <= to; ++i) {
        std::string digits = std::to_string(i);
        if (digits.size() < first.size()) digits.insert(0, first.size() - digits.size(), '0');
        const std::string host = concat(item.substr(0, open), digits, item.substr(close + 1));
        for (std::string& each : expand_host_list(host)) out.push_back(std::move(each));
        check(out.size() <= most_ranks, "\"", text.substr(0, 100), "\" has too many hosts");
      }
    }
  }
  return out;
}

ResolvedCluster resolve_slurm(std::string_view jobs, const Environment& environment) {
  const Wanted wanted = parse_wanted(jobs);
  const int rank = number(needed(environment, {"SLURM_PROCID"}, slurm_how), "SLURM_PROCID");
  SlurmStep step = slurm_step(environment);
  check_place(step.layout, rank, environment("SLURM_LOCALID"), "SLURM_LOCALID",
              "start srun with --distribution=block");
  return deal(wanted, step.layout, rank, std::move(step.id), "SLURM_PROCID",
              "SLURM_STEP_NUM_TASKS (or SLURM_NTASKS)");
}

ResolvedCluster resolve_open_mpi(std::string_view jobs, const Environment& environment) {
  const Wanted wanted = parse_wanted(jobs);
  const int rank =
      number(needed(environment, {"OMPI_COMM_WORLD_RANK"}, mpi_how), "OMPI_COMM_WORLD_RANK");
  const int ranks =
      number(needed(environment, {"OMPI_COMM_WORLD_SIZE"}, mpi_part), "OMPI_COMM_WORLD_SIZE");
  const int here = number(needed(environment, {"OMPI_COMM_WORLD_LOCAL_SIZE"}, mpi_part),
                          "OMPI_COMM_WORLD_LOCAL_SIZE");
  check_ranks(ranks, "OMPI_COMM_WORLD_SIZE");
  Layout layout;
  if (!wanted.hosts.empty()) {
    const int hosts = static_cast<int>(wanted.hosts.size());
    check(ranks % hosts == 0, ranks, " ranks cannot be divided equally among ", hosts, " hosts");
    layout = lay_out(wanted.hosts, std::vector<int>(wanted.hosts.size(), ranks / hosts));
  } else if (here == ranks) {
    layout = lay_out({"127.0.0.1"}, {ranks});
  } else if (environment("SLURM_JOB_NODELIST") || environment("SLURM_NODELIST")) {
    layout = slurm_step(environment).layout;
    check(static_cast<int>(layout.hosts.size()) == ranks, "Slurm has ", layout.hosts.size(),
          " tasks, Open MPI ", ranks, " ranks");
  } else {
    fail(Code::invalid_argument, here, " of ", ranks,
         " ranks are on this host, and Open MPI does not report where the others are: name the "
         "hosts, mpi:ps=1,worker=*,hosts=a;b");
  }
  check_place(layout, rank, environment("OMPI_COMM_WORLD_LOCAL_RANK"), "OMPI_COMM_WORLD_LOCAL_RANK",
              "start mpirun with --map-by slot");
  const auto id = environment("PMIX_NAMESPACE");
  return deal(wanted, layout, rank, id ? "mpi-" + *id : "", "OMPI_COMM_WORLD_RANK",
              "OMPI_COMM_WORLD_SIZE");
}

std::string note_on_unused_ranks(const Environment& environment) {
  struct Launcher {
    const char *rank, *size, *command, *source;
  };
  for (const Launcher& each :
       {Launcher{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "mpirun", "mpi"},
        Launcher{"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "srun", "slurm"}}) {
    const auto rank = environment(each.rank), size = environment(each.size);
    if (!rank || *rank != "0" || !size || *size == "1") continue;
    return concat("leat: ", each.command, " started ", *size,
                  " copies of this program, and each of them trains alone: for one cluster, start ",
                  each.command, " -n ", *size, " leat run ", each.source,
                  ":ps=1,worker=* -- PROGRAM");
  }
  return "";
}

}  // namespace leat
