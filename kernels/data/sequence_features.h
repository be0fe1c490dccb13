// The features of tf.train.SequenceExample records as tensors: shared by the ops of
// parse_sequence_example.cc.
#pragma once

#include <string>
#include <vector>

#include "core/kernel.h"

namespace leat {

using Keys = std::vector<std::string>;

// The features requested from the context, or from the lists. Each kind has as many types as keys.
struct SequenceGroup {
  Keys sparse, dense, ragged;
  std::vector<DType> sparse_types, dense_types, ragged_types, split_types;
  std::vector<Shape> dense_shapes;
};

struct SequenceWanted {
  SequenceGroup context, lists;
  std::vector<bool> may_miss;  // by dense list
  Keys names;                  // of the records, for messages; or empty
  int defaults = 0;            // position of the first input with defaults of the context
  bool is_batch = true;
  bool is_strict = false;   // a dense feature without a kind is a wrong type, not empty
  bool has_lengths = true;  // of dense lists
  bool has_ragged = false;

  std::string record(size_t i) const { return names.empty() ? "<unknown>" : names[i]; }
};

// Outputs for the context: indices, values and shapes of sparse features, dense ones, ragged values
// and row splits. The lists have the same, with lengths after the dense ones and two sets of
// splits. INVALID_ARGUMENT, with the record's name, if a record lacks a required feature.
void parse_sequences(ExecuteContext& c, const SequenceWanted& wanted, const Tensor& serialized);

}  // namespace leat
