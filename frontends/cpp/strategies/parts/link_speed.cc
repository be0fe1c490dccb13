#include "frontends/cpp/strategies/parts/link_speed.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <mutex>

#include "frontends/cpp/session.h"
#include "graph/ops.h"

namespace leat {
namespace {

constexpr int64_t few = 16, many = 1 << 20;  // floats: 64 bytes, 4 MiB
constexpr std::chrono::seconds longest{10};
constexpr double least_us = 1;  // a smaller difference of two times is noise

// Seconds of a step: both tasks square a tensor that the other one makes, or their own.
class Exchange {
 public:
  Exchange(Graph& graph, Output value, const DeviceName* const (&tasks)[2], int64_t elements,
           bool is_sent) {
    Output made[2];
    for (int i = 0; i < 2; ++i) {
      const DeviceScope there(graph, tasks[i]->to_string());
      made[i] = full(graph, {elements}, value);
    }
    for (int i = 0; i < 2; ++i) {
      const DeviceScope there(graph, tasks[i]->to_string());
      targets_.emplace_back(square(made[is_sent ? 1 - i : i]));
    }
  }

  void prepare(Session& session, Output value) { step_ = session.prepare({value}, {}, targets_); }

  void run_once() {
    const std::vector<Tensor> feeds = {Tensor::scalar(1.0F)};
    const auto start = std::chrono::steady_clock::now();
    step_->run(feeds, fetches_);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    if (runs_++ > 0) least_ = std::min(least_, time.count());  // the first one compiles
  }
  double least() const { return least_; }

 private:
  Targets targets_;
  std::optional<Callable> step_;
  std::vector<Tensor> fetches_;
  int runs_ = 0;
  double least_ = std::numeric_limits<double>::infinity();
};

}  // namespace

LinkSpeed measure_link_speed(const std::string& target, const DeviceName& one,
                             const DeviceName& other) {
  Graph graph;
  const Output value = placeholder(graph, "value", f32, {});
  const DeviceName* const tasks[] = {&one, &other};
  Exchange steps[] = {{graph, value, tasks, few, false},
                      {graph, value, tasks, few, true},
                      {graph, value, tasks, many, false},
                      {graph, value, tasks, many, true}};
  SessionOptions options;
  options.target = target;
  options.timeout = longest;
  Session session(graph, options);
  for (Exchange& step : steps) step.prepare(session, value);
  // In turns, so that what else the machine does affects all of them.
  for (int round = 0; round < 10; ++round) {
    for (Exchange& step : steps) {
      const int times = &step < &steps[2] ? 5 : 1;
      for (int i = 0; i < times; ++i) step.run_once();
    }
  }
  session.close();
  const double trip_us = std::max((steps[1].least() - steps[0].least()) * 1e6, least_us);
  const double large_us = (steps[3].least() - steps[2].least()) * 1e6 - trip_us;
  return {.trip_us = trip_us,
          .megabytes_per_second =
              static_cast<double>(many * sizeof(float)) / std::max(large_us, least_us),
          .is_measured = true};
}

LinkSpeed link_speed(const Replicas& replicas) {
  if (replicas.count() < 2 || replicas.target().empty() || !replicas.is_chief()) return {};
  const auto hosts = replicas.by_host();
  const DeviceName& one = replicas.worker(0);
  const DeviceName& other = replicas.worker(hosts.size() > 1 ? hosts[1].front() : 1);
  static std::mutex mutex;
  static std::map<std::string, LinkSpeed> known;
  const std::string key = concat(replicas.target(), " ", one.to_string(), " ", other.to_string());
  const std::lock_guard lock(mutex);
  if (const auto found = known.find(key); found != known.end()) return found->second;
  try {
    return known[key] = measure_link_speed(replicas.target(), one, other);
  } catch (const Error&) {
    return {};  // the training's own session says what is wrong
  }
}

}  // namespace leat
