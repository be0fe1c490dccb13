// How many parts a variable is cut into: TensorFlow's partitioners.
#pragma once

#include <cstdint>
#include <functional>

#include "core/dtype.h"
#include "core/shape.h"

namespace leat {

struct Partitioning {
  int axis = 0;
  int64_t parts = 1;  // along that axis; all other axes stay whole
};

// For a variable with this complete shape, of rank 1 or more.
using Partitioner = std::function<Partitioning(const Shape&, DType)>;

// INVALID_ARGUMENT for sizes and counts that are not positive.
namespace partitioners {

// TensorFlow's fixed_size_partitioner, which takes fewer parts where there are fewer rows; here
// that is an error of partitioned_variable().
Partitioner fixed_size(int64_t parts, int axis = 0);

struct SizeOptions {
  int axis = 0;
  int64_t max_parts = 0;          // overrides the size; 0 = no limit
  int64_t bytes_per_string = 16;  // an estimate, for variables of strings
};
// variable_axis_size_partitioner: the fewest parts of at most `max_bytes` each; a row is never cut.
Partitioner axis_size(int64_t max_bytes, SizeOptions options = {});

struct MinMaxOptions {
  int axis = 0;
  int64_t min_bytes = 256 << 10;
  int64_t bytes_per_string = 16;
};
// min_max_variable_partitioner: a part for each full or begun `min_bytes`, but at most `max_parts`
// and at most one per row.
Partitioner min_max(int64_t max_parts, MinMaxOptions options = {});

}  // namespace partitioners
}  // namespace leat
