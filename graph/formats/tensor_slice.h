// Parts of partitioned variables: a range of each dimension.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"

namespace tensorflow {
class TensorSliceProto;
}

namespace leat {

struct TensorSlice {
  struct Extent {
    int64_t start = 0;
    int64_t length = -1;  // -1: the whole dimension
    bool operator==(const Extent&) const = default;
  };
  std::vector<Extent> extents;

  // "0,5:-": ranges joined by ':', '-' is the whole dimension. INVALID_ARGUMENT.
  static TensorSlice parse(std::string_view text);
  static TensorSlice whole(int rank) { return {std::vector<Extent>(rank)}; }
  std::string to_string() const;
  bool operator==(const TensorSlice&) const = default;

  // All lengths given. INVALID_ARGUMENT if it does not lie within `full`.
  TensorSlice resolved(const Shape& full) const;
  // Of a resolved slice.
  Shape shape() const;
  bool covers(const Shape& full) const;
};

// An element of SaveV2's and RestoreV2's `shape_and_slices`: "" or "10 20 0,5:-".
struct ShapeAndSlice {
  bool is_whole = true;
  Shape full;
  TensorSlice slice;  // as written
  static ShapeAndSlice parse(std::string_view text);
  std::string to_string() const;
};

// INVALID_ARGUMENT for a negative length.
TensorSlice read_slice(const tensorflow::TensorSliceProto& proto);
void write_slice(const TensorSlice& slice, tensorflow::TensorSliceProto& proto);

// The index key of a slice: bytes that sort as the numbers do.
std::string slice_key(std::string_view name, const TensorSlice& slice);
// An index key for messages: a name as it is, a slice as "a part of NAME".
std::string readable_key(std::string_view key);

// Counts the elements that both slices have; copies them from one part of a tensor to another. Both
// slices must be resolved; in copy_common they are those of the tensors.
int64_t common_elements(const TensorSlice& a, const TensorSlice& b);
void copy_common(const Tensor& from, const TensorSlice& from_slice, Tensor& to,
                 const TensorSlice& to_slice);

}  // namespace leat
