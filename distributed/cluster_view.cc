#include "distributed/cluster_view.h"

#include <algorithm>
#include <iomanip>
#include <map>
#include <mutex>
#include <sstream>

#include "core/text_table.h"
#include "distributed/cluster/tls.h"
#include "distributed/grpc/rpc_client.h"
#include "distributed/grpc/rpc_server.h"
#include "distributed/master/peers.h"
#include "distributed/worker/worker_wire.h"

namespace leat {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* view_method = "/leat.Cluster/View";
constexpr auto collect_limit = std::chrono::seconds(2);  // for all tasks together

// State shared by the tasks' answers.
struct Collecting {
  std::mutex mutex;
  ClusterView view;
  size_t missing = 0;
  std::function<void(ClusterView)> done;
};

void collect(const std::shared_ptr<const Peers>& peers, const std::shared_ptr<Collecting>& state,
             size_t index, Clock::time_point deadline) {
  const auto answered = [state] {
    {
      std::lock_guard lock(state->mutex);
      if (--state->missing > 0) return;
    }
    state->done(std::move(state->view));
  };
  const TaskName task = state->view.tasks[index].task;
  const auto worker = peers->worker(task);
  worker->status(deadline, [=](const Status& status, const WorkerStatus& answer) {
    TaskView& view = state->view.tasks[index];  // nobody else touches this one
    if (!status.is_ok()) {
      view.problem = status.code == Code::deadline_exceeded ? "does not answer" : status.message;
      if (peers->last_heard) view.problem += ", " + peers->last_heard(task);
      return answered();
    }
    // What a stranger does is no news of this cluster.
    view.problem = peers->stranger(task, answer);
    if (!view.problem.empty()) return answered();
    view.pid = answer.pid;
    view.host = answer.host;
    view.sessions = answer.sessions;
    view.graphs = answer.graphs;
    view.sent_bytes = answer.sent_bytes;
    view.links = answer.links;
    view.devices = answer.devices;
    worker->activity(deadline, [=](const Status& status, TaskActivity activity) {
      TaskView& view = state->view.tasks[index];
      if (!status.is_ok()) view.problem = status.message;
      view.activity = std::move(activity);
      answered();
    });
  });
}

// ---- Text ----

using Row = std::vector<std::string>;

std::string hexadecimal(int64_t id) {
  std::ostringstream out;
  out << std::hex << id;
  return out.str();
}

// "CPU:0, GPU:0 (139.8 GiB), GPU:1 (lost)": GPUs with their memory.
std::string devices_text(const std::vector<DeviceDescription>& devices) {
  std::ostringstream out;
  for (const DeviceDescription& device : devices) {
    const DeviceName name = DeviceName::parse(device.name);
    out << (out.tellp() == 0 ? "" : ", ") << device.type << ':' << name.id.value_or(0);
    if (!device.problem.empty())
      out << " (lost)";
    else if (device.type == "GPU")
      out << " (" << std::fixed << std::setprecision(1)
          << static_cast<double>(device.memory_limit) / (1 << 30) << " GiB)";
  }
  return out.str();
}

struct StepView {
  int64_t ns = 0;
  TaskName master;
  std::string session;
  std::vector<std::pair<TaskName, StepActivity>> lines;
};

Row row_of(const std::string& step, const std::string& client, const TaskName& task,
           const StepActivity& activity) {
  return {step,
          client,
          task.to_string(),
          seconds_text(std::chrono::nanoseconds(activity.ns)),
          activity.what,
          activity.from};
}

}  // namespace

void collect_view(const std::shared_ptr<const Peers>& peers, Clock::time_point deadline,
                  std::function<void(ClusterView)> done) {
  const auto state = std::make_shared<Collecting>();
  state->done = std::move(done);
  state->view.asked = peers->self;
  for (const TaskName& task : peers->spec.tasks()) {
    TaskView& view = state->view.tasks.emplace_back();
    view.task = task;
    view.address = peers->spec.address(task);
  }
  state->missing = state->view.tasks.size();
  const size_t count = state->missing;
  for (size_t i = 0; i < count; ++i) collect(peers, state, i, deadline);
}

void serve_view(RpcServer& server, std::function<std::shared_ptr<const Peers>()> peers) {
  server.handle(view_method, [peers = std::move(peers)](RpcCall call) {
    try {
      Clock::time_point deadline = Clock::now() + collect_limit;
      if (call.deadline()) {
        const auto left = *call.deadline() - Clock::now();
        deadline = std::min(deadline, Clock::now() + left * 3 / 4);
      }
      collect_view(peers(), deadline, [call](const ClusterView& view) mutable {
        call.reply(wire::encode_view(view));
      });
    } catch (...) {
      const Status status = status_of_current_exception();
      call.fail({static_cast<int>(status.code), status.message, RpcCause::none});
    }
  });
}

ClusterView view_cluster(const std::string& target, std::chrono::milliseconds limit) {
  RpcClient client(HostPort::of_target(target).to_string(),
                   {.tls = client_tls(), .check_server = is_any_task()});
  const auto [status, reply] =
      client.call_and_wait(view_method, "", {.deadline = Clock::now() + limit});
  if (!status.is_ok()) {
    const auto code = static_cast<Code>(status.code);
    if (status.cause == RpcCause::none && code == Code::deadline_exceeded) {
      fail(code, target, " did not answer within ", seconds_text(limit));
    }
    if (status.cause == RpcCause::none) fail(code, target, ": ", status.message);
    fail(Code::unavailable, target, " cannot be reached: ", status.message);
  }
  const auto kept = std::make_shared<const std::string>(reply);
  return wire::decode_view(Bytes({std::string_view(*kept)}, kept));
}

std::string to_text(const ClusterView& view) {
  std::vector<Row> tasks = {
      {"task", "address", "pid", "devices", "sessions", "graphs", "steps", "state"}};
  std::map<int64_t, StepView> steps;
  std::vector<Row> rows = {{"step", "client of", "task", "for", "does", "owed by"}};
  std::vector<Row> waits;
  for (const TaskView& task : view.tasks) {
    if (!task.problem.empty()) {
      tasks.push_back({task.task.to_string(), task.address, "-", "-", "-", "-", "-", task.problem});
      continue;
    }
    tasks.push_back({task.task.to_string(), task.address, concat(task.pid, "@", task.host),
                     devices_text(task.devices), std::to_string(task.sessions),
                     std::to_string(task.graphs), std::to_string(task.activity.steps.size()),
                     "answers"});
    for (const RunningStep& step : task.activity.steps) {
      StepView& all = steps[step.step];
      all.ns = std::max(all.ns, step.ns);
      all.master = step.master;
      all.session = step.session;
      for (const StepActivity& each : step.activity) all.lines.emplace_back(task.task, each);
      if (step.activity.empty())
        all.lines.emplace_back(task.task, StepActivity{"goes on", "", step.ns});
    }
    for (const StepActivity& each : task.activity.waits)
      waits.push_back(row_of("-", "", task.task, each));
  }
  std::vector<std::pair<int64_t, const StepView*>> order;
  for (const auto& [id, step] : steps) order.emplace_back(id, &step);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.second->ns > b.second->ns; });
  for (const auto& [id, step] : order) {
    const std::string client =
        step->master.job.empty() ? "" : concat(step->master, " session ", step->session);
    bool is_first = true;
    for (const auto& [task, activity] : step->lines) {
      rows.push_back(
          row_of(is_first ? hexadecimal(id) : "", is_first ? client : "", task, activity));
      is_first = false;
    }
  }
  rows.insert(rows.end(), waits.begin(), waits.end());
  std::string out = aligned(tasks) + "\n";
  return out + (rows.size() > 1 ? aligned(rows) : "No step runs, and no master waits.\n");
}

}  // namespace leat
