// In which order the stages of a pipeline compute their micro-batches.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat {

enum class PipelineSchedule {
  // All forwards, then all backwards, the last micro-batch first: a stage keeps what backward needs
  // of all M micro-batches. Huang et al., "GPipe", NeurIPS 2019.
  gpipe,
  // Stage r of K computes K - r - 1 forwards ahead, then a forward and a backward in turn, then the
  // rest of the backwards: it keeps at most K - r micro-batches. Narayanan et al., "PipeDream",
  // SOSP 2019, with the flush of Narayanan et al., "Efficient large-scale language model training
  // on GPU clusters using Megatron-LM", SC 2021.
  one_f_one_b,
};
// "gpipe" or "1f1b"; INVALID_ARGUMENT lists them.
PipelineSchedule pipeline_schedule_named(std::string_view name);

// What a stage computes without a break.
struct PipelineBlock {
  int stage = 0;
  int micro_batch = 0;
  bool is_backward = false;
  bool operator==(const PipelineBlock&) const = default;
};

// All blocks of a step: those of a stage are in its order, and each comes after those it needs
// (forward of the stage before; backward of the stage behind, and its own forward).
std::vector<PipelineBlock> pipeline_blocks(PipelineSchedule schedule, int stages,
                                           int micro_batches);

// Micro-batches whose forward, but not yet whose backward, a stage has computed: the largest number
// at a time, by stage.
std::vector<int> micro_batches_kept(std::span<const PipelineBlock> blocks, int stages);

// When each block of a step begins and ends, if `forward` and `backward` are how long a block of
// each stage takes, in any unit, and transfers take no time. Stages that are equal idle for
// (K - 1) / (M + K - 1) of the step, with either schedule.
struct PipelineTimes {
  std::vector<double> begin, end;  // by block
  double step = 0;
  std::vector<double> bubble;  // by stage: the part of the step in which it waits
};
PipelineTimes pipeline_times(std::span<const PipelineBlock> blocks, std::span<const double> forward,
                             std::span<const double> backward);

// The same as text, a line for each stage, `width` characters for the step: "F" and "B" where a
// forward or a backward is computed, the last digit of its micro-batch behind it, "." where the
// stage waits.
std::string draw_pipeline(std::span<const PipelineBlock> blocks, const PipelineTimes& times,
                          int width = 72);

}  // namespace leat
