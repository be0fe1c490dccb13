#include "graph/ops/sequences.h"

#include "graph/ops/arrays.h"
#include "graph/ops/graph_of.h"
#include "graph/ops/math.h"
#include "graph/ops/reduce.h"

namespace leat {
namespace {

using ImagePool = Output (*)(Output, const PoolOptions&, Location);

// A sequence is an image of height 1.
Output pool(std::string_view what, ImagePool of_images, Output x, int64_t size,
            const Pool1dOptions& options, Location at) {
  graph_of(x, at);
  check(!x.shape().has_rank() || x.shape().rank() == 3, what, " (", at,
        "): the input must be [batch, length, channels], got ", x.name(), " ", x.dtype(),
        x.shape());
  check(options.padding.name() != "EXPLICIT", what, " (", at,
        "): the padding must be `same` or `valid`");
  const int64_t stride = options.strides == 0 ? size : options.strides;
  const Output y =
      of_images(expand_dims(x, 1, at),
                {.size = {1, size}, .strides = {1, stride}, .padding = options.padding}, at);
  return squeeze(y, 1, at);
}

}  // namespace

Output sequence_mask(Output lengths, const Operand& maximum, const SequenceMaskOptions& options,
                     Location at) {
  Graph& graph = graph_of(lengths, at);
  check(lengths.dtype() == i32 || lengths.dtype() == i64, "sequence_mask (", at,
        "): lengths must be int32 or int64, got '", lengths.name(), "' ", lengths.dtype(),
        lengths.shape());
  Output end = maximum.as(graph, lengths.dtype());
  if (end.dtype() != lengths.dtype()) end = cast(end, lengths.dtype(), at);
  const Output positions = arange(graph, Operand(end, at), at);
  const Output mask = op("Less", {positions, expand_dims(lengths, -1, at)}, {}, at);
  return options.dtype == boolean ? mask : cast(mask, options.dtype, at);
}
Output sequence_mask(Output lengths, const SequenceMaskOptions& options, Location at) {
  graph_of(lengths, at);
  return sequence_mask(lengths, Operand(max(lengths, {}, {}, at), at), options, at);
}

Output max_pool1d(Output x, int64_t size, const Pool1dOptions& options, Location at) {
  return pool("max_pool1d", max_pool, x, size, options, at);
}
Output avg_pool1d(Output x, int64_t size, const Pool1dOptions& options, Location at) {
  return pool("avg_pool1d", avg_pool, x, size, options, at);
}

}  // namespace leat
