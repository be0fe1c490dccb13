#include "distributed/cluster/cluster_spec.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>

#include "core/error.h"
#include "distributed/quoted.h"

namespace leat {
namespace {

// In an id, between the hash and the number of tasks.
constexpr std::string_view hash_end = " of ";

using Json = nlohmann::json;

uint64_t fnv1a(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

bool is_job_name(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return !name.empty() && letter(name[0]) && std::all_of(name.begin(), name.end(), [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || c == '_';
  });
}

}  // namespace

TaskName TaskName::parse(std::string_view text) { return of(DeviceName::parse(text)); }

TaskName TaskName::of(const DeviceName& device) {
  check(device.job && device.task, "\"", device, "\" names no task: write /job:ps/task:0");
  return {*device.job, *device.task};
}

std::string TaskName::to_string() const { return concat("/job:", job, "/task:", index); }

DeviceName TaskName::device_name() const {
  DeviceName name;
  name.job = job;
  name.replica = 0;
  name.task = index;
  return name;
}

std::ostream& operator<<(std::ostream& out, const TaskName& task) {
  return out << task.to_string();
}

HostPort HostPort::parse(std::string_view address) {
  const auto refuse = [&](auto... why) {
    fail(Code::invalid_argument, quoted(address), " is not an address: ", why...,
         "; write host:port, for example 10.0.0.1:2222 or [::1]:2222");
  };
  if (address.find("://") != std::string_view::npos) refuse("it has a scheme");
  const size_t colon = address.rfind(':');
  if (colon == std::string_view::npos) refuse("it has no port");
  std::string_view host = address.substr(0, colon);
  const std::string_view digits = address.substr(colon + 1);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
    if (host.find(':') == std::string_view::npos) refuse("only an IPv6 address has brackets");
  } else if (host.find(':') != std::string_view::npos) {
    refuse("an IPv6 address needs brackets");
  }
  if (host.empty()) refuse("it has no host");
  const auto is_wrong = [](char c) {
    return c <= ' ' || c > '~' || c == '/' || c == '[' || c == ']';  // also all that is no ASCII
  };
  if (std::any_of(host.begin(), host.end(), is_wrong))
    refuse("the host contains an invalid character");
  int port = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || port < 0 || port > 65535) {
    refuse(quoted(digits), " is not a port from 0 to 65535");
  }
  return {std::string(host), port};
}

HostPort HostPort::of_target(std::string_view target) {
  constexpr std::string_view scheme = "grpc://";
  check(target.starts_with(scheme), "\"", target,
        "\" is not a target: write \"\" for this process or grpc://host:port for a task of a "
        "cluster");
  return parse(target.substr(scheme.size()));
}

std::string HostPort::to_string() const {
  return host.find(':') == std::string::npos ? concat(host, ":", port)
                                             : concat("[", host, "]:", port);
}

void ClusterSpec::add(const TaskName& task, const std::string& address) {
  check(is_job_name(task.job), quoted(task.job),
        " is not a job name: write a letter, then letters, digits and _");
  check(task.job != "evaluator", "an evaluator runs outside the cluster: leave it out of the jobs");
  check(task.job != "chief" || task.index == 0, "a cluster has at most one chief");
  const HostPort parsed = HostPort::parse(address);
  const auto owner = owners_.find(parsed.to_string());
  if (owner != owners_.end()) {
    fail(Code::invalid_argument, owner->second, " and ", task, " have the same address ", address);
  }
  check(jobs_[task.job].emplace(task.index, parsed.to_string()).second, task, " appears twice");
  if (parsed.port != 0) owners_.emplace(parsed.to_string(), task);
}

void ClusterSpec::set_address(const TaskName& task, const std::string& address) {
  const HostPort parsed = HostPort::parse(address);
  owners_.erase(this->address(task));
  jobs_[task.job][task.index] = parsed.to_string();
  if (parsed.port != 0) owners_.emplace(parsed.to_string(), task);
}

void ClusterSpec::set_files(std::vector<std::string> directories) {
  for (const std::string& directory : directories)
    check(directory.starts_with('/'), "'", directory,
          "' is not an absolute path: every task's host must have this directory");
  files_ = std::move(directories);
}

std::vector<TaskName> ClusterSpec::tasks() const {
  std::vector<TaskName> out;
  for (const auto& [job, tasks] : jobs_) {
    for (const auto& [index, address] : tasks) out.push_back({job, index});
  }
  return out;
}

size_t ClusterSpec::size() const {
  size_t out = 0;
  for (const auto& [job, tasks] : jobs_) out += tasks.size();
  return out;
}

bool ClusterSpec::contains(const TaskName& task) const {
  const auto job = jobs_.find(task.job);
  return job != jobs_.end() && job->second.contains(task.index);
}

const std::string& ClusterSpec::address(const TaskName& task) const {
  if (!contains(task)) fail(Code::not_found, task, " is not in the cluster, which has ", to_json());
  return jobs_.at(task.job).at(task.index);
}

void ClusterSpec::set_gpus(std::vector<std::string> jobs_and_tasks) {
  for (const std::string& entry : jobs_and_tasks) {
    if (entry.starts_with('/')) {
      address(TaskName::parse(entry));
    } else if (!jobs_.contains(entry)) {
      fail(Code::not_found, "no job ", entry, " is in the cluster, which has ", to_json());
    }
  }
  gpus_ = std::move(jobs_and_tasks);
}

bool ClusterSpec::offers_gpus(const TaskName& task) const {
  return std::any_of(gpus_.begin(), gpus_.end(), [&](const std::string& entry) {
    return entry == task.job || entry == task.to_string();
  });
}

bool ClusterSpec::is_sparse() const {
  return std::any_of(jobs_.begin(), jobs_.end(), [](const auto& job) {
    return job.second.rbegin()->first != static_cast<int>(job.second.size()) - 1;
  });
}

bool ClusterSpec::has_open_ports() const {
  for (const auto& [job, tasks] : jobs_) {
    for (const auto& [index, address] : tasks) {
      if (HostPort::parse(address).port == 0) return true;
    }
  }
  return false;
}

std::string ClusterSpec::id() const {
  if (!id_.empty() || is_sparse() || has_open_ports()) return id_;
  std::ostringstream hash;
  ClusterSpec anonymous;
  anonymous.jobs_ = jobs_;
  hash << std::hex << fnv1a(anonymous.to_json()) << std::dec << hash_end << size();
  return hash.str();
}

bool may_be_one_cluster(const std::string& id, const std::string& other) {
  if (id.empty() || other.empty() || id == other) return true;
  const size_t end = id.find(hash_end), other_end = other.find(hash_end);
  return end != id.npos && other_end != other.npos && id.substr(end) != other.substr(other_end);
}

std::string ClusterSpec::to_json() const {
  Json cluster = Json::object();
  for (const auto& [job, tasks] : jobs_) {
    const bool dense = tasks.rbegin()->first == static_cast<int>(tasks.size()) - 1;
    Json& out = cluster[job] = dense ? Json::array() : Json::object();
    for (const auto& [index, address] : tasks) {
      if (dense) {
        out.push_back(address);
      } else {
        out[std::to_string(index)] = address;
      }
    }
  }
  Json document = {{"cluster", std::move(cluster)}};
  if (!id_.empty()) document["cluster_id"] = id_;
  if (files_) document["files"] = *files_;
  if (!shares_memory_) document["shared_memory"] = false;
  if (!gpus_.empty()) document["gpus"] = gpus_;
  if (tls_.is_set()) {
    Json& out = document["tls"] = Json::object();
    if (!tls_.ca.empty()) out["ca"] = tls_.ca;
    if (!tls_.certificate.empty()) out["certificate"] = tls_.certificate;
    if (!tls_.key.empty()) out["key"] = tls_.key;
  }
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool ResolvedCluster::is_chief() const {
  if (!task) return is_local();
  if (spec.jobs().contains("chief")) return task->job == "chief";
  return task->job == "worker" && task->index == 0;
}

}  // namespace leat
