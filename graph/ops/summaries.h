// Summaries: values for event files, which TensorBoard shows. Each is a serialized Summary, a
// string.
#pragma once

#include "graph/ops/operand.h"

namespace leat {

Output scalar_summary(std::string_view tag, Output value, Location at = here());
Output histogram_summary(std::string_view tag, Output values, Location at = here());
// The first `most` images of [batch, height, width, channels]: u8, or floats, which are scaled to 0
// … 255.
Output image_summary(std::string_view tag, Output images, int64_t most = 3, Location at = here());
Output merge_summaries(const std::vector<Output>& summaries, Location at = here());

}  // namespace leat
