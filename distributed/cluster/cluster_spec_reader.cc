// Reads a ClusterSpec: our JSON, TF_CONFIG and TensorFlow's forms.
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "distributed/cluster/cluster_spec.h"
#include "distributed/quoted.h"
#include "graph/near_misses.h"

namespace leat {
namespace {

using Json = nlohmann::json;

// For messages: also of strings that are no UTF-8.
std::string text_of(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

const std::vector<std::string_view> top_keys = {
    "cluster",   "cluster_id",  "files",          "shared_memory", "task",
    "rpc_layer", "environment", "session_master", "tls",           "gpus"};

// What an unknown key probably means, or all that it could have been.
std::string known_keys(const std::string& key) {
  std::string near = did_you_mean(key, top_keys);
  if (!near.empty()) return near;
  std::string all;
  for (const std::string_view known : top_keys) all += concat(all.empty() ? "" : ", ", known);
  return "; known are " + all;
}

// Of a file: many times what the largest clusters need.
constexpr size_t largest_description = size_t{16} << 20;

// Where in which text: every complaint starts with it.
struct JsonPlace {
  std::string_view origin;
  std::string pointer;

  JsonPlace at(std::string_view key) const {
    std::string escaped;
    for (const char c : key) escaped += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
    return {origin, pointer + "/" + escaped};
  }
  template <class... Parts>
  void check(bool condition, const Parts&... parts) const {
    leat::check(condition, origin, pointer.empty() ? "" : " at ", pointer, ": ", parts...);
  }
};

// Runs an action whose error does not know the place in the file.
template <class Action>
void in_place(const JsonPlace& place, Action action) {
  try {
    action();
  } catch (const Error& error) {
    place.check(false, error.message());
  }
}

Json parse_json(std::string_view text, std::string_view origin) {
  std::vector<std::set<std::string>>
      keys;  // per open object; the library would take the last of two equal keys
  const auto see = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      check(keys.back().insert(key).second, origin, ": the key ", quoted(key),
            " appears twice in one object");
    }
    return true;
  };
  try {
    return Json::parse(text, see);
  } catch (const Json::parse_error& error) {
    const size_t end = std::min(error.byte, text.size());
    const auto line =
        1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end), '\n');
    fail(Code::invalid_argument, origin, ": not valid JSON, line ", line, ": ", error.what());
  } catch (const Json::out_of_range& error) {  // without a position
    fail(Code::invalid_argument, origin, ": a number is too large: ", error.what());
  }
}

constexpr int largest_index = 999'999;

int parse_index(const JsonPlace& place, std::string_view text) {
  int index = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  place.check(error == std::errc() && end == text.data() + text.size() && index >= 0 &&
                  index <= largest_index,
              quoted(text), " is not a task index: write a number from 0 to ", largest_index);
  return index;
}

int index_of(const JsonPlace& place, const Json& value) {
  if (!value.is_string()) {
    place.check(value.is_number_unsigned() && value.get<uint64_t>() <= largest_index,
                "a task index is a number from 0 to ", largest_index, ", this is ", text_of(value));
    return value.get<int>();
  }
  return parse_index(place, value.get_ref<const std::string&>());
}

std::string address_of(const JsonPlace& place, const Json& value) {
  place.check(value.is_string(), "an address is a string such as \"10.0.0.1:2222\", this is ",
              text_of(value));
  return value.get<std::string>();
}

// job → list of addresses, or job → {"index": address}.
void read_tasks(const JsonPlace& place, const std::string& job, const Json& tasks,
                ClusterSpec& spec) {
  place.check(!job.empty(), "a job has no name; a name is a letter, then letters, digits and _");
  place.check(tasks.is_array() || tasks.is_object(), "job \"", job,
              "\" is a list of addresses or a map of index to address, this is ", text_of(tasks));
  place.check(!tasks.empty(), "job \"", job, "\" has no tasks: leave it out or give it an address");
  if (tasks.is_array()) {
    for (size_t i = 0; i < tasks.size(); ++i) {
      const JsonPlace here = place.at(std::to_string(i));
      const std::string address = address_of(here, tasks[i]);
      in_place(here, [&] { spec.add({job, static_cast<int>(i)}, address); });
    }
    return;
  }
  for (const auto& [key, value] : tasks.items()) {
    const JsonPlace here = place.at(key);
    const int index = parse_index(here, key);
    const std::string address = address_of(here, value);
    in_place(here, [&] { spec.add({job, index}, address); });
  }
}

bool is_cluster_def(const Json& jobs) {
  return jobs.size() == 1 && jobs.contains("job") && jobs["job"].is_array() &&
         std::all_of(jobs["job"].begin(), jobs["job"].end(),
                     [](const Json& job) { return job.is_object(); });
}

// job → addresses at the top, as TensorFlow's ClusterSpec is printed. {"clutser": {"ps": …}} is
// none.
bool is_jobs_only(const Json& document) {
  return !document.empty() && !document.contains("cluster") &&
         std::all_of(document.begin(), document.end(), [](const Json& value) {
           if (!value.is_object()) return value.is_array();
           for (const auto& [key, address] : value.items()) {
             if (key.find_first_not_of("0123456789") != std::string::npos) return false;
           }
           return !value.empty();
         });
}

void read_jobs(const JsonPlace& place, const Json& jobs, ClusterSpec& spec) {
  place.check(jobs.is_object(),
              "the jobs are an object such as {\"ps\": [\"10.0.0.1:2222\"]}, this is ",
              text_of(jobs));
  if (!is_cluster_def(jobs)) {
    for (const auto& [job, tasks] : jobs.items()) read_tasks(place.at(job), job, tasks, spec);
    return;
  }
  for (size_t i = 0; i < jobs["job"].size(); ++i) {
    const Json& job = jobs["job"][i];
    const JsonPlace here = place.at("job").at(std::to_string(i));
    for (const auto& [key, value] : job.items()) {
      here.at(key).check(key == "name" || key == "tasks", "unknown key \"", key,
                         "\": a job has \"name\" and \"tasks\"");
    }
    here.check(job.contains("name") && job["name"].is_string(), "a job has a \"name\"");
    here.check(job.contains("tasks"), "job ", text_of(job["name"]), " has no \"tasks\"");
    read_tasks(here.at("tasks"), job["name"].get<std::string>(), job["tasks"], spec);
  }
}

TlsPaths read_tls(const JsonPlace& place, const Json& tls) {
  place.check(tls.is_object(),
              "TLS is an object of paths, {\"ca\": \"ca.pem\", \"certificate\": "
              "\"{name}.pem\", \"key\": \"{name}.key\"}, this is ",
              text_of(tls));
  TlsPaths out;
  for (const auto& [key, value] : tls.items()) {
    std::string* const to = key == "ca"            ? &out.ca
                            : key == "certificate" ? &out.certificate
                            : key == "key"         ? &out.key
                                                   : nullptr;
    place.at(key).check(to != nullptr, "unknown key ", quoted(key),
                        "; known are ca, certificate, key");
    place.at(key).check(value.is_string() && !value.empty(), "a path is a string, this is ",
                        text_of(value));
    *to = value.get<std::string>();
  }
  for (const char* key : {"ca", "certificate", "key"})
    place.check(tls.contains(key), "\"", key,
                "\" is missing: ca, certificate and key belong together");
  return out;
}

// Ours has no keys that we do not know; what other launchers write may have.
enum class Keys { known, any };

// Remarks on keys that are passed over, or complains.
void check_keys(const JsonPlace& place, const Json& object, Keys keys,
                const std::function<bool(const std::string&)>& is_known,
                const std::function<std::string(const std::string&)>& hint,
                std::vector<std::string>& remarks) {
  for (const auto& [key, value] : object.items()) {
    if (is_known(key)) continue;
    const JsonPlace here = place.at(key);
    here.check(keys == Keys::any, "unknown key ", quoted(key), hint(key));
    remarks.push_back(concat(here.origin, " at ", here.pointer, ": the key ", quoted(key),
                             " is unknown and ignored"));
  }
}

Json without_evaluator(const JsonPlace& place, Json jobs, std::vector<std::string>& remarks) {
  if (!jobs.is_object() || jobs.erase("evaluator") == 0) return jobs;
  remarks.push_back(concat(place.origin, " at ", place.at("evaluator").pointer,
                           ": the evaluator takes no part in training, and no task waits for it"));
  return jobs;
}

ResolvedCluster read_document(const Json& document, std::string_view origin, Keys keys) {
  const JsonPlace root{origin, ""};
  root.check(document.is_object(), "a JSON object is expected");
  ResolvedCluster out;
  if (is_jobs_only(document)) {
    read_jobs(root, document, out.spec);
    return out;
  }
  const auto is_top_key = [](const std::string& key) {
    return std::find(top_keys.begin(), top_keys.end(), key) != top_keys.end();
  };
  check_keys(root, document, keys, is_top_key, known_keys, out.remarks);
  if (document.contains("cluster")) {
    const JsonPlace here = root.at("cluster");
    const Json cluster = keys == Keys::any
                             ? without_evaluator(here, document["cluster"], out.remarks)
                             : document["cluster"];
    if (!(cluster.is_object() && cluster.empty())) read_jobs(here, cluster, out.spec);
  }
  if (document.contains("cluster_id")) {
    root.at("cluster_id")
        .check(document["cluster_id"].is_string() && !document["cluster_id"].empty(),
               "a cluster id is a string");
    out.spec.set_id(document["cluster_id"].get<std::string>());
  }
  if (document.contains("files")) {
    const Json& files = document["files"];
    const JsonPlace here = root.at("files");
    here.check(files.is_array() && std::all_of(files.begin(), files.end(),
                                               [](const Json& path) { return path.is_string(); }),
               "a list of directories is expected, such as [\"/data\"], this is ", text_of(files));
    in_place(here, [&] { out.spec.set_files(files.get<std::vector<std::string>>()); });
  }
  if (document.contains("shared_memory")) {
    root.at("shared_memory")
        .check(document["shared_memory"].is_boolean(), "true or false is expected, this is ",
               text_of(document["shared_memory"]));
    out.spec.set_shares_memory(document["shared_memory"].get<bool>());
  }
  if (document.contains("gpus")) {
    const Json& gpus = document["gpus"];
    const JsonPlace here = root.at("gpus");
    here.check(gpus.is_array() && std::all_of(gpus.begin(), gpus.end(),
                                              [](const Json& name) { return name.is_string(); }),
               "a list of jobs and tasks is expected, such as [\"worker\"] or "
               "[\"/job:worker/task:0\"], this is ",
               text_of(gpus));
    in_place(here, [&] { out.spec.set_gpus(gpus.get<std::vector<std::string>>()); });
  }
  if (document.contains("tls")) out.spec.set_tls(read_tls(root.at("tls"), document["tls"]));
  if (document.contains("rpc_layer")) {
    root.at("rpc_layer")
        .check(document["rpc_layer"] == "grpc", "only \"grpc\" is supported, this is ",
               text_of(document["rpc_layer"]));
  }
  if (document.contains("task")) {
    const Json& task = document["task"];
    const JsonPlace here = root.at("task");
    here.check(task.is_object(),
               "a task is an object such as {\"type\": \"worker\", \"index\": 0}, this is ",
               text_of(task));
    const auto is_task_key = [](const std::string& key) {
      return key == "type" || key == "index" || key == "trial";
    };
    const auto hint = [](const std::string&) { return ": a task has \"type\" and \"index\""; };
    check_keys(here, task, keys, is_task_key, hint, out.remarks);
    here.check(task.contains("type") && task["type"].is_string(), "the task has no \"type\"");
    out.task = TaskName{task["type"].get<std::string>(),
                        task.contains("index") ? index_of(here.at("index"), task["index"]) : 0};
    here.check(out.task->job == "evaluator" || out.spec.size() == 0 || out.spec.contains(*out.task),
               *out.task, " is not in the cluster, which has ", out.spec.to_json());
  }
  return out;
}

// ps|h:2222;h:2223,worker|h:2224
ClusterSpec parse_flag(std::string_view text, std::string_view origin) {
  ClusterSpec spec;
  std::istringstream jobs{std::string(text)};
  for (std::string job; std::getline(jobs, job, ',');) {
    const size_t bar = job.find('|');
    check(bar != std::string::npos, origin, ": ", quoted(job),
          " is neither JSON nor job|host:port;host:port — for example "
          "ps|10.0.0.1:2222,worker|10.0.0.2:2222");
    std::istringstream tasks{job.substr(bar + 1)};
    int index = 0;
    for (std::string address; std::getline(tasks, address, ';');)
      spec.add({job.substr(0, bar), index++}, address);
    check(index > 0, origin, ": job \"", job.substr(0, bar), "\" has no tasks");
  }
  return spec;
}

}  // namespace

ClusterSpec ClusterSpec::parse(std::string_view text, std::string_view origin) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // a byte order mark
  const size_t start = text.find_first_not_of(" \t\r\n");
  check(start != std::string_view::npos, origin, ": empty");
  if (text[start] != '{' && text[start] != '[') return parse_flag(text, origin);
  ClusterSpec spec = read_document(parse_json(text, origin), origin, Keys::known).spec;
  check(spec.size() > 0, origin, ": the cluster has no tasks");
  return spec;
}

ClusterSpec ClusterSpec::read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    fail(Code::not_found, "cannot read the cluster description ", path,
         ": no such file, or no permission");
  check(!std::filesystem::is_directory(path), path,
        ": this is a directory; give a file with a cluster description");
  std::string text;
  char piece[65536];
  while (file.read(piece, sizeof piece), file.gcount() > 0) {
    text.append(piece, static_cast<size_t>(file.gcount()));
    check(text.size() <= largest_description, path,
          ": this is not a cluster description: it has more than ", largest_description >> 20,
          " MiB");
  }
  ClusterSpec spec = parse(text, path);
  TlsPaths tls = spec.tls();
  for (std::string* file : {&tls.ca, &tls.certificate, &tls.key}) {
    if (!file->empty())
      *file = std::filesystem::absolute(std::filesystem::path(path).parent_path() / *file);
  }
  spec.set_tls(std::move(tls));
  return spec;
}

ResolvedCluster parse_tf_config(std::string_view text) {
  return read_document(parse_json(text, "TF_CONFIG"), "TF_CONFIG", Keys::any);
}

std::optional<ResolvedCluster> cluster_from_environment() {
  const char* text = std::getenv("TF_CONFIG");
  if (text == nullptr || *text == '\0') return std::nullopt;
  ResolvedCluster out = parse_tf_config(text);
  for (const std::string& remark : out.remarks) std::cerr << concat("leat: ", remark, "\n");
  return out;
}

}  // namespace leat
