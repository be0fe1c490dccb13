#include "graph/passes/recompute/recompute_plan.h"

#include <algorithm>
#include <set>
#include <utility>

namespace leat {
namespace {

class RecomputePlanner {
 public:
  explicit RecomputePlanner(const ForwardPart& part)
      : part_(part),
        count_(static_cast<int>(part.steps.size())),
        is_read_(part.values.size()),
        is_pinned_(part.steps.size()),
        made_(part.steps.size()) {
    for (const ForwardPart::Step& step : part.steps) {
      for (const int value : step.read) is_read_[value] = true;
    }
    for (size_t v = 0; v < part.values.size(); ++v) made_[part.values[v].maker].push_back(v);
    find_crossings();
    find_pinned();
  }

  RecomputePlan without_segments() const { return evaluate({}); }

  RecomputePlan by_layers() const {
    const auto layers = std::ranges::count_if(part_.steps, &ForwardPart::Step::begins_layer);
    const int most = std::ranges::max(crossing_values_);
    std::vector<int> cuts;
    for (int values = 1; values <= most; ++values) {
      cuts = cut_layers(values);
      if (std::ssize(cuts) * std::ssize(cuts) >= layers) break;
    }
    return evaluate(cuts);
  }

  RecomputePlan by_budget() const {
    constexpr int budgets = 40;
    double whole = 0;
    for (size_t v = 0; v < part_.values.size(); ++v) {
      if (is_read_[v]) whole += part_.values[v].bytes;
    }
    std::vector<double> sorted = crossing_bytes_;
    std::sort(sorted.begin(), sorted.end());
    std::set<double> limits;
    for (const double quantile : {0.02, 0.1, 0.25, 0.5, 1.0})
      limits.insert(sorted[static_cast<size_t>(quantile * (count_ - 1))]);
    std::set<std::vector<int>> tried;
    std::vector<RecomputePlan> plans;
    for (const double limit : limits) {
      for (int k = 1; k <= budgets; ++k) {
        std::vector<int> cuts = cut(whole * k / budgets, limit);
        if (cuts.empty() || !tried.insert(cuts).second) continue;
        plans.push_back(evaluate(cuts));
      }
    }
    if (plans.empty()) return without_segments();
    const double most = std::ranges::min(plans, {}, &RecomputePlan::peak).peak + 0.06 * whole;
    std::erase_if(plans, [&](const RecomputePlan& plan) { return plan.peak > most; });
    return std::ranges::min(plans, {}, &RecomputePlan::cost);
  }

 private:
  // What the steps up to each one have made, and later steps read.
  void find_crossings() {
    std::vector<int> last(part_.values.size(), -1);
    for (int i = 0; i < count_; ++i) {
      for (const ForwardPart::Input& input : part_.steps[i].inputs) last[input.value] = i;
    }
    std::vector<double> bytes(count_ + 1);
    std::vector<int> values(count_ + 1);
    for (size_t v = 0; v < part_.values.size(); ++v) {
      const ForwardPart::Value& value = part_.values[v];
      if (value.bytes == 0 || last[v] < 0) continue;
      const int counts = part_.steps[value.maker].follows_variable ? 1 : 0;
      bytes[value.maker] += value.bytes, bytes[last[v]] -= value.bytes;
      values[value.maker] += counts, values[last[v]] -= counts;
    }
    double sum_of_bytes = 0;
    int sum_of_values = 0;
    for (int i = 0; i < count_; ++i) {
      crossing_bytes_.push_back(sum_of_bytes += bytes[i]);
      crossing_values_.push_back(sum_of_values += values[i]);
    }
  }

  // What reads a value that has to stay because of it, and gives no more bytes than that, stays
  // instead: of a dropout the mask, and not the random numbers.
  void find_pinned() {
    std::vector<bool> is_used = is_read_;
    for (const ForwardPart::Step& step : part_.steps) {
      for (const ForwardPart::Input& input : step.inputs) is_used[input.value] = true;
    }
    for (int i = 0; i < count_; ++i) {
      if (!part_.steps[i].may_repeat) continue;
      double bytes = 0;
      for (const size_t value : made_[i]) {
        if (is_used[value]) bytes += part_.values[value].bytes;
      }
      for (const auto& [from, value] : part_.steps[i].inputs) {
        if (bytes > 0 && bytes <= part_.values[value].bytes && !is_read_[value] && stays(from))
          is_pinned_[i] = true;
      }
    }
  }

  bool stays(int step) const { return !part_.steps[step].may_repeat || is_pinned_[step]; }

  // The last steps of layers, with so many values behind each.
  std::vector<int> cut_layers(int values) const {
    std::vector<int> cuts;
    bool has_begun = false;
    int last = -1;  // place behind the beginning of the present layer
    for (int i = 0; i < count_; ++i) {
      if (part_.steps[i].begins_layer) {
        if (last >= 0) cuts.push_back(std::exchange(last, -1));
        has_begun = true;
      }
      if (has_begun && crossing_values_[i] >= 1 && crossing_values_[i] <= values) last = i;
    }
    return cuts;
  }

  // The last steps of segments.
  std::vector<int> cut(double budget, double limit) const {
    std::vector<int> cuts;
    double kept = 0, since = 0;
    for (int i = 0; i + 1 < count_; ++i) {
      for (const size_t value : made_[i]) {
        if (is_read_[value]) (stays(i) ? kept : since) += part_.values[value].bytes;
      }
      if (since == 0 || kept + since < budget || crossing_bytes_[i] > limit) continue;
      cuts.push_back(i);
      kept += crossing_bytes_[i];
      since = 0;
    }
    return cuts;
  }

  RecomputePlan evaluate(const std::vector<int>& cuts) const {
    RecomputePlan plan;
    plan.segments.reserve(count_);
    for (int i = 0, segment = 0; i < count_; ++i) {
      plan.segments.push_back(segment);
      if (segment < std::ssize(cuts) && cuts[segment] == i) ++segment;
    }
    plan.is_again.resize(count_);
    const std::vector<bool> is_wanted = find_again(plan);
    add_up(plan, is_wanted, static_cast<int>(cuts.size()) + 1);
    return plan;
  }

  // Returns which values steps read that run again.
  std::vector<bool> find_again(RecomputePlan& plan) const {
    std::vector<bool> is_wanted(part_.values.size());
    std::vector<bool> serves_again(count_);  // a step of its segment that runs again
    std::vector<bool> is_kept(count_);       // a later segment needs it
    for (int i = count_ - 1; i >= 0; --i) {
      const ForwardPart::Step& step = part_.steps[i];
      const auto keep = [&](int value) {
        if (part_.values[value].maker != i) is_kept[part_.values[value].maker] = true;
      };
      const bool is_last = plan.segments[i] == plan.segments.back();
      const bool is_needed = serves_again[i] || !step.read.empty();
      if (is_last || is_kept[i] || !is_needed || stays(i)) {
        std::for_each(step.read.begin(), step.read.end(), keep);
        continue;
      }
      plan.is_again[i] = true;
      for (const auto& [from, value] : step.inputs) {
        is_wanted[value] = true;
        if (plan.segments[from] == plan.segments[i]) {
          serves_again[from] = true;
        } else {
          is_kept[from] = is_kept[part_.values[value].maker] = true;
        }
      }
    }
    return is_wanted;
  }

  void add_up(RecomputePlan& plan, const std::vector<bool>& is_wanted, int segments) const {
    std::vector<double> kept(segments), again(segments);
    for (size_t v = 0; v < part_.values.size(); ++v) {
      const auto& [bytes, maker] = part_.values[v];
      const int segment = plan.segments[maker];
      if (!plan.is_again[maker]) {
        if (is_read_[v] || is_wanted[v]) kept[segment] += bytes;
      } else {
        plan.cost += bytes;
        if (is_read_[v]) again[segment] += bytes;
      }
    }
    double so_far = 0;
    for (int segment = 0; segment < segments; ++segment) {
      so_far += kept[segment];
      plan.peak = std::max(plan.peak, so_far + again[segment]);
    }
  }

  const ForwardPart& part_;
  const int count_;
  std::vector<bool> is_read_;              // by value: by the backward part
  std::vector<bool> is_pinned_;            // by step
  std::vector<std::vector<size_t>> made_;  // by step
  std::vector<double> crossing_bytes_;     // by step: behind it
  std::vector<int> crossing_values_;       // that depend on variables
};

}  // namespace

RecomputePlan plan_recompute(const ForwardPart& part, Recompute extent) {
  if (part.steps.empty()) return {};
  const RecomputePlanner planner(part);
  RecomputePlan whole = planner.without_segments();
  if (extent == Recompute::nothing) return whole;
  RecomputePlan plan = extent == Recompute::layers ? planner.by_layers() : planner.by_budget();
  return plan.peak > 0.95 * whole.peak ? whole : plan;
}

}  // namespace leat
