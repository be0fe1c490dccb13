#include "kernels/control/fused_tiles.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/step_end.h"
#include "graph/shape_inference.h"
#include "kernels/control/row_cut.h"
#include "kernels/cpu.h"

namespace leat {
namespace {

using Operand = FusedProgram::Operand;

// Of the largest value. Smaller tiles cost more calls; larger ones leave the first-level cache.
constexpr int64_t tile_bytes = 8 << 10;
// Values between members, if there is room for them on the stack.
constexpr size_t stack_bytes = 64 << 10;
constexpr double least_chunk_ns = 20'000;
constexpr size_t most_operands = 8;
constexpr size_t alignment = 64;

// Runs each tile on the thread that has it.
class OneThread : public Stream {};

// Where a value is: its address for the first tile, and how far on it is for the next.
struct Place {
  enum class Kind : uint8_t { input, output, constant, temporary };
  Kind kind = Kind::temporary;
  int index = 0;      // of the input, output or constant
  size_t offset = 0;  // of a temporary
  int64_t stride = 0;
};

// What a member that sums all rows adds up: the sums of each tile, for a range of tiles at a time.
struct Sum {
  int result = 0;  // of the node
  DType dtype = DType::f32;
  int64_t elements = 0;
  size_t offset = 0;  // of a range's sums, in the workspace
};
constexpr int64_t most_ranges = 32;  // the same for any number of threads, so that sums are
constexpr size_t most_sum_bytes = 1 << 20;

struct Step {
  int sum = -1;  // of these members
  std::vector<Place> inputs, outputs;
  std::vector<size_t> row_bytes;  // of the outputs
  size_t workspace = 0;           // an offset among the temporaries
};

// An operand that is the same for all rows, copied beside each row of a tile: many short rows cost
// more calls than elements.
struct Repeated {
  Place from;
  Operand operand;
  size_t bytes = 0, offset = 0;  // of one row; of the copies among the temporaries
};
constexpr size_t longest_repeated_bytes = 2'048, most_repeated = 3;

// One member's kernel for a full tile and for the last one.
struct Bound {
  BoundKernel full, last;
};

size_t aligned(size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

size_t bytes_of(const TensorSpec& spec) {
  return dtype_size(spec.dtype) * static_cast<size_t>(spec.shape.elements());
}

class Tiles {
 public:
  Tiles(std::shared_ptr<const FusedProgram> program, std::span<const TensorSpec> inputs,
        Device& device)
      : program_(std::move(program)), inputs_(inputs), device_(&device) {
    made_ = program_->infer(inputs_);
    cut_ = find_row_cut(*program_, inputs_, made_);
    choose_tile();
    find_repeated();
    for (size_t m = 0; m < program_->members().size(); ++m) bind(m);
    place_values();
    if (!sums_.empty()) {
      ranges_ = std::clamp<int64_t>(static_cast<int64_t>(most_sum_bytes / sum_bytes_), 1,
                                    std::min(tiles_, most_ranges));
    }
    for (const Bound& bound : bound_) cost_ns_ += bound.full.cost_ns;
    cost_ns_ *= static_cast<double>(tiles_);
    inputs_ = {};
    made_.clear();
  }

  bool is_on_stack() const { return cut_.axes > 0 && temporary_bytes_ <= stack_bytes; }
  double cost_ns() const { return cost_ns_; }
  const std::vector<Alias>& may_share() const { return may_share_; }

  size_t workspace_bytes() const {
    return (is_on_stack() ? 0 : temporary_bytes_) + static_cast<size_t>(ranges_) * sum_bytes_;
  }

  void run(const Arguments& a) const {
    const double tile_ns = std::max(1.0, cost_ns_ / static_cast<double>(tiles_));
    if (ranges_ > 0) {
      const double range_ns = tile_ns * static_cast<double>(tiles_) / static_cast<double>(ranges_);
      run_pieces(a, ranges_, range_ns, [&](int64_t range, std::byte* temporaries, Stream& stream) {
        std::byte* const sums = sums_of(a, range);
        std::memset(sums, 0, sum_bytes_);
        const int64_t end = first_tile(range + 1);
        for (int64_t tile = first_tile(range); tile < end; ++tile)
          run_tile(a, tile, temporaries, sums, stream);
      });
      for (int64_t range = 1; range < ranges_; ++range) {
        for (const Sum& sum : sums_) add(sum, sums_of(a, range) + sum.offset, sums_of(a, 0));
      }
      for (const Sum& sum : sums_) {
        std::memcpy(a.outputs[sum.result], sums_of(a, 0) + sum.offset,
                    dtype_size(sum.dtype) * static_cast<size_t>(sum.elements));
      }
      return;
    }
    run_pieces(a, tiles_, tile_ns, [&](int64_t tile, std::byte* temporaries, Stream& stream) {
      run_tile(a, tile, temporaries, nullptr, stream);
    });
  }

 private:
  // ---- Tiles ----

  void choose_tile() {
    if (cut_.axes == 0) return;
    size_t largest = 1;
    for (size_t m = 0; m < made_.size(); ++m) {
      if (is_constant(m)) continue;
      for (const TensorSpec& output : made_[m]) largest = std::max(largest, bytes_of(output));
    }
    const int64_t row = std::max<int64_t>(1, static_cast<int64_t>(largest) / cut_.rows);
    rows_ = std::clamp<int64_t>(tile_bytes / row, 1, cut_.rows);
    // Tiles end where vectors do, so that equal elements are computed alike.
    if (rows_ >= 16 && rows_ < cut_.rows) rows_ = rows_ / 16 * 16;
    tiles_ = (cut_.rows + rows_ - 1) / rows_;
    last_rows_ = cut_.rows - (tiles_ - 1) * rows_;
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
    if (cut_.axes == 0 || rows_ < 4 || tiles_ < 4) return;
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
            repeated_.size() == most_repeated)
          continue;
        const size_t offset = temporary_bytes_;
        temporary_bytes_ += aligned(bytes * static_cast<size_t>(rows_));
        repeated_.push_back({{}, member.operands[i], bytes, offset});
      }
    }
  }

  const Repeated* repeated(size_t m, size_t i) const {
    if (program_->members()[m].rule != RowRule::elementwise || is_row_operand(m, i)) return nullptr;
    const Operand& operand = program_->members()[m].operands[i];
    for (const Repeated& known : repeated_) {
      const bool is_it =
          known.operand.member == operand.member && known.operand.index == operand.index;
      if (is_it && static_cast<int64_t>(known.bytes) * cut_.rows ==
                       static_cast<int64_t>(dtype_size(spec_of(operand).dtype)) *
                           made_[m][0].shape.elements())
        return &known;
    }
    return nullptr;
  }

  void repeat(const Arguments& a, std::byte* temporaries) const {
    for (const Repeated& value : repeated_) {
      const void* from = address(value.from, a, 0, temporaries);
      for (int64_t row = 0; row < rows_; ++row) {
        std::memcpy(temporaries + value.offset + static_cast<size_t>(row) * value.bytes, from,
                    value.bytes);
      }
    }
  }

  // ---- Kernels ----

  void bind(size_t m) {
    Bound& bound = bound_.emplace_back();
    if (is_constant(m)) return;
    const Node& node = *program_->members()[m].node;
    try {
      bound.full = bind(m, rows_);
      if (last_rows_ != rows_) bound.last = bind(m, last_rows_);
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
          values_.push_back(std::make_shared<Tensor>(tile_axes(*spec.value, rank, cut_)));
          spec.value = values_.back().get();
        } else if (repeated(m, i) != nullptr) {
          spec.shape = tile_shape(made_[m][0].shape, cut_, rows);
          spec.value = nullptr;
        } else {
          spec.shape = beside_tiles(spec.shape, made_[m][0].shape, cut_);
          if (spec.value != nullptr) {
            values_.push_back(std::make_shared<Tensor>(spec.value->part(spec.shape, 0)));
            spec.value = values_.back().get();
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
    const Kernel* kernel = find_kernel(op, node.attrs, device_->type());
    check_internal(kernel != nullptr && kernel->prepare, op.name, " has no kernel to fuse");
    std::shared_ptr<void> no_state;
    return kernel->prepare({view, inputs, outputs, *device_, no_state});
  }

  // ---- Places ----

  int64_t stride_of(const TensorSpec& whole) const {
    return static_cast<int64_t>(bytes_of(whole)) / cut_.rows * rows_;
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
      Step& step = steps_.emplace_back();
      if (is_constant(m)) {
        places_[m][0] = {Place::Kind::constant, static_cast<int>(constants_.size()), 0, 0};
        constants_.push_back(*made_[m][0].value);
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
        repeated_[static_cast<size_t>(copies - repeated_.data())].from = place;
        place = {Place::Kind::temporary, 0, copies->offset, 0};
      }
      step.inputs.push_back(place);
    }
  }

  Place place_output(size_t m, size_t o) {
    Place& place = places_[m][o];
    if (is_sum(m)) {  // of the tile
      const size_t bytes = aligned(bytes_of(made_[m][o]));
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
    const size_t bytes = aligned(tile_bytes_of(made_[m][o]));
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
    return shares(bound_[m].full, output, input) &&
           (last_rows_ == rows_ || shares(bound_[m].last, output, input));
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
    const size_t offset = temporary_bytes_;
    temporary_bytes_ += bytes;
    return offset;
  }

  void add_sum(size_t m, Step& step) {
    for (size_t r = 0; r < program_->outputs().size(); ++r) {
      if (program_->outputs()[r].member != static_cast<int>(m)) continue;
      const TensorSpec& spec = made_[m][0];
      step.sum = static_cast<int>(sums_.size());
      sums_.push_back({static_cast<int>(r), spec.dtype, spec.shape.elements(), sum_bytes_});
      sum_bytes_ += aligned(bytes_of(spec));
    }
  }

  void place_workspace(size_t m, Step& step) {
    const size_t bytes =
        aligned(std::max(bound_[m].full.workspace_bytes, bound_[m].last.workspace_bytes));
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

  // ---- A step ----

  // On several threads if the temporaries are on the stack.
  template <class Piece>
  void run_pieces(const Arguments& a, int64_t pieces, double piece_ns, const Piece& piece) const {
    if (!is_on_stack()) {
      auto* const temporaries = static_cast<std::byte*>(a.workspace);
      repeat(a, temporaries);
      for (int64_t i = 0; i < pieces; ++i) {
        StepEnd::ask();
        piece(i, temporaries, *a.stream);
      }
      return;
    }
    const auto grain = static_cast<int64_t>(1 + least_chunk_ns / piece_ns);
    a.stream->parallel_for(pieces, grain, [&](int64_t begin, int64_t end) {
      alignas(alignment) std::byte temporaries[stack_bytes];
      OneThread stream;
      repeat(a, temporaries);
      for (int64_t i = begin; i < end; ++i) piece(i, temporaries, stream);
    });
  }

  int64_t first_tile(int64_t range) const { return range * tiles_ / ranges_; }

  std::byte* sums_of(const Arguments& a, int64_t range) const {
    return static_cast<std::byte*>(a.workspace) + (is_on_stack() ? 0 : temporary_bytes_) +
           static_cast<size_t>(range) * sum_bytes_;
  }

  // Adds what a tile or a range has to the sums of a range.
  static void add(const Sum& sum, const void* from, std::byte* sums) {
    const auto plus = [&]<class T>(TypeTag<T>) {
      const T* x = static_cast<const T*>(from);
      T* y = reinterpret_cast<T*>(sums + sum.offset);
      vectorized([=, n = sum.elements]() LEAT_INLINE {
        LEAT_INDEPENDENT_ITERATIONS
        for (int64_t i = 0; i < n; ++i) y[i] += x[i];
      });
    };
    if (sum.dtype == DType::f32) return plus(TypeTag<float>{});
    plus(TypeTag<double>{});
  }

  void* address(const Place& place, const Arguments& a, int64_t tile,
                std::byte* temporaries) const {
    switch (place.kind) {
      case Place::Kind::input:
        return static_cast<std::byte*>(a.inputs[place.index]) + tile * place.stride;
      case Place::Kind::output:
        return static_cast<std::byte*>(a.outputs[place.index]) + tile * place.stride;
      case Place::Kind::constant:
        return const_cast<void*>(constants_[static_cast<size_t>(place.index)].raw());
      case Place::Kind::temporary:
        return temporaries + place.offset;
    }
    return nullptr;
  }

  void run_tile(const Arguments& a, int64_t tile, std::byte* temporaries, std::byte* sums,
                Stream& stream) const {
    std::array<void*, most_operands> inputs, outputs;
    const bool is_last = tile + 1 == tiles_ && last_rows_ != rows_;
    for (size_t m = 0; m < steps_.size(); ++m) {
      const Step& step = steps_[m];
      const BoundKernel& kernel = is_last ? bound_[m].last : bound_[m].full;
      for (size_t i = 0; i < step.inputs.size(); ++i)
        inputs[i] = address(step.inputs[i], a, tile, temporaries);
      for (size_t o = 0; o < step.outputs.size(); ++o)
        outputs[o] = address(step.outputs[o], a, tile, temporaries);
      if (kernel.function != nullptr) {
        kernel.function(kernel.bound.get(),
                        {inputs.data(), outputs.data(), temporaries + step.workspace, &stream});
      }
      if (step.sum >= 0) {
        add(sums_[static_cast<size_t>(step.sum)], outputs[0], sums);
        continue;
      }
      for (const View& view : kernel.views) {
        const auto rows = static_cast<size_t>(is_last ? last_rows_ : rows_);
        std::memcpy(outputs[static_cast<size_t>(view.output)],
                    static_cast<std::byte*>(inputs[static_cast<size_t>(view.input)]) + view.offset,
                    step.row_bytes[static_cast<size_t>(view.output)] * rows);
      }
    }
  }

  std::shared_ptr<const FusedProgram> program_;
  std::span<const TensorSpec> inputs_;  // these two: while it is prepared
  MemberSpecs made_;
  Device* device_;
  RowCut cut_;
  int64_t rows_ = 1, last_rows_ = 1, tiles_ = 1;
  std::vector<Bound> bound_;
  std::vector<Step> steps_;
  std::vector<Repeated> repeated_;
  std::vector<Sum> sums_;
  size_t sum_bytes_ = 0;  // of a range
  int64_t ranges_ = 0;    // of tiles, for sums
  std::vector<Tensor> constants_;
  std::vector<std::shared_ptr<Tensor>> values_;  // that kernels were prepared with
  std::vector<std::vector<Place>> places_;
  std::vector<std::vector<size_t>> last_use_;  // of each value: the last member that reads it
  struct Block {
    size_t bytes = 0;
    size_t last_use = 0;
  };
  std::map<size_t, Block> in_use_;               // by offset
  std::vector<std::pair<size_t, size_t>> free_;  // offset, bytes
  size_t temporary_bytes_ = 0;
  std::vector<Alias> may_share_;
  double cost_ns_ = 0;
};

}  // namespace

BoundKernel bind_tiles(std::shared_ptr<const FusedProgram> program,
                       std::span<const TensorSpec> inputs, Device& device) {
  Tiles tiles(std::move(program), inputs, device);
  const std::vector<Alias> may_share = tiles.may_share();
  const double cost = tiles.cost_ns();
  const size_t workspace = tiles.workspace_bytes();
  BoundKernel out =
      BoundKernel::of([tiles = std::move(tiles)](const Arguments& a) { tiles.run(a); });
  out.may_share = may_share;
  out.cost_ns = cost;
  out.workspace_bytes = workspace;
  return out;
}

}  // namespace leat
