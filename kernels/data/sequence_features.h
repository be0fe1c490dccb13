// The features of tf.train.SequenceExample records as tensors: what the ops of
// parse_sequence_example.cc have in common.
#pragma once

#include <string>
#include <vector>

#include "core/kernel.h"

namespace leat {

using Keys = std::vector<std::string>;

// What a call wants of the context, or of the lists. Per kind as many types as keys.
struct SequenceGroup {
  Keys sparse, dense, ragged;
  std::vector<DType> sparse_types, dense_types, ragged_types, split_types;
  std::vector<Shape> dense_shapes;
};

struct SequenceWanted {
  SequenceGroup context, lists;
  std::vector<bool> may_miss;  // by dense list
  Keys names;                  // of the records, for messages; or none
  int defaults = 0;            // the first of the inputs with defaults of the context
  bool is_batch = true;
  bool is_strict = false;   // a dense feature of no kind has the wrong type, not no values
  bool has_lengths = true;  // of dense lists
  bool has_ragged = false;

  std::string record(size_t i) const { return names.empty() ? "<unknown>" : names[i]; }
};

// Outputs: of the context indices, values and shapes of sparse features, dense ones, ragged values
// and row splits; of the lists the same, with lengths behind the dense ones and two sets of splits.
// INVALID_ARGUMENT, with the record's name, if one does not have what is wanted.
void parse_sequences(ExecuteContext& c, const SequenceWanted& wanted, const Tensor& serialized);

}  // namespace leat
