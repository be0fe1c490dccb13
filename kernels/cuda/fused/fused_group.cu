#include "kernels/cuda/fused/fused_group.cuh"

#include <algorithm>
#include <map>
#include <tuple>

namespace leat {
namespace {

using cuda::Step;
using cuda::Steps;

// Each value may become a result, and need one more step, besides.
constexpr int room = std::min({cuda::most_steps / 2, cuda::most_registers, cuda::most_memory});

std::optional<cuda::Format> format_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return cuda::Format::f32;
    case DType::f16:
      return cuda::Format::f16;
    case DType::bf16:
      return cuda::Format::bf16;
    case DType::boolean:
      return cuda::Format::boolean;
    default:
      return {};
  }
}

bool reduces(const FusedProgram::Member& member) { return member.rule == RowRule::reduction; }

bool is_softmax(const FusedProgram::Member& member) {
  return member.node->is("Softmax") || member.node->is("LogSoftmax");
}

// Of the operands that are values.
size_t operands_of(const FusedProgram::Member& member) {
  return reduces(member) ? 1 : member.operands.size();
}

int steps_of(const FusedProgram::Member& member) {
  if (is_softmax(member)) return 6;
  return std::max(1, static_cast<int>(operands_of(member)) - 1);  // of AddN
}

// Rounded once, at the end.
void add_sum(Step step, const std::vector<uint8_t>& terms, cuda::Format format, Steps& steps) {
  step.a = terms[0];
  if (terms.size() == 1) step.code = Step::move;
  for (size_t i = 1; i < std::max<size_t>(terms.size(), 2); ++i) {
    if (i < terms.size()) step.b = terms[i];
    if (i + 1 >= terms.size()) step.format = format;
    steps.list[steps.count++] = step;
    step.a = step.out;
  }
}

// exp(x - largest) / sum, or its logarithm. The result alone is rounded.
void add_softmax(uint8_t x, uint8_t difference, uint8_t total, const Step& result, Steps& steps) {
  const auto add = [&](int code, uint8_t out, uint8_t a, uint8_t b = 0) {
    steps.list[steps.count++] = {.code = static_cast<uint8_t>(code), .out = out, .a = a, .b = b};
  };
  const auto functor = [](const char* op) { return cuda::step_of(op); };
  const bool is_logarithm = result.code == functor("Log");
  add(Step::largest, difference, x);
  add(functor("Sub"), difference, x, difference);
  add(functor("Exp"), total, difference);
  if (!is_logarithm) add(Step::move, difference, total);
  add(Step::sum, total, total);
  if (is_logarithm) add(functor("Log"), total, total);
  add(functor(is_logarithm ? "Sub" : "Div"), result.out, difference, total);
  steps.list[steps.count - 1].format = result.format;
}

}  // namespace

void* FusedPlace::in(const Arguments& a) const {
  switch (kind) {
    case input:
      return a.inputs[at];
    case output:
      return a.outputs[at];
    case workspace:
      return static_cast<char*>(a.workspace) + at;
    default:
      return nullptr;
  }
}

// None if the extents that the operand has are not next to each other in the result.
std::optional<FusedGroup::Access> FusedGroup::access_of(const Shape& operand, const Shape& result) {
  if (operand == result) return Access{};
  const int missing = result.rank() - operand.rank();
  if (missing < 0) return {};
  const auto extent = [&](int axis) { return axis < missing ? 1 : operand[axis - missing]; };
  int first = 0, last = result.rank();  // the axes that it has
  while (first < last && extent(first) == 1) ++first;
  while (last > first && extent(last - 1) == 1) --last;
  Access out{1, 1};
  for (int axis = first; axis < last; ++axis) {
    if (extent(axis) != result[axis]) return {};
    out.period *= static_cast<uint32_t>(result[axis]);
  }
  for (int axis = last; axis < result.rank(); ++axis)
    out.inner *= static_cast<uint32_t>(result[axis]);
  return out;
}

std::optional<FusedGroup::Access> FusedGroup::access_of(int m, size_t i) const {
  const Member& member = specs_->member(m);
  if (reduces(member)) return Access{};
  const Shape& result = specs_->made[m][0].shape;
  Shape shape = specs_->of(member.operands[i]).shape;
  // Select's condition, if it is a vector, goes with the first axis.
  if (member.node->is("Select") && i == 0 && shape.rank() == 1)
    while (shape.rank() < result.rank()) shape.push_back(1);
  std::optional<Access> out = access_of(shape, result);
  if (!out || !has_rows_ || !is_of_rows(result)) return out;
  if (out->period == 0) out->period = static_cast<uint32_t>(result.elements());
  out->inner *= static_cast<uint32_t>(shape_[shape_.rank() - 1]);
  return out;
}

bool FusedGroup::contains(int member) const {
  return std::find(members_.begin(), members_.end(), member) != members_.end();
}

bool FusedGroup::has_last_axis_of_one(const Shape& shape) const {
  const int last = shape_.rank() - 1;
  return shape.rank() == shape_.rank() && shape[last] == 1 &&
         std::equal(shape.dims().begin(), shape.dims().end() - 1, shape_.dims().begin());
}

bool FusedGroup::is_of_rows(const Shape& shape) const {
  return has_last_axis_of_one(shape) ||
         (shape.rank() == shape_.rank() - 1 &&
          std::equal(shape.dims().begin(), shape.dims().end(), shape_.dims().begin()));
}

bool FusedGroup::can_reduce(int m) const {
  const Member& member = specs_->member(m);
  const TensorSpec& from = specs_->of(member.operands[0]);
  const Tensor* const axes = specs_->of(member.operands[1]).value;
  const int rank = from.shape.rank();
  return axes != nullptr && axes->elements() == 1 && rank > 0 &&
         axis_at(*axes, 0, rank) == rank - 1 && can_take_rows_of(from);
}

bool FusedGroup::can_take_rows_of(const TensorSpec& from) const {
  if (from.shape.rank() < 1) return false;
  const int64_t columns = from.shape[from.shape.rank() - 1];
  return columns > 1 && columns <= cuda::most_columns && format_of(from.dtype) &&
         from.shape.elements() <= INT32_MAX && (is_empty() || from.shape == shape_);
}

bool FusedGroup::can_map(int m) const {
  const Member& member = specs_->member(m);
  const Shape& out = specs_->made[m][0].shape;
  if (out.elements() == 0 || out.elements() > INT32_MAX) return false;
  if (member.node->is("Cast") && member.node->attr<bool>("Truncate")) return false;
  if (!is_empty() && !(out == shape_) && !(has_rows_ && is_of_rows(out))) return false;
  for (size_t i = 0; i < member.operands.size(); ++i) {
    const TensorSpec& spec = specs_->of(member.operands[i]);
    if (!format_of(spec.dtype)) return false;
    if (contains(member.operands[i].member)) {
      // Its registers hold the value of the element, or of the row.
      const bool is_there =
          spec.shape == out || (out == shape_ && has_last_axis_of_one(spec.shape));
      if (!is_there) return false;
    } else if (!access_of(m, i)) {
      return false;
    }
  }
  return true;
}

bool FusedGroup::add(int m) {
  const Member& member = specs_->member(m);
  const std::vector<TensorSpec>& made = specs_->made[m];
  const bool has_rows = reduces(member) || is_softmax(member);
  if (made.size() != 1 || !format_of(made[0].dtype) ||
      (cuda::step_of(member.node->op->name) < 0 && !is_softmax(member)))
    return false;
  const int loads = static_cast<int>(operands_of(member)), steps = steps_of(member);
  if (loads_ + steps_ + loads + steps > room) return false;
  const bool can = reduces(member)      ? can_reduce(m)
                   : is_softmax(member) ? can_take_rows_of(specs_->of(member.operands[0]))
                                        : can_map(m);
  if (!can) return false;
  if (is_empty()) shape_ = has_rows ? specs_->of(member.operands[0]).shape : made[0].shape;
  has_rows_ = has_rows_ || has_rows;
  members_.push_back(m);
  loads_ += loads;
  steps_ += steps;
  return true;
}

FusedLaunch FusedGroup::launch(
    const std::function<bool(int member)>& is_result,
    const std::function<FusedPlace(const FusedProgram::Operand&)>& place) const {
  const int64_t columns = has_rows_ ? shape_[shape_.rank() - 1] : 0;
  FusedLaunch out{{}, {}, has_rows_ ? shape_.elements() / columns : shape_.elements(), columns};
  Steps& steps = out.steps;
  const auto add = [&](Step step) { steps.list[steps.count++] = step; };
  const auto memory = [&](FusedPlace at) {
    out.memory.push_back(at);
    return static_cast<uint8_t>(out.memory.size() - 1);
  };
  // By member (-1: an input), number, and access.
  std::map<std::tuple<int, int, uint32_t, uint32_t>, uint8_t> registers;
  const auto next = [&] { return static_cast<uint8_t>(registers.size()); };
  const auto register_of = [&](int m) { return registers.at({m, 0, 1, 0}); };
  const auto operand_of = [&](int m, size_t i) {
    const FusedProgram::Operand& operand = specs_->member(m).operands[i];
    if (contains(operand.member)) return register_of(operand.member);
    const Access where = *access_of(m, i);
    const auto [known, is_new] =
        registers.try_emplace({operand.member, operand.index, where.inner, where.period}, next());
    if (!is_new) return known->second;
    add({.code = Step::load,
         .out = known->second,
         .format = *format_of(specs_->of(operand).dtype),
         .memory = memory(place(operand)),
         .inner = where.inner,
         .period = where.period});
    return known->second;
  };
  for (const int m : members_) {
    const Member& member = specs_->member(m);
    std::vector<uint8_t> operands;
    for (size_t i = 0; i < operands_of(member); ++i) operands.push_back(operand_of(m, i));
    const auto new_register = [&](int number) {
      return registers.emplace(std::tuple(m, number, 1U, 0U), next()).first->second;
    };
    const cuda::Format format = *format_of(specs_->made[m][0].dtype);
    if (is_softmax(member)) {
      const char* const last = member.node->is("Softmax") ? "Div" : "Log";
      const Step result{.code = static_cast<uint8_t>(cuda::step_of(last)),
                        .out = new_register(0),
                        .format = format};
      add_softmax(operands[0], new_register(1), new_register(2), result, steps);
      continue;
    }
    Step step{.code = static_cast<uint8_t>(cuda::step_of(member.node->op->name)),
              .out = new_register(0)};
    if (member.node->attrs.contains("alpha")) step.parameter = member.node->attr<float>("alpha");
    if (member.node->is("AddN")) {
      add_sum(step, operands, format, steps);
      continue;
    }
    uint8_t* const slots[] = {&step.a, &step.b, &step.c};
    for (size_t i = 0; i < operands.size(); ++i) *slots[i] = operands[i];
    step.format = format;
    add(step);
  }
  for (const int m : members_) {
    if (!is_result(m)) continue;
    const TensorSpec& spec = specs_->made[m][0];
    add({.code = spec.shape == shape_ ? Step::store : Step::store_of_row,
         .out = register_of(m),
         .format = *format_of(spec.dtype),
         .memory = memory(place({m, 0}))});
  }
  return out;
}

}  // namespace leat
