#include "kernels/control/fused_tiles.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "graph/shape_inference.h"
#include "kernels/control/row_cut.h"
#include "kernels/control/tile_program.h"

namespace leat {
namespace {

using Operand = FusedProgram::Operand;
using Bound = TileProgram::Bound;
using Place = TileProgram::Place;
using Repeated = TileProgram::Repeated;
using Step = TileProgram::Step;

// Of the largest value. Smaller tiles cost more calls; larger ones leave the first-level cache.
constexpr int64_t tile_bytes = 8 << 10;

// Of operands that are copied beside each row.
constexpr size_t longest_repeated_bytes = 2'048, most_repeated = 3;
constexpr int64_t most_ranges = 32;
constexpr size_t most_sum_bytes = 1 << 20;

class TileBuilder {
 public:
  TileBuilder(std::shared_ptr<const FusedProgram> program, std::span<const TensorSpec> inputs,
              Device& device)
      : program_(std::move(program)),
        inputs_(inputs),
        device_(device),
        made_(program_->infer(inputs)),
        cut_(find_row_cut(*program_, inputs, made_)) {}

  BoundKernel build() && {
    out_.program = program_;
    out_.is_cut = cut_.axes > 0;
    choose_tile();
    find_repeated();
    for (size_t m = 0; m < program_->members().size(); ++m) bind(m);
    place_values();
    if (!out_.sums.empty()) {
      out_.ranges = std::clamp<int64_t>(static_cast<int64_t>(most_sum_bytes / out_.sum_bytes), 1,
                                        std::min(out_.tiles, most_ranges));
    }
    find_cost();
    const double cost = out_.cost_ns;
    const size_t workspace = out_.workspace_bytes();
    BoundKernel kernel =
        BoundKernel::of([tiles = std::move(out_)](const Arguments& a) { tiles.run(a); });
    kernel.may_share = std::move(may_share_);
    kernel.cost_ns = cost;
    kernel.workspace_bytes = workspace;
    return kernel;
  }

 private:
  void find_cost() {
    constexpr double ns_per_byte = 0.05;  // where a kernel does not say
    for (size_t m = 0; m < made_.size(); ++m) {
      if (is_constant(m)) continue;
      const double known = out_.bound[m].full.cost_ns;
      const auto bytes =
          static_cast<double>(tile_bytes_of(spec_of(program_->members()[m].operands[0])));
      out_.cost_ns += known > 0 ? known : ns_per_byte * bytes;
    }
    out_.cost_ns *= static_cast<double>(out_.tiles);
  }

  // ---- Tiles ----

  void choose_tile() {
    if (cut_.axes == 0) return;
    size_t largest = 1;
    for (size_t m = 0; m < made_.size(); ++m) {
      if (is_constant(m)) continue;
      for (const TensorSpec& output : made_[m]) largest = std::max(largest, bytes_of(output));
    }
    const int64_t row = std::max<int64_t>(1, static_cast<int64_t>(largest) / cut_.rows);
    out_.rows = std::clamp<int64_t>(tile_bytes / row, 1, cut_.rows);
    // Tiles end where vectors do, so that equal elements are computed alike.
    if (out_.rows >= 16 && out_.rows < cut_.rows) out_.rows = out_.rows / 16 * 16;
    out_.tiles = (cut_.rows + out_.rows - 1) / out_.rows;
    out_.last_rows = cut_.rows - (out_.tiles - 1) * out_.rows;
  }

  bool is_sum(size_t member) const {
    return cut_.axes > 0 && !is_constant(member) &&
           sums_all_rows(program_->members()[member], inputs_, made_, cut_);
  }

  bool is_constant(size_t member) const { return program_->members()[member].node->is("Const"); }

  const TensorSpec& spec_of(const Operand& operand) const {
    return FusedProgram::spec_of(operand, inputs_, made_);
  }

  bool is_row_operand(size_t member, size_t i) const {
    const FusedProgram::Member& m = program_->members()[member];
    return cut_.axes > 0 && leat::is_row_operand(m, static_cast<int>(i), spec_of(m.operands[i]),
                                                 made_[member][0].shape, cut_);
  }

  // ---- Operands beside each row ----

  void find_repeated() {
    if (cut_.axes == 0 || out_.rows < 4 || out_.tiles < 4) return;
    for (size_t m = 0; m < made_.size(); ++m) {
      const FusedProgram::Member& member = program_->members()[m];
      if (member.rule != RowRule::elementwise) continue;
      const Shape& output = made_[m][0].shape;
      for (size_t i = 0; i < member.operands.size(); ++i) {
        if (is_row_operand(m, i) || repeated(m, i) != nullptr) continue;
        const TensorSpec& spec = spec_of(member.operands[i]);
        const size_t bytes = bytes_of(spec);
        if (spec.shape.elements() * cut_.rows != output.elements() ||
            cut_.rows == output.elements() || bytes > longest_repeated_bytes ||
            out_.repeated.size() == most_repeated)
          continue;
        const size_t offset = out_.temporary_bytes;
        out_.temporary_bytes += TileProgram::aligned(bytes * static_cast<size_t>(out_.rows));
        out_.repeated.push_back({{}, member.operands[i], bytes, offset});
      }
    }
  }

  const Repeated* repeated(size_t m, size_t i) const {
    if (program_->members()[m].rule != RowRule::elementwise || is_row_operand(m, i)) return nullptr;
    const Operand& operand = program_->members()[m].operands[i];
    for (const Repeated& known : out_.repeated) {
      const bool is_it =
          known.operand.member == operand.member && known.operand.index == operand.index;
      if (is_it && static_cast<int64_t>(known.bytes) * cut_.rows ==
                       static_cast<int64_t>(dtype_size(spec_of(operand).dtype)) *
                           made_[m][0].shape.elements())
        return &known;
    }
    return nullptr;
  }

  // ---- Kernels ----

  void bind(size_t m) {
    Bound& bound = out_.bound.emplace_back();
    if (is_constant(m)) return;
    const Node& node = *program_->members()[m].node;
    try {
      bound.full = bind(m, out_.rows);
      if (out_.last_rows != out_.rows) bound.last = bind(m, out_.last_rows);
    } catch (const Error& error) {
      if (!error.node().empty()) throw;
      throw Error(with_node(error.status(), node.name));
    }
  }

  BoundKernel bind(size_t m, int64_t rows) {
    const FusedProgram::Member& member = program_->members()[m];
    const Node& node = *member.node;
    std::vector<TensorSpec> inputs, outputs = made_[m];
    for (size_t i = 0; i < member.operands.size(); ++i) {
      TensorSpec spec = spec_of(member.operands[i]);
      if (cut_.axes > 0) {
        if (is_row_operand(m, i)) {
          spec.shape = tile_shape(spec.shape, cut_, rows);
        } else if (member.rule == RowRule::reduction) {
          const int rank = spec_of(member.operands[0]).shape.rank();
          out_.values.push_back(std::make_shared<Tensor>(tile_axes(*spec.value, rank, cut_)));
          spec.value = out_.values.back().get();
        } else if (repeated(m, i) != nullptr) {
          spec.shape = tile_shape(made_[m][0].shape, cut_, rows);
          spec.value = nullptr;
        } else {
          spec.shape = beside_tiles(spec.shape, made_[m][0].shape, cut_);
          if (spec.value != nullptr) {
            out_.values.push_back(std::make_shared<Tensor>(spec.value->part(spec.shape, 0)));
            spec.value = out_.values.back().get();
          }
        }
      }
      inputs.push_back(spec);
    }
    // Beside each row of a tile, a bias is a plain operand.
    const bool adds_repeated = node.op->name.starts_with("BiasAdd") && repeated(m, 1) != nullptr;
    const OpDef& op = adds_repeated ? *find_op("AddV2") : *node.op;
    const NodeView view{node.name, op.name, node.attrs};
    if (cut_.axes > 0) {
      for (TensorSpec& output : outputs) output.shape = tile_shape(output.shape, cut_, rows);
      const std::vector<Shape> shapes = infer_shapes(view, op, inputs, node.num_outputs());
      for (size_t o = 0; o < outputs.size(); ++o) {
        if (is_sum(m)) outputs[o].shape = shapes[o];
        check_internal(shapes[o] == outputs[o].shape, "a tile of ", op.name, " has shape ",
                       shapes[o], " instead of ", outputs[o].shape);
      }
    }
    const Kernel* kernel = find_kernel(op, node.attrs, device_.type());
    check_internal(kernel != nullptr && kernel->prepare, op.name, " has no kernel to fuse");
    std::shared_ptr<void> no_state;
    return kernel->prepare({view, inputs, outputs, device_, no_state});
  }

  // ---- Places ----

  int64_t stride_of(const TensorSpec& whole) const {
    return static_cast<int64_t>(bytes_of(whole)) / cut_.rows * out_.rows;
  }

  size_t tile_bytes_of(const TensorSpec& whole) const {
    return cut_.axes == 0 ? bytes_of(whole) : static_cast<size_t>(stride_of(whole));
  }

  // The members' values, in order; a temporary is free again after its last use.
  void place_values() {
    find_last_uses();
    places_.resize(made_.size());
    for (size_t m = 0; m < made_.size(); ++m) {
      places_[m].resize(made_[m].size());
      Step& step = out_.steps.emplace_back();
      if (is_constant(m)) {
        places_[m][0] = {Place::Kind::constant, static_cast<int>(out_.constants.size()), 0, 0};
        out_.constants.push_back(*made_[m][0].value);
        continue;
      }
      place_inputs(m, step);
      for (size_t o = 0; o < made_[m].size(); ++o) {
        step.outputs.push_back(place_output(m, o));
        step.row_bytes.push_back(bytes_of(made_[m][o]) / static_cast<size_t>(cut_.rows));
      }
      if (is_sum(m)) add_sum(m, step);
      place_workspace(m, step);
      for (const auto& [offset, at] : in_use_) {
        if (at.last_use <= m) free_.push_back({offset, at.bytes});
      }
      std::erase_if(in_use_, [&](const auto& block) { return block.second.last_use <= m; });
    }
    find_shared();
  }

  void find_last_uses() {
    last_use_.resize(made_.size());
    for (size_t m = 0; m < made_.size(); ++m) {
      last_use_[m].assign(made_[m].size(), m);
      for (const Operand& operand : program_->members()[m].operands) {
        if (operand.member >= 0) last_use_[operand.member][operand.index] = m;
      }
    }
  }

  void place_inputs(size_t m, Step& step) {
    const FusedProgram::Member& member = program_->members()[m];
    for (size_t i = 0; i < member.operands.size(); ++i) {
      const Operand& operand = member.operands[i];
      Place place;
      if (operand.member >= 0) {
        place = places_[operand.member][operand.index];
      } else {
        const int64_t stride = is_row_operand(m, i) ? stride_of(spec_of(operand)) : 0;
        place = {Place::Kind::input, operand.index, 0, stride};
      }
      if (const Repeated* copies = repeated(m, i)) {
        out_.repeated[static_cast<size_t>(copies - out_.repeated.data())].from = place;
        place = {Place::Kind::temporary, 0, copies->offset, 0};
      }
      step.inputs.push_back(place);
    }
  }

  Place place_output(size_t m, size_t o) {
    Place& place = places_[m][o];
    if (is_sum(m)) {  // of the tile
      const size_t bytes = TileProgram::aligned(bytes_of(made_[m][o]));
      const size_t offset = take(bytes);
      in_use_[offset] = {bytes, m};
      return place = {Place::Kind::temporary, 0, offset, 0};
    }
    for (size_t r = 0; r < program_->outputs().size(); ++r) {
      const Operand& result = program_->outputs()[r];
      if (result.member != static_cast<int>(m) || result.index != static_cast<int>(o)) continue;
      return place = {Place::Kind::output, static_cast<int>(r), 0,
                      cut_.axes > 0 ? stride_of(made_[m][o]) : 0};
    }
    const size_t bytes = TileProgram::aligned(tile_bytes_of(made_[m][o]));
    if (const std::optional<size_t> shared = shared_temporary(m, o, bytes)) {
      in_use_[*shared].last_use = last_use_[m][o];
      return place = {Place::Kind::temporary, 0, *shared, 0};
    }
    const size_t offset = take(bytes);
    in_use_[offset] = {bytes, last_use_[m][o]};
    return place = {Place::Kind::temporary, 0, offset, 0};
  }

  static bool shares(const BoundKernel& kernel, int output, int input) {
    return std::any_of(kernel.may_share.begin(), kernel.may_share.end(), [&](const Alias& alias) {
      return alias.output == output && alias.input == input;
    });
  }

  bool shares(size_t m, int output, int input) const {
    return shares(out_.bound[m].full, output, input) &&
           (out_.last_rows == out_.rows || shares(out_.bound[m].last, output, input));
  }

  // A temporary that dies here, which the kernel may overwrite.
  std::optional<size_t> shared_temporary(size_t m, size_t o, size_t bytes) const {
    const FusedProgram::Member& member = program_->members()[m];
    for (size_t i = 0; i < member.operands.size(); ++i) {
      const Operand& operand = member.operands[i];
      if (operand.member < 0 || last_use_[operand.member][operand.index] != m) continue;
      const Place& place = places_[operand.member][operand.index];
      if (place.kind != Place::Kind::temporary) continue;
      const auto found = in_use_.find(place.offset);
      if (found == in_use_.end() || found->second.last_use != m || found->second.bytes != bytes)
        continue;
      const auto is_same = [&](const Operand& other) {
        return other.member == operand.member && other.index == operand.index;
      };
      bool may = true;  // each time the kernel reads it
      for (size_t j = 0; j < member.operands.size(); ++j) {
        if (is_same(member.operands[j]))
          may = may && shares(m, static_cast<int>(o), static_cast<int>(j));
      }
      if (may) return place.offset;
    }
    return {};
  }

  size_t take(size_t bytes) {
    for (auto block = free_.begin(); block != free_.end(); ++block) {
      if (block->second != bytes) continue;
      const size_t offset = block->first;
      free_.erase(block);
      return offset;
    }
    const size_t offset = out_.temporary_bytes;
    out_.temporary_bytes += bytes;
    return offset;
  }

  void add_sum(size_t m, Step& step) {
    for (size_t r = 0; r < program_->outputs().size(); ++r) {
      if (program_->outputs()[r].member != static_cast<int>(m)) continue;
      const TensorSpec& spec = made_[m][0];
      step.sum = static_cast<int>(out_.sums.size());
      out_.sums.push_back({static_cast<int>(r), spec.dtype, spec.shape.elements(), out_.sum_bytes});
      out_.sum_bytes += TileProgram::aligned(bytes_of(spec));
    }
  }

  void place_workspace(size_t m, Step& step) {
    const size_t bytes = TileProgram::aligned(
        std::max(out_.bound[m].full.workspace_bytes, out_.bound[m].last.workspace_bytes));
    if (bytes == 0) return;
    step.workspace = take(bytes);
    free_.push_back({step.workspace, bytes});
  }

  // Which result may take the place of an input of the whole node: nobody reads the input's tile
  // after the result's was written.
  void find_shared() {
    for (size_t r = 0; r < program_->outputs().size(); ++r) {
      const Operand& result = program_->outputs()[r];
      const auto made_by = static_cast<size_t>(result.member);
      for (size_t i = 0; i < inputs_.size(); ++i) {
        if (may_overwrite(static_cast<int>(i), made_by, result.index))
          may_share_.push_back({static_cast<int>(r), static_cast<int>(i)});
      }
    }
  }

  bool may_overwrite(int input, size_t made_by, int output) const {
    bool is_read_by_it = false;
    for (size_t m = 0; m < program_->members().size(); ++m) {
      const FusedProgram::Member& member = program_->members()[m];
      for (size_t i = 0; i < member.operands.size(); ++i) {
        if (member.operands[i].member >= 0 || member.operands[i].index != input) continue;
        if (m > made_by || (cut_.axes > 0 && !is_row_operand(m, i))) return false;
        if (m < made_by) continue;
        if (!shares(m, output, static_cast<int>(i))) return false;
        is_read_by_it = true;
      }
    }
    const TensorSpec& spec = inputs_[static_cast<size_t>(input)];
    const TensorSpec& result = made_[made_by][static_cast<size_t>(output)];
    return is_read_by_it ||
           (spec.shape == result.shape && dtype_size(spec.dtype) == dtype_size(result.dtype));
  }

  const std::shared_ptr<const FusedProgram> program_;
  const std::span<const TensorSpec> inputs_;
  Device& device_;
  const MemberSpecs made_;
  const RowCut cut_;
  TileProgram out_;
  std::vector<std::vector<Place>> places_;
  std::vector<std::vector<size_t>> last_use_;  // of each value: the last member that reads it
  struct Block {
    size_t bytes = 0;
    size_t last_use = 0;
  };
  std::map<size_t, Block> in_use_;               // temporaries by offset
  std::vector<std::pair<size_t, size_t>> free_;  // offset, bytes
  std::vector<Alias> may_share_;
};

}  // namespace

BoundKernel bind_tiles(std::shared_ptr<const FusedProgram> program,
                       std::span<const TensorSpec> inputs, Device& device) {
  return TileBuilder(std::move(program), inputs, device).build();
}

}  // namespace leat
