#include "frontends/cpp/strategies/parts/pipeline_schedule.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "core/error.h"

namespace leat {

PipelineSchedule pipeline_schedule_named(std::string_view name) {
  if (name == "gpipe") return PipelineSchedule::gpipe;
  if (name == "1f1b") return PipelineSchedule::one_f_one_b;
  fail(Code::invalid_argument, "there is no pipeline schedule '", name,
       "'; there are: gpipe, 1f1b");
}

namespace {

// The blocks of one stage.
std::vector<PipelineBlock> order_of(PipelineSchedule schedule, int stage, int stages,
                                    int micro_batches) {
  std::vector<PipelineBlock> out;
  const auto forward = [&](int m) { out.push_back({stage, m, false}); };
  const auto backward = [&](int m) { out.push_back({stage, m, true}); };
  if (schedule == PipelineSchedule::gpipe) {
    for (int m = 0; m < micro_batches; ++m) forward(m);
    for (int m = micro_batches; m-- > 0;) backward(m);
    return out;
  }
  const int ahead = std::min(stages - stage - 1, micro_batches);
  for (int m = 0; m < ahead; ++m) forward(m);
  for (int m = ahead; m < micro_batches; ++m) {
    forward(m);
    backward(m - ahead);
  }
  for (int m = micro_batches - ahead; m < micro_batches; ++m) backward(m);
  return out;
}

using Key = std::tuple<int, int, bool>;
Key key(const PipelineBlock& block) { return {block.stage, block.micro_batch, block.is_backward}; }

// What a block waits for besides the one before it on its stage.
std::vector<PipelineBlock> needed_by(const PipelineBlock& block, int stages) {
  std::vector<PipelineBlock> out;
  const auto [stage, m, is_backward] = block;
  if (!is_backward) {
    if (stage > 0) out.push_back({stage - 1, m, false});
    return out;
  }
  out.push_back({stage, m, false});
  if (stage + 1 < stages) out.push_back({stage + 1, m, true});
  return out;
}

}  // namespace

std::vector<PipelineBlock> pipeline_blocks(PipelineSchedule schedule, int stages,
                                           int micro_batches) {
  check(stages > 0 && micro_batches > 0, "a pipeline needs a stage and a micro-batch, got ", stages,
        " and ", micro_batches);
  std::vector<std::vector<PipelineBlock>> orders;
  for (int stage = 0; stage < stages; ++stage)
    orders.push_back(order_of(schedule, stage, stages, micro_batches));
  std::vector<PipelineBlock> out;
  std::vector<size_t> next(orders.size());
  std::map<Key, bool> is_done;
  const size_t all = 2 * static_cast<size_t>(stages) * static_cast<size_t>(micro_batches);
  while (out.size() < all) {
    const size_t before = out.size();
    for (size_t stage = 0; stage < orders.size(); ++stage) {
      if (next[stage] == orders[stage].size()) continue;
      const PipelineBlock& block = orders[stage][next[stage]];
      const auto needed = needed_by(block, stages);
      if (!std::all_of(needed.begin(), needed.end(),
                       [&](const PipelineBlock& each) { return is_done.contains(key(each)); }))
        continue;
      out.push_back(block);
      is_done[key(block)] = true;
      ++next[stage];
    }
    check_internal(out.size() > before, "the schedule of the pipeline waits for itself");
  }
  return out;
}

std::vector<int> micro_batches_kept(std::span<const PipelineBlock> blocks, int stages) {
  std::vector<int> kept(static_cast<size_t>(stages)), most(static_cast<size_t>(stages));
  for (const PipelineBlock& block : blocks) {
    const auto stage = static_cast<size_t>(block.stage);
    kept[stage] += block.is_backward ? -1 : 1;
    most[stage] = std::max(most[stage], kept[stage]);
  }
  return most;
}

PipelineTimes pipeline_times(std::span<const PipelineBlock> blocks, std::span<const double> forward,
                             std::span<const double> backward) {
  PipelineTimes out;
  const int stages = static_cast<int>(forward.size());
  std::map<Key, double> ends;
  std::vector<double> free(forward.size()), busy(forward.size());
  for (const PipelineBlock& block : blocks) {
    const auto stage = static_cast<size_t>(block.stage);
    double begin = free[stage];
    for (const PipelineBlock& each : needed_by(block, stages))
      begin = std::max(begin, ends.at(key(each)));
    const double cost = block.is_backward ? backward[stage] : forward[stage];
    busy[stage] += cost;
    free[stage] = ends[key(block)] = begin + cost;
    out.begin.push_back(begin);
    out.end.push_back(begin + cost);
    out.step = std::max(out.step, begin + cost);
  }
  for (const double each : busy) out.bubble.push_back(out.step > 0 ? 1 - each / out.step : 0);
  return out;
}

std::string draw_pipeline(std::span<const PipelineBlock> blocks, const PipelineTimes& times,
                          int width) {
  const size_t columns = static_cast<size_t>(std::max(width, 1));
  std::vector<std::string> lines(times.bubble.size(), std::string(columns, '.'));
  const auto column = [&](double time) {
    const double part = times.step > 0 ? time / times.step : 0;
    return std::min(columns, static_cast<size_t>(part * static_cast<double>(columns) + 0.5));
  };
  for (size_t i = 0; i < blocks.size(); ++i) {
    std::string& line = lines[static_cast<size_t>(blocks[i].stage)];
    const size_t begin = column(times.begin[i]), end = column(times.end[i]);
    for (size_t c = begin; c < end; ++c) line[c] = blocks[i].is_backward ? 'B' : 'F';
    if (end > begin + 1) line[begin + 1] = static_cast<char>('0' + blocks[i].micro_batch % 10);
  }
  std::string out;
  for (size_t stage = 0; stage < lines.size(); ++stage)
    out += concat("stage ", stage, " ", lines[stage], "\n");
  return out;
}

}  // namespace leat
