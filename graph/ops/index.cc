#include "graph/ops/index.h"

#include <algorithm>
#include <utility>

#include "graph/ops/arrays.h"
#include "graph/ops/graph_of.h"

namespace leat {
namespace {

// StridedSlice's inputs, an entry for each index, and its masks.
class Parts {
 public:
  explicit Parts(Output x, Location at) : x_(x), at_(at) {}

  void add(const Index& index) {
    std::visit([this](const auto& what) { add(what); }, index.what());
    ++count_;
  }

  Output of_x() {
    return op("StridedSlice",
              {x_, vector(begin_, "begin"), vector(end_, "end"), vector(step_, "strides")},
              {{"begin_mask", begin_mask_},
               {"end_mask", end_mask_},
               {"ellipsis_mask", ellipsis_mask_},
               {"new_axis_mask", new_axis_mask_},
               {"shrink_axis_mask", shrink_axis_mask_}},
              at_);
  }

 private:
  using Entry = std::variant<int64_t, Output>;

  void push(Entry begin, Entry end, int64_t step) {
    begin_.push_back(begin);
    end_.push_back(end);
    step_.push_back(step);
  }
  int64_t bit() const { return int64_t{1} << count_; }

  Output as_int32(Output position) const {
    check(position && is_integer(position.dtype()), "an index (", at_, ") must be an integer, got ",
          position ? concat(position.name(), " ", position.dtype(), position.shape())
                   : "an empty Output");
    return position.dtype() == i32 ? position : op("Cast", {position}, {{"DstT", i32}}, at_);
  }
  Entry entry(const Bound& bound) const {
    if (const Output* scalar = std::get_if<Output>(&bound.position())) return as_int32(*scalar);
    const auto* number = std::get_if<int64_t>(&bound.position());
    return number != nullptr ? *number : 0;
  }

  void add(int64_t position) {
    // Behind -1 comes the axis's end, and not position 0.
    push(position, position + 1, 1);
    shrink_axis_mask_ |= bit();
    if (position == -1) end_mask_ |= bit();
  }
  void add(Output position) {
    const Output begin = as_int32(position);
    push(begin, Operand(begin, at_) + Operand(1, at_), 1);
    shrink_axis_mask_ |= bit();
  }
  void add(const Slice& slice) {
    check(slice.step != 0, "a slice (", at_, ") has step 0");
    push(entry(slice.begin), entry(slice.end), slice.step);
    if (slice.begin.position().index() == 0) begin_mask_ |= bit();
    if (slice.end.position().index() == 0) end_mask_ |= bit();
  }
  void add(NewAxis) {
    push(int64_t{0}, int64_t{0}, 1);
    new_axis_mask_ |= bit();
  }
  void add(Ellipsis) {
    push(int64_t{0}, int64_t{0}, 1);
    ellipsis_mask_ |= bit();
  }

  int32_t narrow(int64_t value) const {
    check(std::in_range<int32_t>(value), "an index (", at_, ") is ", value, ", beyond int32");
    return static_cast<int32_t>(value);
  }

  Output vector(const std::vector<Entry>& entries, std::string_view name) const {
    std::vector<Output> outputs;
    std::vector<int32_t> numbers;
    for (const Entry& entry : entries) {
      const auto* value = std::get_if<int64_t>(&entry);
      outputs.push_back(value != nullptr ? Output{} : std::get<Output>(entry));
      numbers.push_back(value != nullptr ? narrow(*value) : 0);
    }
    const bool are_known =
        std::none_of(outputs.begin(), outputs.end(), [](const Output& o) { return bool{o}; });
    const auto n = static_cast<int64_t>(numbers.size());
    if (are_known)
      return constant(x_.graph(), Tensor::of<int32_t>({n}, std::span<const int32_t>(numbers)), name,
                      at_);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i]) outputs[i] = constant(x_.graph(), Tensor::scalar(numbers[i]), "Const", at_);
    }
    return op("Pack", outputs, {}, at_);
  }

  const Output x_;
  const Location at_;
  int count_ = 0;
  std::vector<Entry> begin_, end_, step_;
  int64_t begin_mask_ = 0, end_mask_ = 0, ellipsis_mask_ = 0, new_axis_mask_ = 0,
          shrink_axis_mask_ = 0;
};

}  // namespace

Output Output::operator[](const Index& index) const {
  const Output* which = std::get_if<Output>(&index.what());
  if (which != nullptr && *which && which->dtype() == DType::boolean)
    return boolean_mask(*this, *which, index.at());
  if (which != nullptr && *which && which->shape().rank() > 0 && is_integer(which->dtype()))
    return take(*this, *which, 0, index.at());
  return (*this)[{index}];
}

Output Output::operator[](std::initializer_list<Index> indices) const {
  const Location at = indices.size() == 0 ? Location{} : indices.begin()->at();
  graph_of(*this, at);
  Parts parts(*this, at);
  for (const Index& index : indices) parts.add(index);
  return parts.of_x();
}

}  // namespace leat
