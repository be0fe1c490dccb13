// How a fused program (graph/fused.h) is cut into tiles of rows that pass through all of its
// members.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "graph/fused.h"

namespace leat {

using MemberSpecs = std::vector<std::vector<TensorSpec>>;

// All rows of a program: the indices of the leading `axes` of what its members make.
struct RowCut {
  int axes = 0;      // 0: it cannot be cut; all is one tile
  int64_t rows = 1;  // extents of these axes, multiplied
};

// The finest cut at which each member makes its rows of the same rows of its operands, or of
// operands that are the same for all rows.
RowCut find_row_cut(const FusedProgram& program, std::span<const TensorSpec> inputs,
                    const MemberSpecs& made);

// Whether operand `i` of a member differs from row to row; `operand` and `output` are whole.
bool is_row_operand(const FusedProgram::Member& member, int i, const TensorSpec& operand,
                    const Shape& output, const RowCut& cut);
// Whether the member adds up all rows.
bool sums_all_rows(const FusedProgram::Member& member, std::span<const TensorSpec> inputs,
                   const MemberSpecs& made, const RowCut& cut);
// The shape of `rows` rows of a value that differs from row to row: the leading axes become one.
Shape tile_shape(const Shape& whole, const RowCut& cut, int64_t rows);
// The shape of an operand that is the same for all rows, beside tiles: its leading axes, of extent
// 1, are left out.
Shape beside_tiles(const Shape& whole, const Shape& output, const RowCut& cut);
// The axes of a reduction of tiles: behind those of the rows, or with them.
Tensor tile_axes(const Tensor& axes, int rank, const RowCut& cut);

}  // namespace leat
