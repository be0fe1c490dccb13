// RaggedTensorToVariant, RaggedTensorFromVariant and the gradient of the first: ragged tensors as
// variants, whole or row by row.
#include "kernels/sparse/ragged_variant.h"

#include <algorithm>

#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/extents.h"
#include "kernels/moves/copy_elements.h"
#include "kernels/row_splits.h"

namespace leat {
namespace {

// ---- To variants ----

// Checks the splits of one level: INVALID_ARGUMENT unless they split `count` values into rows.
void check_splits(const std::vector<int64_t>& splits, int level, int64_t count) {
  check(!splits.empty(), "Invalid ragged splits: splits of level ", level, " are empty");
  check(splits[0] == 0, "Invalid ragged splits: first element of level ", level,
        " must be 0 but is ", splits[0]);
  for (size_t i = 1; i < splits.size(); ++i) {
    check(splits[i - 1] <= splits[i], "Invalid ragged splits: level ", level,
          " must be in increasing order, but has ", splits[i - 1], " before ", splits[i]);
  }
  check(splits.back() == count, "Invalid ragged splits: last element of level ", level,
        " must be the number of values, ", count, ", but is ", splits.back());
}

// Rows begin to end, exclusive, of values or of splits.
Tensor rows(const Tensor& values, int64_t begin, int64_t end) {
  Tensor out(values.dtype(), rows_of(end - begin, values.shape()));
  const int64_t row = behind_first(values.shape()).elements();
  copy_elements(values, begin * row, out, 0, (end - begin) * row);
  return out;
}

struct Ragged {
  std::vector<std::vector<int64_t>> splits;
  DType split_type;
  Tensor values;

  // Row `at` of its first axis.
  VariantPointer row(int64_t at) const {
    int64_t begin = at, end = at + 1;
    std::vector<Tensor> inner;
    for (size_t level = 0; level < splits.size(); ++level) {
      const std::vector<int64_t>& all = splits[level];
      if (level > 0) {
        std::vector<int64_t> own(all.begin() + begin, all.begin() + end + 1);
        for (int64_t& split : own) split -= all[begin];
        inner.push_back(row_splits(own, split_type));
      }
      begin = all[begin];
      end = all[end];
    }
    if (!splits.empty())
      return std::make_shared<RaggedVariant>(std::move(inner), rows(values, begin, end));
    const Tensor one = rows(values, begin, end);
    return std::make_shared<RaggedVariant>(std::move(inner),
                                           one.reshaped(behind_first(one.shape())));
  }
};

// RaggedTensorToVariant(rt_nested_splits…, rt_dense_values)
void to_variant(ExecuteContext& c) {
  const auto rank = static_cast<int>(c.node().attr<int64_t>("RAGGED_RANK"));
  const Tensor& values = c.input(rank);
  Ragged ragged{{}, c.node().attr<DType>("Tsplits"), values};
  const bool is_batched = c.node().attr<bool>("batched_input");
  check(values.shape().rank() > 0 || (rank == 0 && !is_batched),
        "Shape must be at least rank 1 but is rank 0: rt_dense_values");
  std::vector<Tensor> splits;
  for (int i = 0; i < rank; ++i) {
    check(c.input(i).shape().rank() == 1, "Shape must be rank 1 but is rank ",
          c.input(i).shape().rank(), ": rt_nested_splits[", i, "]");
    splits.push_back(c.input(i));
    ragged.splits.push_back(to_int64s(splits.back()));
  }
  for (int i = 0; i < rank; ++i) {
    const int64_t inner = i + 1 < rank ? std::ssize(ragged.splits[i + 1]) - 1 : values.shape()[0];
    check_splits(ragged.splits[i], i, inner);
  }
  if (!is_batched)
    return c.set_output(0,
                        variant_tensor(std::make_unique<RaggedVariant>(std::move(splits), values)));
  const int64_t count = rank > 0 ? std::ssize(ragged.splits[0]) - 1 : values.shape()[0];
  check_memory_for(count, sizeof(VariantPointer) + sizeof(RaggedVariant));
  Tensor out(DType::variant, {count});
  for (int64_t i = 0; i < count; ++i) out.data<VariantPointer>()[i] = ragged.row(i);
  c.set_output(0, std::move(out));
}

// ---- Back ----

// The tensors joined along their first axis. Their other extents are equal.
Tensor concatenated(const std::vector<const Tensor*>& parts, DType dtype) {
  Shape shape{0};
  int64_t count = 0;
  for (const Tensor* part : parts) {
    check(part->shape().rank() > 0,
          "All flat_values must have rank at least 1, to be rows of a ragged tensor; got a scalar");
    if (part == parts[0]) shape = part->shape();
    check(
        part->shape().rank() == shape.rank() && behind_first(part->shape()) == behind_first(shape),
        "All flat_values must have compatible shapes. Shape at index 0: ", shape,
        ". Shape at another: ", part->shape(), ".");
    count = sum_of_extents(count, part->shape()[0]);
  }
  Tensor out(dtype, rows_of(count, shape));
  int64_t at = 0;
  for (const Tensor* part : parts) {
    copy_elements(*part, 0, out, at, part->elements());
    at += part->elements();
  }
  return out;
}

class FromVariant {
 public:
  explicit FromVariant(ExecuteContext& c)
      : c_(c),
        encoded_(c.input(0)),
        output_rank_(c.node().attr<int64_t>("output_ragged_rank")),
        split_type_(c.node().attr<DType>("Tsplits")),
        value_type_(c.node().attr<DType>("Tvalues")) {
    const int64_t axes = encoded_.shape().rank(),
                  said = c.node().attr<int64_t>("input_ragged_rank");
    input_rank_ = said == -1 ? output_rank_ - axes : said;
    check(input_rank_ >= 0,
          "Inferred input_ragged_rank (output_ragged_rank - encoded_variant.dims()) "
          "must be >= 0, found output_ragged_rank: ",
          output_rank_, ", encoded_variant.dims(): ", axes,
          ", inferred input_ragged_rank: ", input_rank_);
    check(output_rank_ == axes + input_rank_,
          "output_ragged_rank must be equal to input_ragged_rank + encoded_ragged.dims(). Found "
          "output_ragged_rank: ",
          output_rank_, ", input_ragged_rank: ", input_rank_, ", encoded_ragged.dims(): ", axes);
    for (int64_t i = 0; i < encoded_.elements(); ++i) parts_.push_back(&part(i));
  }

  void set_outputs() {
    if (encoded_.shape().rank() == 0) {
      for (int64_t i = 0; i < input_rank_; ++i)
        c_.set_output(static_cast<int>(i), parts_[0]->splits[i]);
      c_.set_output(static_cast<int>(input_rank_), parts_[0]->values);
      return;
    }
    const Shape& shape = encoded_.shape();
    int64_t rows = 1;
    int output = 0;
    for (; output < shape.rank() - 1; ++output) {
      rows *= shape[output];
      c_.set_output(output, splits_of(std::vector<int64_t>(rows, shape[output + 1])));
    }
    c_.set_output(output++, splits_of(lengths(0)));
    for (int64_t level = 0; level < input_rank_; ++level) c_.set_output(output++, merged(level));
    std::vector<const Tensor*> values;
    for (const RaggedVariant* part : parts_) values.push_back(&part->values);
    c_.set_output(output, concatenated(values, value_type_));
  }

 private:
  const RaggedVariant& part(int64_t i) const {
    const auto& out = variant_as<RaggedVariant>(encoded_, i);
    check(out.ragged_rank() == input_rank_,
          "Encoded input RaggedTensorVariant has ragged_rank=", out.ragged_rank(),
          ".  Expected ragged_rank=", input_rank_, ".");
    check(out.values.dtype() == value_type_, "Expected values Tensor dtype: ", value_type_,
          ", found: ", out.values.dtype());
    for (const Tensor& splits : out.splits) {
      check(splits.dtype() == split_type_, "Expected row_splits Tensor dtype: ", split_type_,
            ", found: ", splits.dtype());
    }
    return out;
  }

  // The number of rows of each part at a level; at the last level, of its values.
  std::vector<int64_t> lengths(int64_t level) const {
    std::vector<int64_t> out;
    for (const RaggedVariant* part : parts_) {
      const Tensor& rows = level < input_rank_ ? part->splits[level] : part->values;
      check(rows.shape().rank() > 0, "a row of a ragged tensor must have an axis, but is a scalar");
      out.push_back(rows.shape()[0] - (level < input_rank_ ? 1 : 0));
    }
    return out;
  }

  Tensor splits_of(const std::vector<int64_t>& lengths) const {
    std::vector<int64_t> out = {0};
    for (const int64_t length : lengths) out.push_back(sum_of_extents(out.back(), length));
    return row_splits(out, split_type_);
  }

  Tensor merged(int64_t level) const {
    std::vector<int64_t> row_lengths;
    for (const RaggedVariant* part : parts_) {
      const std::vector<int64_t> splits = to_int64s(part->splits[level]);
      for (size_t i = 1; i < splits.size(); ++i) row_lengths.push_back(splits[i] - splits[i - 1]);
    }
    return splits_of(row_lengths);
  }

  ExecuteContext& c_;
  const Tensor& encoded_;
  const int64_t output_rank_;
  const DType split_type_, value_type_;
  int64_t input_rank_ = 0;
  std::vector<const RaggedVariant*> parts_;
};

// RaggedTensorToVariantGradient(encoded_ragged_grad, row_splits, dense_values_shape)
void gradient(ExecuteContext& c) {
  const Tensor& encoded = c.input(0);
  const auto dtype = c.node().attr<DType>("Tvalues");
  check(c.input(2).shape().rank() == 1, "dense_values_shape must be a vector, got shape ",
        c.input(2).shape());
  const std::vector<int64_t> extents = to_int64s(c.input(2));
  for (const int64_t extent : extents)
    check(extent >= 0, "dense_values_shape has a negative extent: ", extent);
  const Shape shape{std::span<const int64_t>(extents)};
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < encoded.elements(); ++i) {
    const VariantPointer& element = encoded.data<VariantPointer>()[i];
    check(element != nullptr, "element ", i, " of encoded_ragged_grad was not set");
    parts.push_back(as_variant<RaggedVariant>(*element).values);
    check(parts.back().dtype() == dtype, "Expected values Tensor dtype: ", dtype,
          ", found: ", parts.back().dtype());
    // In a batch without splits, each part is a row without its first axis.
    if (encoded.shape().rank() > 0 && c.input(1).shape().rank() == 0)
      parts.back() = parts.back().reshaped(rows_of(1, parts.back().shape(), 0));
  }
  if (encoded.shape().rank() == 0) {
    check(parts[0].elements() == shape.elements(), "the gradient has shape ", parts[0].shape(),
          ", but the values have ", shape);
    return c.set_output(0, parts[0].reshaped(shape));
  }
  std::vector<const Tensor*> values;
  for (const Tensor& part : parts) values.push_back(&part);
  const Tensor out = concatenated(values, dtype);
  check(out.elements() == shape.elements(), "the gradient has shape ", out.shape(),
        ", but the values have ", shape);
  c.set_output(0, out.reshaped(shape));
}

// ---- Ops ----

void infer_to_variant(ShapeContext& c) {
  const auto rank = static_cast<int>(c.attr<int64_t>("RAGGED_RANK"));
  for (int i = 0; i < rank; ++i) c.with_rank(i, 1);
  if (rank > 0 || c.attr<bool>("batched_input")) c.with_rank_at_least(rank, 1);
  if (!c.attr<bool>("batched_input")) return c.set_output(0, {});
  const Shape& first = c.input(0);
  if (!first.has_rank() || first[0] == any) return c.set_output(0, {any});
  check(rank == 0 || first[0] > 0, "rt_nested_splits[0] must not be empty");
  c.set_output(0, {first[0] - (rank > 0 ? 1 : 0)});
}

const Op to_variant_op{{
    .name = "RaggedTensorToVariant",
    .doc = "encoded_ragged = the ragged tensor; batched_input: a vector of its rows.",
    .inputs = {"rt_nested_splits: RAGGED_RANK * Tsplits", "rt_dense_values: Tvalues"},
    .outputs = {"encoded_ragged: variant"},
    .attrs = {"RAGGED_RANK: int >= 0", "Tvalues: type", "Tsplits: {int32, int64} = int64",
              "batched_input: bool"},
    .shape = infer_to_variant,
    .kernels = {{.execute = to_variant}},
    .has_data_dependent_shape = true,
    .is_not_differentiable = true,
}};

const Op from_variant_op{{
    .name = "RaggedTensorFromVariant",
    .doc = "The ragged tensor whose rows, or rows of rows, encoded_ragged holds as ragged tensors "
           "of input_ragged_rank (-1: output_ragged_rank less the axes of encoded_ragged).",
    .inputs = {"encoded_ragged: variant"},
    .outputs = {"output_nested_splits: output_ragged_rank * Tsplits",
                "output_dense_values: Tvalues"},
    .attrs = {"input_ragged_rank: int >= -1", "output_ragged_rank: int >= 0", "Tvalues: type",
              "Tsplits: {int32, int64} = int64"},
    .shape =
        [](ShapeContext& c) {
          for (int i = 0; i < c.num_outputs(); ++i)
            c.set_output(i, i + 1 < c.num_outputs() ? Shape{any} : Shape::unknown());
        },
    .kernels = {{.execute = [](ExecuteContext& c) { FromVariant(c).set_outputs(); }}},
    .has_data_dependent_shape = true,
    .is_not_differentiable = true,
}};

const Op gradient_op{{
    .name = "RaggedTensorToVariantGradient",
    .doc = "dense_values_grad = the gradient of RaggedTensorToVariant with respect to "
           "rt_dense_values, from the gradients of its rows.",
    .inputs = {"encoded_ragged_grad: variant", "row_splits: Tsplits", "dense_values_shape: int32"},
    .outputs = {"dense_values_grad: Tvalues"},
    .attrs = {"Tvalues: type", "Tsplits: {int32, int64} = int64"},
    .kernels = {{.execute = gradient}},
    .has_data_dependent_shape = true,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
