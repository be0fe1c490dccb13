// The features of tf.train.Example records as tensors, one per feature: for the ops that parse
// records and for the dataset that does.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "graph/op_def.h"
#include "kernels/sparse/sparse_batch.h"

namespace leat {

// Dense features have the same shape in every record, sparse and ragged ones any number of values.
// Types are float, int64 and string.
struct WantedFeatures {
  std::vector<std::string> sparse_keys, dense_keys, ragged_keys;
  std::vector<DType> sparse_types, dense_types, ragged_types, split_types;
  std::vector<Shape> dense_shapes;
  std::vector<Tensor> dense_defaults;  // without elements: the feature is required
  bool is_batch = true;                // else one record, and no axis for records
  std::vector<std::string> names;      // of the records, for messages; may be empty

  // The types and dense shapes, which all ops have as attributes of the same names.
  static WantedFeatures of(const NodeView& node);
  // Once the keys are there. INVALID_ARGUMENT unless there are as many keys, types, shapes.
  void check_counts() const;
};

struct RaggedFeature {
  Tensor values, splits;
};

struct ParsedFeatures {
  std::vector<SparseTensor> sparse;
  std::vector<Tensor> dense;
  std::vector<RaggedFeature> ragged;
};

// INVALID_ARGUMENT, with the key, if a record is damaged or has other values than wanted.
ParsedFeatures parse_features(const WantedFeatures& wanted, std::span<const std::string> records);

}  // namespace leat
