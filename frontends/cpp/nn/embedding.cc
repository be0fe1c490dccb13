#include "frontends/cpp/nn/embedding.h"

#include "frontends/cpp/strategies/parts/embedding_lookup.h"
#include "graph/ops.h"

namespace leat::nn {
namespace {

void check_ids(const Output& ids, std::string_view name, Location at) {
  check(ids && is_integer(ids.dtype()), "embedding '", name, "' (", at,
        "): it needs ids, int32 or int64, got ",
        ids ? concat(ids.name(), " ", ids.dtype()) : "none");
}

Shape shape_of_table(int64_t rows, int64_t size, const EmbeddingOptions& options, Location at) {
  check(rows > 0 && size > 0, "embedding '", options.name, "' (", at,
        "): rows and size must be positive, got ", rows, " and ", size);
  return {rows, size};
}

Shape shape_of_table(int64_t rows, const EmbeddingOptions& options, Location at) {
  check(rows > 0, "embedding '", options.name, "' (", at, "): rows must be positive, got ", rows);
  return {rows};
}

}  // namespace

Embedding::Embedding(Graph& graph, int64_t rows, int64_t size, EmbeddingOptions options,
                     Location at)
    : Embedding(graph, shape_of_table(rows, size, options, at), std::move(options), at) {}

Embedding::Embedding(Graph& graph, int64_t rows, EmbeddingOptions options, Location at)
    : Embedding(graph, shape_of_table(rows, options, at), std::move(options), at) {}

Embedding::Embedding(Graph& graph, const Shape& shape, EmbeddingOptions options, Location at)
    : options_(std::move(options)) {
  const NameScope scope(graph, options_.name);
  scope_ = scope.name();
  embeddings_ = variable(graph, "embeddings", shape, options_.initializer, options_.dtype,
                         {.use_resource = options_.use_resource}, at);
}

Output Embedding::operator()(Output ids, Location at) const {
  check_ids(ids, options_.name, at);
  const NameScope scope(ids.graph(), scope_);
  const LocationScope line(ids.graph(), at);
  if (const auto table = partitioned_variable_of(embeddings_))
    return embedding_lookup(*table, ids, PartitionStrategy::div, at);
  const ColocationScope with(ids.graph(), {embeddings_});
  return take(embeddings_, ids, 0, at);
}

Output embedding(Output ids, int64_t rows, int64_t size, const EmbeddingOptions& options,
                 Location at) {
  check_ids(ids, options.name, at);
  return Embedding(ids.graph(), rows, size, options, at)(ids, at);
}
Output embedding(Output ids, int64_t rows, const EmbeddingOptions& options, Location at) {
  check_ids(ids, options.name, at);
  return Embedding(ids.graph(), rows, options, at)(ids, at);
}

}  // namespace leat::nn
