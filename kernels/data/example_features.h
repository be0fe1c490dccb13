// The features of tf.train.Example records as tensors, one per feature: shared by the ops and the
// dataset that parse records.
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
  std::vector<Tensor> dense_defaults;  // no elements: the feature is required
  bool is_batch = true;                // else a single record, without an axis for records
  std::vector<std::string> names;      // of the records, for messages; may be empty

  // The types and dense shapes, from attributes that have the same names in all ops.
  static WantedFeatures of(const NodeView& node);
  // Call once the keys are set. INVALID_ARGUMENT unless keys, types and shapes agree in number.
  void check_counts() const;
};

struct RaggedFeature {
  Tensor values, splits;
};

struct ParsedFeatures {
  std::vector<SparseValue> sparse;
  std::vector<Tensor> dense;
  std::vector<RaggedFeature> ragged;
};

// INVALID_ARGUMENT, with the key, if a record is damaged or has other values than requested.
ParsedFeatures parse_features(const WantedFeatures& wanted, std::span<const std::string> records);

}  // namespace leat
