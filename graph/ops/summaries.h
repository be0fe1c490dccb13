// Summaries: values for event files, which TensorBoard shows. Each is a serialized Summary, a
// string.
#pragma once

#include "graph/ops/operand.h"

namespace leat {

inline Output scalar_summary(std::string_view tag, Output value, Location at = here()) {
  return op("ScalarSummary",
            {constant(value.graph(), Tensor::scalar(std::string(tag)), "tag", at), value}, {}, at);
}
inline Output histogram_summary(std::string_view tag, Output values, Location at = here()) {
  return op("HistogramSummary",
            {constant(values.graph(), Tensor::scalar(std::string(tag)), "tag", at), values}, {},
            at);
}
inline Output merge_summaries(const std::vector<Output>& summaries, Location at = here()) {
  return op("MergeSummary", summaries, {}, at);
}

}  // namespace leat
