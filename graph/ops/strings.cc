#include "graph/ops/strings.h"

#include "graph/ops/graph_of.h"

namespace leat {

Output as_string(Output x, const AsStringOptions& options, Location at) {
  return op("AsString", {x},
            {{"precision", options.precision},
             {"scientific", options.scientific},
             {"shortest", options.shortest},
             {"width", options.width},
             {"fill", options.fill}},
            at);
}
Output string_to_number(Output x, DType dtype, Location at) {
  return op("StringToNumber", {x}, {{"out_type", dtype}}, at);
}
SparseTensor string_split(Output x, const TensorLike& separator, int64_t maximum_cuts,
                          Location at) {
  const std::vector<Output> out = op_outputs("StringSplitV2", {x, separator.in(graph_of(x, at))},
                                             {{"maxsplit", maximum_cuts}}, at);
  return {out[0], out[1], out[2]};
}
Output string_join(const std::vector<Output>& inputs, std::string_view separator, Location at) {
  return op("StringJoin", inputs, {{"separator", separator}}, at);
}
Output string_to_hash_bucket(Output x, int64_t buckets, Location at) {
  check(buckets > 0, "string_to_hash_bucket (", at, "): buckets must be positive, got ", buckets);
  return op("StringToHashBucketFast", {x}, {{"num_buckets", buckets}}, at);
}
Output string_strip(Output x, Location at) { return op("StringStrip", {x}, {}, at); }
Output string_lower(Output x, Location at) { return op("StringLower", {x}, {}, at); }
Output string_upper(Output x, Location at) { return op("StringUpper", {x}, {}, at); }
Output string_length(Output x, Location at) { return op("StringLength", {x}, {}, at); }
Output substr(Output x, const TensorLike& position, const TensorLike& length, Location at) {
  Graph& graph = graph_of(x, at);
  return op("Substr", {x, position.in(graph), length.in(graph)}, {}, at);
}
Output regex_replace(Output x, const TensorLike& pattern, const TensorLike& rewrite, Location at) {
  Graph& graph = graph_of(x, at);
  return op("RegexReplace", {x, pattern.in(graph), rewrite.in(graph)}, {}, at);
}
Output decode_raw(Output x, DType dtype, Location at) {
  return op("DecodeRaw", {x}, {{"out_type", dtype}}, at);
}

}  // namespace leat
