// Members of a `_Fused` that one launch computes, element by element or row by row.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/kernel.h"
#include "graph/fused.h"
#include "kernels/cuda/fused/fused_steps.cuh"

namespace leat {

// Where a value lies while the node runs.
struct FusedPlace {
  enum Kind : uint8_t { nowhere, input, output, workspace } kind = nowhere;
  size_t at = 0;  // number, or bytes

  void* in(const Arguments& a) const;
  bool operator==(const FusedPlace&) const = default;
};

struct FusedLaunch {
  cuda::Steps steps;
  std::vector<FusedPlace> memory;  // of the steps
  int64_t rows, columns;
};

// A node with what its members make of its inputs.
struct FusedSpecs {
  const FusedProgram& program;
  std::span<const TensorSpec> inputs;
  std::vector<std::vector<TensorSpec>> made;  // by member and output

  const FusedProgram::Member& member(int m) const { return program.members()[m]; }
  const TensorSpec& of(const FusedProgram::Operand& value) const {
    return FusedProgram::spec_of(value, inputs, made);
  }
};

// Its elements are those of the shape of its members' values. A reduction over the last axis, or a
// softmax, makes it one of rows: members may then be values of rows, too, which have the shape
// without the last axis, or with an extent of 1 there.
class FusedGroup {
 public:
  explicit FusedGroup(const FusedSpecs& specs) : specs_(&specs) {}

  bool is_empty() const { return members_.empty(); }
  const std::vector<int>& members() const { return members_; }
  // False, and no change, if the group cannot compute the member besides.
  bool add(int m);
  // Values for which is_result() are stored at their place.
  FusedLaunch launch(const std::function<bool(int member)>& is_result,
                     const std::function<FusedPlace(const FusedProgram::Operand&)>& place) const;

 private:
  // Where element e of the group finds an operand: at e / inner % period; 0: e itself.
  struct Access {
    uint32_t inner = 1, period = 0;
  };
  using Member = FusedProgram::Member;

  static std::optional<Access> access_of(const Shape& operand, const Shape& result);
  std::optional<Access> access_of(int m, size_t i) const;

  bool contains(int member) const;
  bool can_take_rows_of(const TensorSpec& from) const;
  bool can_reduce(int m) const;
  bool can_map(int m) const;
  bool is_of_rows(const Shape& shape) const;
  bool has_last_axis_of_one(const Shape& shape) const;

  const FusedSpecs* specs_;
  std::vector<int> members_;
  Shape shape_;
  bool has_rows_ = false;
  int loads_ = 0, steps_ = 0;
};

}  // namespace leat
