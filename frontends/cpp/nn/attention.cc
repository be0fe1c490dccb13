#include "frontends/cpp/nn/attention.h"

#include <cmath>

#include "frontends/cpp/nn/dense.h"

namespace leat::nn {
namespace {

// [batch, time, heads · n] as [batch, heads, time, n].
Output split_heads(Output x, int64_t heads, Location at) {
  const Shape& shape = x.shape();
  const int64_t n = shape[2] / heads;
  Output cut;
  if (shape[1] == any && shape[0] == any) {
    const Output leading = shape_of(x, i32, at)[slice(0, 2)];
    const Output rest =
        constant(x.graph(),
                 Tensor::of<int32_t>({2}, {static_cast<int32_t>(heads), static_cast<int32_t>(n)}));
    cut = reshape(x, concatenate({leading, rest}, 0, at), at);
  } else {
    cut = reshape(x, {shape[0], shape[1], heads, n}, at);
  }
  return transpose(cut, {0, 2, 1, 3}, at);
}

Output join_heads(Output x, Output like, int64_t size, Location at) {
  const Output y = transpose(x, {0, 2, 1, 3}, at);
  const Shape& shape = like.shape();
  if (shape[1] != any || shape[0] != any) return reshape(y, {shape[0], shape[1], size}, at);
  const Output leading = shape_of(like, i32, at)[slice(0, 2)];
  const Output rest = constant(x.graph(), Tensor::of<int32_t>({1}, {static_cast<int32_t>(size)}));
  return reshape(y, concatenate({leading, rest}, 0, at), at);
}

// Bool [queries, keys]: is the key's position at most the query's?
Output is_before(Output q, Output k, Location at) {
  Graph& graph = q.graph();
  const Output rows = arange(graph, shape_of(q, i32, at)[1]);
  const Output columns = arange(graph, shape_of(k, i32, at)[1]);
  return greater_equal({expand_dims(rows, 1, at), at}, expand_dims(columns, 0, at));
}

}  // namespace

Output attention(Output q, Output k, Output v, const AttentionOptions& options, Location at) {
  const std::string title = concat("attention '", options.name, "' (", at, ")");
  const int64_t heads = options.heads;
  check(heads > 0, title, ": the number of heads must be positive, got ", heads);
  for (const auto& [what, x] : {std::pair{"q", q}, {"k", k}, {"v", v}}) {
    check(bool{x}, title, ": ", what, " is an empty Output");
    check(x.shape().rank() == 3 && x.shape()[2] > 0 && x.shape()[2] % heads == 0, title, ": ", what,
          " must be [batch, time, n], n a known multiple of ", heads, " heads, got ", x.name(), " ",
          x.dtype(), x.shape());
  }
  check(q.shape()[2] == k.shape()[2], title, ": q and k differ in their last extent: ", q.shape(),
        " and ", k.shape());
  Graph& graph = q.graph();
  const NameScope scope(graph, options.name);
  const LocationScope line(graph, at);
  const double size = static_cast<double>(q.shape()[2] / heads);
  const Output scaled = split_heads(q, heads, at) * (1 / std::sqrt(size));
  Output scores = matmul(scaled, split_heads(k, heads, at), {.transpose_b = true}, at);
  Output seen = options.mask;
  check(!seen || seen.dtype() == DType::boolean, title, ": the mask must be bool, not ",
        seen ? seen.dtype() : DType::invalid);
  const auto fits = [](int64_t extent, int64_t wanted) {
    return extent == any || extent == 1 || wanted == any || extent == wanted;
  };
  if (seen && seen.shape().has_rank()) {
    const Shape& mask = seen.shape();
    const int rank = mask.rank();
    const bool is_of_scores = rank >= 2 && rank <= 4 && fits(mask[rank - 1], k.shape()[1]) &&
                              fits(mask[rank - 2], q.shape()[1]);
    check(is_of_scores && (rank < 3 || fits(mask[0], q.shape()[0])) &&
              (rank < 4 || fits(mask[1], heads)),
          title, ": the mask must be [batch, queries, keys] or broadcast to [batch, heads, ",
          "queries, keys], here to ", Shape{q.shape()[0], heads, q.shape()[1], k.shape()[1]},
          ", got ", mask, "; a mask of keys, [batch, keys], is mask[{all, newaxis, all}]");
  }
  // Broadcast as it is, its batch would be taken for the heads.
  if (seen && seen.shape().rank() == 3) seen = expand_dims(seen, 1, at);
  if (options.causal) {
    const Output before = is_before(q, k, at);
    seen = seen ? logical_and(seen, before, at) : before;
  }
  // A number so small that its share is 0, in half precision too.
  if (seen) scores = where(seen, scores, scores.dtype() == f16 ? -6e4 : -1e9, at);
  const Output mixed = matmul(softmax(scores, at), split_heads(v, heads, at), {}, at);
  return join_heads(mixed, q, v.shape()[2], at);
}

MultiHeadAttention::MultiHeadAttention(Graph& graph, MultiHeadAttentionOptions options)
    : options_(std::move(options)), scope_(NameScope(graph, options_.name).name()) {}

Output MultiHeadAttention::operator()(Output queries, Output keys, Output values,
                                      Location at) const {
  const std::string title = concat("multi_head_attention '", options_.name, "' (", at, ")");
  check(queries && keys && values, title, ": an input is an empty Output");
  Graph& graph = queries.graph();
  const NameScope scope(graph, scope_);
  std::vector<Dense>& projections = *projections_;
  if (projections.empty()) {
    const Shape& shape = queries.shape();
    const int64_t size = options_.size > 0 ? options_.size : shape.rank() == 3 ? shape[2] : any;
    check(size > 0 && options_.heads > 0 && size % options_.heads == 0, title,
          ": the size must be a known multiple of the ", options_.heads, " heads, got ", size,
          " of queries ", shape);
    for (const char* name : {"query", "key", "value", "output"}) {
      projections.emplace_back(
          graph, size,
          DenseOptions{.use_bias = options_.use_bias, .dtype = queries.dtype(), .name = name}, at);
    }
  }
  const Output mixed =
      attention(projections[0](queries, at), projections[1](keys, at), projections[2](values, at),
                {.heads = options_.heads, .causal = options_.causal, .mask = options_.mask}, at);
  return projections[3](mixed, at);
}

Output multi_head_attention(Output queries, Output keys, Output values,
                            const MultiHeadAttentionOptions& options, Location at) {
  check(bool{queries}, "multi_head_attention '", options.name, "' (", at,
        "): an input is an empty Output");
  return MultiHeadAttention(queries.graph(), options)(queries, keys, values, at);
}

}  // namespace leat::nn
