// What a fused program's members do in a step: their kernels in order, for one tile of rows after
// another. fused_tiles.cc makes it.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "core/byte_size.h"
#include "core/kernel.h"
#include "graph/fused.h"

namespace leat {

inline size_t bytes_of(const TensorSpec& spec) { return byte_size(spec.dtype, spec.shape); }

class TileProgram {
 public:
  // Where a value is: its address for the first tile, and how far on it is for the next.
  struct Place {
    enum class Kind : uint8_t { input, output, constant, temporary };
    Kind kind = Kind::temporary;
    int index = 0;      // of the input, output or constant
    size_t offset = 0;  // of a temporary
    int64_t stride = 0;
  };

  // What a member that sums all rows adds up: the sums of each tile, for a range of tiles at a
  // time.
  struct Sum {
    int result = 0;  // of the node
    DType dtype = DType::f32;
    int64_t elements = 0;
    size_t offset = 0;  // of a range's sums, in the workspace
    size_t bytes() const { return dtype_size(dtype) * static_cast<size_t>(elements); }
  };

  struct Step {
    int sum = -1;  // of these members
    std::vector<Place> inputs, outputs;
    std::vector<size_t> row_bytes;  // of the outputs
    size_t workspace = 0;           // an offset among the temporaries
  };

  // An operand that is the same for all rows, copied beside each row of a tile: many short rows
  // cost more calls than elements.
  struct Repeated {
    Place from;
    FusedProgram::Operand operand;
    size_t bytes = 0, offset = 0;  // of one row; of the copies among the temporaries
  };

  // One member's kernel for a full tile and for the last one.
  struct Bound {
    BoundKernel full, last;
  };

  // Values between members are on the stack if there is room for them, else in the workspace.
  static constexpr size_t stack_bytes = 64 << 10;
  static constexpr size_t alignment = 64;
  static constexpr size_t aligned(size_t bytes) {
    return (bytes + alignment - 1) / alignment * alignment;
  }
  static constexpr size_t most_operands = 8;  // of a member

  bool is_on_stack() const { return is_cut && temporary_bytes <= stack_bytes; }
  size_t workspace_bytes() const {
    return (is_on_stack() ? 0 : temporary_bytes) + static_cast<size_t>(ranges) * sum_bytes;
  }
  void run(const Arguments& a) const;

  std::shared_ptr<const FusedProgram> program;
  bool is_cut = false;                         // else all is one tile
  int64_t rows = 1, last_rows = 1, tiles = 1;  // of a tile; of the last one; all tiles
  std::vector<Step> steps;                     // of each member, as these are
  std::vector<Bound> bound;
  std::vector<Repeated> repeated;
  std::vector<Sum> sums;
  size_t sum_bytes = 0;  // of a range
  int64_t ranges = 0;    // of tiles, for sums; the same for any number of threads
  size_t temporary_bytes = 0;
  double cost_ns = 0;
  std::vector<Tensor> constants;
  std::vector<std::shared_ptr<Tensor>> values;  // that kernels were prepared with

 private:
  template <class Piece>
  void run_pieces(const Arguments& a, int64_t pieces, double piece_ns, const Piece& piece) const;
  void run_tile(const Arguments& a, int64_t tile, std::byte* temporaries, std::byte* to_sums,
                Stream& stream) const;
  void repeat(const Arguments& a, std::byte* temporaries) const;
  void* address(const Place& place, const Arguments& a, int64_t tile, std::byte* temporaries) const;
  std::byte* sums_of(const Arguments& a, int64_t range) const;
  int64_t first_tile(int64_t range) const { return range * tiles / ranges; }
};

}  // namespace leat
