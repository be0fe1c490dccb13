#include "graph/ops/summaries.h"

#include "graph/ops/graph_of.h"

namespace leat {
namespace {

Output tagged(std::string_view name, std::string_view tag, Output value, Location at) {
  Graph& graph = graph_of(value, at);
  return op(name, {constant(graph, Tensor::scalar(std::string(tag)), "tag", at), value}, {}, at);
}

}  // namespace

Output scalar_summary(std::string_view tag, Output value, Location at) {
  return tagged("ScalarSummary", tag, value, at);
}
Output histogram_summary(std::string_view tag, Output values, Location at) {
  return tagged("HistogramSummary", tag, values, at);
}
Output image_summary(std::string_view tag, Output images, int64_t most, Location at) {
  Graph& graph = graph_of(images, at);
  const Output name = constant(graph, Tensor::scalar(std::string(tag)), "tag", at);
  return op("ImageSummary", {name, images}, {{"max_images", most}}, at);
}
Output merge_summaries(const std::vector<Output>& summaries, Location at) {
  return op("MergeSummary", summaries, {}, at);
}

}  // namespace leat
