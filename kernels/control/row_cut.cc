#include "kernels/control/row_cut.h"

#include <algorithm>

namespace leat {
namespace {

bool starts_with(const Shape& shape, const Shape& leading, int axes) {
  return shape.rank() >= axes &&
         std::equal(leading.dims().begin(), leading.dims().begin() + axes, shape.dims().begin());
}

// Numpy aligns shapes at their last axes: these extents lie beside the rows of the output.
bool is_beside_rows(const Shape& shape, const Shape& output, int axes) {
  if (shape.rank() > output.rank()) return false;
  const int beside = shape.rank() - (output.rank() - axes);
  for (int axis = 0; axis < beside; ++axis) {
    if (shape[axis] != 1) return false;
  }
  return true;
}

class CutFinder {
 public:
  CutFinder(const FusedProgram& program, std::span<const TensorSpec> inputs,
            const MemberSpecs& made)
      : program_(program), inputs_(inputs), made_(made) {}

  RowCut find() {
    for (size_t m = 0; m < made_.size(); ++m) {
      if (program_.members()[m].node->is("Const")) continue;
      for (const TensorSpec& output : made_[m]) {
        if (output.shape.elements() == 0) return {};
        if (whole_ == nullptr || output.shape.elements() > whole_->elements() ||
            (output.shape.elements() == whole_->elements() &&
             output.shape.rank() < whole_->rank())) {
          whole_ = &output.shape;
        }
      }
    }
    for (int axes = whole_ == nullptr ? 0 : whole_->rank(); axes > 0; --axes) {
      if (!fits(axes)) continue;
      RowCut cut{axes, 1};
      for (int axis = 0; axis < axes; ++axis) cut.rows *= (*whole_)[axis];
      return cut;
    }
    return {};
  }

 private:
  bool fits(int axes) const {
    for (size_t m = 0; m < made_.size(); ++m) {
      if (!fits(program_.members()[m], made_[m], axes)) return false;
    }
    return true;
  }

  bool fits(const FusedProgram::Member& member, const std::vector<TensorSpec>& outputs,
            int axes) const {
    if (member.node->is("Const")) return true;
    if (sums_all_rows(member, inputs_, made_, {axes, 1}))
      return starts_with(FusedProgram::spec_of(member.operands[0], inputs_, made_).shape, *whole_,
                         axes);
    for (const TensorSpec& output : outputs) {
      if (!starts_with(output.shape, *whole_, axes)) return false;
    }
    const auto shape_of = [&](size_t i) -> const Shape& {
      return FusedProgram::spec_of(member.operands[i], inputs_, made_).shape;
    };
    switch (member.rule) {
      case RowRule::none:
      case RowRule::sum:
      case RowRule::head:
        return false;
      case RowRule::elementwise:
        for (size_t i = 0; i < member.operands.size(); ++i) {
          if (!fits_elementwise(member, i, shape_of(i), outputs[0].shape, axes)) return false;
        }
        return true;
      case RowRule::last_axis:
        for (size_t i = 0; i < member.operands.size(); ++i) {
          if (shape_of(i).rank() <= axes || !starts_with(shape_of(i), *whole_, axes)) return false;
        }
        return true;
      case RowRule::reduction: {
        const Shape& operand = shape_of(0);
        if (!starts_with(operand, *whole_, axes)) return false;
        const Tensor& over = *FusedProgram::spec_of(member.operands[1], inputs_, made_).value;
        for (int64_t i = 0; i < over.elements(); ++i) {
          if (axis_at(over, i, operand.rank()) < axes) return false;
        }
        return over.elements() > 0;
      }
    }
    return false;
  }

  bool fits_elementwise(const FusedProgram::Member& member, size_t i, const Shape& operand,
                        const Shape& output, int axes) const {
    // A bias is a vector beside the last axis.
    if (member.node->op->name.starts_with("BiasAdd") && axes >= output.rank()) return false;
    if (operand.rank() == output.rank() && starts_with(operand, *whole_, axes)) return true;
    // Select takes a condition for each index of the first axis.
    if (member.node->is("Select") && operand.rank() > 0) return false;
    const int from = member.operands[i].member;
    const bool is_made = from >= 0 && !program_.members()[from].node->is("Const");
    return !is_made && is_beside_rows(operand, output, axes);
  }

  const FusedProgram& program_;
  const std::span<const TensorSpec> inputs_;
  const MemberSpecs& made_;
  const Shape* whole_ = nullptr;  // what has most elements
};

}  // namespace

RowCut find_row_cut(const FusedProgram& program, std::span<const TensorSpec> inputs,
                    const MemberSpecs& made) {
  return CutFinder(program, inputs, made).find();
}

bool is_row_operand(const FusedProgram::Member& member, int i, const TensorSpec& operand,
                    const Shape& output, const RowCut& cut) {
  if (member.rule == RowRule::reduction || member.rule == RowRule::sum) return i == 0;
  if (member.rule == RowRule::last_axis) return true;
  return operand.shape.rank() == output.rank() && starts_with(operand.shape, output, cut.axes);
}

Shape tile_shape(const Shape& whole, const RowCut& cut, int64_t rows) {
  Shape out{rows};
  for (int axis = cut.axes; axis < whole.rank(); ++axis) out.push_back(whole[axis]);
  return out;
}

Shape beside_tiles(const Shape& whole, const Shape& output, const RowCut& cut) {
  const int kept = std::min(whole.rank(), output.rank() - cut.axes);
  return Shape(whole.dims().last(static_cast<size_t>(kept)));
}

bool sums_all_rows(const FusedProgram::Member& member, std::span<const TensorSpec> inputs,
                   const MemberSpecs& made, const RowCut& cut) {
  const Shape& operand = FusedProgram::spec_of(member.operands[0], inputs, made).shape;
  if (member.rule == RowRule::sum) return operand.rank() > cut.axes;
  if (member.rule != RowRule::reduction || !member.node->is("Sum")) return false;
  const Tensor& axes = *FusedProgram::spec_of(member.operands[1], inputs, made).value;
  const DType dtype = member.node->outputs[0].dtype;
  return (dtype == DType::f32 || dtype == DType::f64) && axes.elements() >= cut.axes &&
         sums_leading_axes(axes, operand);
}

Tensor tile_axes(const Tensor& axes, int rank, const RowCut& cut) {
  bool has_rows = false;  // then it has all of their axes
  for (int64_t i = 0; i < axes.elements(); ++i)
    has_rows = has_rows || axis_at(axes, i, rank) < cut.axes;
  const int64_t count = has_rows ? axes.elements() - cut.axes + 1 : axes.elements();
  Tensor out(axes.dtype(), {count});
  for (int64_t i = 0; i < count; ++i) {
    const int64_t axis = has_rows ? i : axis_at(axes, i, rank) - cut.axes + 1;
    if (axes.dtype() == DType::i64) {
      out.data<int64_t>()[i] = axis;
    } else {
      out.data<int32_t>()[i] = static_cast<int32_t>(axis);
    }
  }
  return out;
}

}  // namespace leat
