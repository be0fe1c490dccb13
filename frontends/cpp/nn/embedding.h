// Rows of a table by number.
#pragma once

#include "frontends/cpp/variables.h"

namespace leat::nn {

struct EmbeddingOptions {
  Initializer initializer = initializers::random_uniform(-0.05, 0.05);
  DType dtype = f32;
  bool use_resource = false;  // of the table (variables.h)
  std::string name = "embedding";
};

// A row of the variable `name`/embeddings [rows, size] for each id. ids: int32 or int64 of any
// shape, each in [0, rows); y: their shape, then [size]. Where a strategy cuts the table in row
// ranges, only ids and rows cross. For a table in parts of your own: embedding_lookup.h.
class Embedding {
 public:
  Embedding(Graph& graph, int64_t rows, int64_t size, EmbeddingOptions options = {},
            Location at = here());
  // A table of numbers, such as the bias of each item: `name`/embeddings [rows]; y: the ids' shape.
  Embedding(Graph& graph, int64_t rows, EmbeddingOptions options, Location at = here());
  Output operator()(Output ids, Location at = here()) const;

  Output embeddings() const { return embeddings_; }

 private:
  Embedding(Graph& graph, const Shape& shape, EmbeddingOptions options, Location at);

  EmbeddingOptions options_;
  std::string scope_;  // where its variables are, and its nodes go: "outer/name_1/"
  Output embeddings_;
};

// The table used once:
//   Output rows = nn::embedding(ids, 1'000, 64, {.name = "words"});
//   Output bias = nn::embedding(ids, 1'000, {.name = "bias"});  // a number for each id
Output embedding(Output ids, int64_t rows, int64_t size, const EmbeddingOptions& options = {},
                 Location at = here());
Output embedding(Output ids, int64_t rows, const EmbeddingOptions& options, Location at = here());

}  // namespace leat::nn
