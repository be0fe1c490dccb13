#include "tools/leat/compare/cluster_samples.h"

#include <algorithm>
#include <limits>
#include <set>

namespace leat {
namespace {

constexpr std::string_view waits_for = "waits for ", waits_in = "waits in ";

// "/job:ps/task:0" → "ps:0"
std::string short_name(const std::string& task) {
  try {
    const TaskName name = TaskName::parse(task);
    return concat(name.job, ":", name.index);
  } catch (const Error&) {
    return task;
  }
}

// "clock 'c': member 0, at 7, waits for member 2, at 5 and member 3, at 5 (staleness 2); member 1…"
void add_members(std::string_view state, std::set<std::string>& out) {
  const std::string clock(state.substr(0, state.find(':')));
  for (size_t at = 0; (at = state.find(waits_for, at)) != state.npos;) {
    at += waits_for.size();
    std::string_view owed = state.substr(at, state.find_first_of(";(", at) - at);
    for (size_t found = 0; (found = owed.find("member ", found)) != owed.npos; ++found)
      out.insert(
          concat(clock, " ", owed.substr(found, owed.find_first_of(", ", found + 7) - found)));
  }
}

}  // namespace

std::vector<std::string> owners_of(const StepActivity& activity) {
  const std::string_view what = activity.what;
  if (what.starts_with(waits_for)) {
    if (!activity.from.empty()) return {short_name(activity.from)};
    return {std::string(what.substr(waits_for.size()))};
  }
  if (!what.starts_with(waits_in)) return {};
  const size_t colon = what.find(": ");
  if (colon == what.npos) return {std::string(what.substr(waits_in.size()))};
  const std::string_view state = what.substr(colon + 2);
  if (state.starts_with("clock ")) {
    std::set<std::string> members;
    add_members(state, members);
    return {members.begin(), members.end()};
  }
  const size_t quote = state.find('\'');
  const size_t end = quote == state.npos ? quote : state.find('\'', quote + 1);
  if (end == state.npos) return {std::string(state)};
  if (const std::string_view kind = state.substr(0, quote); kind.ends_with("Accumulator "))
    return {std::string(kind.substr(0, kind.size() - 1))};
  return {std::string(state.substr(0, end + 1))};
}

void ClusterSamples::add(double time, const ClusterView& view) {
  double bytes = 0;
  std::vector<std::string> owners;
  for (const TaskView& task : view.tasks) {
    // The bytes of a task that does not answer are missing: a total without them would fall.
    if (!task.problem.empty()) return;
    bytes += static_cast<double>(task.sent_bytes);
    for (const RunningStep& step : task.activity.steps) {
      for (const StepActivity& activity : step.activity) {
        for (std::string& owner : owners_of(activity)) owners.push_back(std::move(owner));
      }
    }
  }
  bytes_.emplace_back(time, bytes);
  for (const std::string& owner : owners) ++waits_[owner];
}

double ClusterSamples::bytes_at(double time) const {
  if (is_empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto after = std::lower_bound(bytes_.begin(), bytes_.end(), std::pair{time, 0.0});
  if (after == bytes_.begin()) return after->second;
  const auto before = std::prev(after);
  const auto [t, bytes] = *before;
  const auto& [t1, bytes1] = after == bytes_.end() ? bytes_.front() : *after;
  const double rate = t1 == t ? 0 : (bytes1 - bytes) / (t1 - t);
  return bytes + rate * (time - t);
}

std::vector<std::pair<std::string, double>> ClusterSamples::waits() const {
  std::vector<std::pair<std::string, double>> out;
  double all = 0;
  for (const auto& [owner, count] : waits_) all += static_cast<double>(count);
  for (const auto& [owner, count] : waits_)
    out.emplace_back(owner, static_cast<double>(count) / all);
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return out;
}

void ClusterSamples::begin(double time) {
  if (is_empty()) return;
  const auto after = std::lower_bound(bytes_.begin(), bytes_.end(), std::pair{time, 0.0});
  const double before = after == bytes_.begin() ? 0 : std::prev(after)->second;
  bytes_.erase(bytes_.begin(), after);
  bytes_.insert(bytes_.begin(), {time, before});
}

void add_bytes(ClusterSamples samples, TrainingCurve& curve) {
  samples.begin(curve.start);
  const double before = samples.bytes_at(curve.start);
  for (CurvePoint& point : curve.points)
    point.bytes = samples.bytes_at(curve.start + point.seconds) - before;
}

}  // namespace leat
