// Looks up rows of a table in parts, each where its part is: tf.nn.embedding_lookup.
#pragma once

#include "frontends/cpp/strategies/parts/partitioned_variables.h"

namespace leat {

// Which part has the row of an id.
enum class PartitionStrategy {
  // Rows in their order, so id i is row i of table.value(), whatever the number of parts: 7 ids in
  // 3 parts are [0 1 2] [3 4] [5 6].
  div,
  // Round-robin, so neighbours are in different parts: [0 3 6] [1 4] [2 5]. TensorFlow's default.
  // With another number of parts an id means another row.
  mod,
};

// ids: int32 or int64 of any shape, each in [0, table.shape()[0]), else the step fails with
// INVALID_ARGUMENT. The result's shape is that of the ids, then that of a row. Only ids and rows
// cross between tasks, forward and back; the gradient of a part is as large as the part and made
// beside it, as for nn::Embedding. Cost: for n parts n gathers, each of its own rows.
// INVALID_ARGUMENT if the table is not cut along axis 0, or the ids are of another graph or dtype.
Output embedding_lookup(const PartitionedVariable& table, Output ids,
                        PartitionStrategy strategy = PartitionStrategy::div, Location at = here());

}  // namespace leat
