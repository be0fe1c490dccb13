// Bands of diagonals of matrices: MatrixDiagPart extracts them, MatrixDiag builds matrices from
// them, MatrixSetDiag replaces them. V1 supports only the main diagonal; V2 and V3 differ in where
// diagonals of unequal lengths begin.
#include "kernels/linear_algebra/matrix_band.h"

#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/extents.h"
#include "kernels/pieces.h"

namespace leat {
namespace {

Band band_of(const NodeView& node, const Tensor* k) {
  Band band;
  if (!has_band(node.op)) return band;
  const std::vector<int64_t> ks = to_int64s(*k);
  check(k->shape().rank() <= 1 && (ks.size() == 1 || ks.size() == 2),
        "diag_index must be a scalar or vector with one or two elements, got shape ", k->shape());
  band.low = ks.front();
  band.high = ks.back();
  check(band.low <= band.high,
        "lower_diag_index must not be larger than upper_diag_index: ", band.low, " > ", band.high);
  if (node.op.ends_with("V3")) {
    const std::string& align = node.attr<std::string>("align");
    band.left_above = align.starts_with("LEFT");
    band.left_below = align.ends_with("LEFT");
  }
  return band;
}

void check_in_matrix(const Band& band) {
  const auto inside = [&](int64_t d) { return (-band.rows < d && d < band.cols) || d == 0; };
  check(inside(band.low), "lower_diag_index is out of bound: ", band.low, ". It must be between ",
        -band.rows, " and ", band.cols);
  check(inside(band.high), "upper_diag_index is out of bound: ", band.high, ". It must be between ",
        -band.rows, " and ", band.cols);
}

Shape batch_of(const Shape& shape, int matrix_rank) {
  return Shape(shape.dims().first(shape.rank() - matrix_rank));
}

// What the packed diagonals of matrices [batch…, rows, cols] look like.
Shape packed_shape(Shape batch, const Band& band) {
  if (band.count() > 1) batch.push_back(band.count());
  batch.push_back(band.longest());
  return batch;
}

bool is_complete_matrix(const Shape& shape) {
  return shape[shape.rank() - 1] != any && shape[shape.rank() - 2] != any;
}

}  // namespace

Band band_in(const NodeView& node, const Tensor* k, const Shape& matrix) {
  Band band = band_of(node, k);
  band.rows = matrix[matrix.rank() - 2];
  band.cols = matrix[matrix.rank() - 1];
  if (has_band(node.op)) check_in_matrix(band);
  return band;
}

namespace {

// Input `i` of the ops that support more than the main diagonal; null if it is unknown or absent.
const Tensor* band_value(ShapeContext& c, int i) {
  return has_band(c.node().op) ? c.value(i) : nullptr;
}

// ---- MatrixDiagPart

void infer_part(ShapeContext& c) {
  if (c.num_inputs() > 2) c.with_rank(2, 0);
  const Shape input = c.with_rank_at_least(0, 2);
  const bool is_known = !has_band(c.node().op) || band_value(c, 1) != nullptr;
  if (!input.has_rank() || !is_known) return c.set_output(0, Shape::unknown());
  const Shape batch = batch_of(input, 2);
  if (is_complete_matrix(input))
    return c.set_output(0, packed_shape(batch, band_in(c.node(), band_value(c, 1), input)));
  Shape out = batch;
  if (const Band band = band_of(c.node(), band_value(c, 1)); band.count() > 1)
    out.push_back(band.count());
  out.push_back(any);
  c.set_output(0, out);
}

template <class T>
BoundKernel prepare_part(TypeTag<T>, const KernelRequest& r) {
  if (are_empty(r.outputs)) return {};
  const Shape& input = r.inputs[0].shape;
  const bool pads = has_band(r.node.op);
  const Band band = band_in(r.node, pads ? r.inputs[1].value : nullptr, input);
  const int64_t matrix = band.rows * band.cols, packed = band.count() * band.longest();
  const int64_t batches = batch_of(input, 2).elements();
  return BoundKernel::of([=](const Arguments& a) {
    if (pads) fill_in_pieces(a.output<T>(), batches * packed, *a.input<T>(2));
    for (int64_t b = 0; b < batches; ++b) {
      StepEnd::pace(packed);
      const T* from = a.input<T>(0) + b * matrix;
      T* to = a.output<T>() + b * packed;
      band.for_each([&](int64_t i, int64_t d) { to[d] = from[i]; });
    }
  });
}

// ---- MatrixDiag

}  // namespace

Band diag_band(const NodeView& node, const Shape& diagonal, const Tensor* k, const Tensor* rows,
               const Tensor* cols) {
  Band band = band_of(node, k);
  const int64_t longest = diagonal[diagonal.rank() - 1];
  if (!has_band(node.op)) {
    band.rows = band.cols = longest;
    return band;
  }
  if (band.count() > 1) {
    check(diagonal.rank() >= 2 && diagonal[diagonal.rank() - 2] == band.count(),
          "The number of diagonals provided in the input does not match the lower_diag_index and "
          "upper_diag_index range: ",
          diagonal, " and ", band.low, " to ", band.high);
  }
  const int64_t min_rows = longest - std::min(band.high, int64_t{0});
  const int64_t min_cols = longest + std::max(band.low, int64_t{0});
  band.rows = to_int64s(*rows).at(0);
  band.cols = to_int64s(*cols).at(0);
  check(band.rows == -1 || band.rows >= min_rows, "The number of rows is too small: ", band.rows,
        ", at least ", min_rows);
  check(band.cols == -1 || band.cols >= min_cols, "The number of columns is too small: ", band.cols,
        ", at least ", min_cols);
  if (band.rows == -1 && band.cols == -1) {
    band.rows = band.cols = std::max(min_rows, min_cols);
  } else if (band.rows == -1) {
    band.rows = min_rows;
  } else if (band.cols == -1) {
    band.cols = min_cols;
  }
  check(band.rows == min_rows || band.cols == min_cols,
        "The number of rows or columns is not consistent with the specified d_lower, d_upper, and "
        "diagonal: ",
        band.rows, " and ", band.cols, ", neither ", min_rows, " rows nor ", min_cols, " columns");
  return band;
}

namespace {

void infer_diag(ShapeContext& c) {
  for (int i = 2; i < c.num_inputs(); ++i) c.with_rank(i, 0);
  const Shape diagonal = c.with_rank_at_least(0, 1);
  const bool known = !has_band(c.node().op) ||
                     (c.value(1) != nullptr && c.value(2) != nullptr && c.value(3) != nullptr);
  if (!diagonal.has_rank() || !known) return c.set_output(0, Shape::unknown());
  const int packed_rank = band_of(c.node(), band_value(c, 1)).count() > 1 ? 2 : 1;
  check(diagonal.rank() >= packed_rank, "diagonal must have at least rank ", packed_rank,
        ", got shape ", diagonal);
  Shape out = batch_of(diagonal, packed_rank);
  const bool is_complete =
      diagonal[diagonal.rank() - 1] != any && diagonal[diagonal.rank() - packed_rank] != any;
  Band band;
  band.rows = band.cols = any;
  if (is_complete) {
    band = diag_band(c.node(), diagonal, band_value(c, 1), band_value(c, 2), band_value(c, 3));
  }
  out.push_back(band.rows);
  out.push_back(band.cols);
  c.set_output(0, out);
}

template <class T>
BoundKernel prepare_diag(TypeTag<T>, const KernelRequest& r) {
  if (are_empty(r.outputs)) return {};
  const bool has = has_band(r.node.op);
  const Shape& diagonal = r.inputs[0].shape;
  const Band band =
      has ? diag_band(r.node, diagonal, r.inputs[1].value, r.inputs[2].value, r.inputs[3].value)
          : diag_band(r.node, diagonal, nullptr, nullptr, nullptr);
  const int64_t matrix = band.rows * band.cols, packed = band.count() * band.longest();
  const int64_t batches = batch_of(diagonal, band.count() > 1 ? 2 : 1).elements();
  return BoundKernel::of([=](const Arguments& a) {
    const T padding = has ? *a.input<T>(4) : T{};
    fill_in_pieces(a.output<T>(), batches * matrix, padding);
    for (int64_t b = 0; b < batches; ++b) {
      StepEnd::pace(packed);
      const T* from = a.input<T>(0) + b * packed;
      T* to = a.output<T>() + b * matrix;
      band.for_each([&](int64_t i, int64_t d) { to[i] = from[d]; });
    }
  });
}

// ---- MatrixSetDiag

void infer_set(ShapeContext& c) {
  const Shape input = c.with_rank_at_least(0, 2), diagonal = c.with_rank_at_least(1, 1);
  const bool known = !has_band(c.node().op) || c.value(2) != nullptr;
  if (input.has_rank() && known && is_complete_matrix(input)) {
    const Band band = band_in(c.node(), band_value(c, 2), input);
    const Shape expected = packed_shape(batch_of(input, 2), band);
    check(expected.is_compatible(diagonal), "diagonal must have shape ", expected, " for input ",
          input, ", got ", diagonal);
  }
  c.set_output(0, input);
}

template <class T>
BoundKernel prepare_set(TypeTag<T>, const KernelRequest& r) {
  if (are_empty(r.outputs)) return {};
  const Shape& input = r.inputs[0].shape;
  const Band band = band_in(r.node, has_band(r.node.op) ? r.inputs[2].value : nullptr, input);
  const int64_t matrix = band.rows * band.cols, packed = band.count() * band.longest();
  const int64_t batches = batch_of(input, 2).elements();
  return BoundKernel::of([=](const Arguments& a) {
           if (a.output<T>() != a.input<T>(0))
             copy_elements(a.input<T>(0), batches * matrix, a.output<T>());
           for (int64_t b = 0; b < batches; ++b) {
             StepEnd::pace(packed);
             const T* from = a.input<T>(1) + b * packed;
             T* to = a.output<T>() + b * matrix;
             band.for_each([&](int64_t i, int64_t d) { to[i] = from[d]; });
           }
         })
      .sharing(0, 0);
}

// ---- The ops: V1, V2, V3

Output zero_of(Output x) { return Operand(0).as(x); }

AttrMap same_align(Gradient& g) {
  return g.node().op->name.ends_with("V3") ? AttrMap{{"align", g.attr<std::string>("align")}}
                                           : AttrMap{};
}

std::string version(Gradient& g) {
  const std::string& name = g.node().op->name;
  return has_band(name) ? name.substr(name.size() - 2) : "";
}

Output part_of(Gradient& g, Output matrix, int k) {
  std::vector<Output> inputs = {matrix};
  if (has_band(g.node().op->name)) inputs = {matrix, g.x(k), zero_of(matrix)};
  return op("MatrixDiagPart" + version(g), inputs, same_align(g));
}

Output with_diagonal(Gradient& g, Output matrix, Output diagonal, int k) {
  std::vector<Output> inputs = {matrix, diagonal};
  if (has_band(g.node().op->name)) inputs.push_back(g.x(k));
  return op("MatrixSetDiag" + version(g), inputs, same_align(g));
}

std::vector<std::string> attrs_of(int version) {
  std::vector<std::string> attrs = {"T: type"};
  if (version == 3)
    attrs.push_back(
        "align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = 'RIGHT_LEFT'");
  return attrs;
}

std::string name_of(const std::string& name, int version) {
  return version == 1 ? name : name + "V" + std::to_string(version);
}

Tensor number(int32_t value) { return Tensor::scalar(value); }

OpDef part(int version) {
  OpDef op{
      .name = name_of("MatrixDiagPart", version),
      .doc = "diagonal[b…, i] = input[b…, i, i].",
      .inputs = {"input: T"},
      .outputs = {"diagonal: T"},
      .attrs = attrs_of(version),
      .shape = infer_part,
      .gradient = [](Gradient& g) { g.dx(0) = with_diagonal(g, zeros_like(g.x(0)), g.dy(), 1); },
      .kernels = {cpu_moving_kernel(
          "T", []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_part(t, r); })},
      .examples = {{.inputs = {floats({2, 2}, {1, 2, 3, 4})}, .outputs = {floats({1, 4})}}},
  };
  if (version > 1) {
    op.doc =
        "Diagonals k[0] to k[1] of input[b…, :, :], one in each row, the highest first; shorter "
        "diagonals are filled up with padding_value. One diagonal has no row.";
    op.inputs = {"input: T", "k: int32", "padding_value: T"};
    op.examples = {
        {.inputs = {floats({2, 3}, {1, 2, 3, 4, 5, 6}), ints({-1, 0}), Tensor::scalar(9.0f)},
         .outputs = {floats({2, 2}, {1, 5, 4, 9})}},
        {.inputs = {floats({2, 3}, {1, 2, 3, 4, 5, 6}), number(1), Tensor::scalar(9.0f)},
         .outputs = {floats({2, 6})}}};
    op.value_inputs = {1};
  }
  return op;
}

OpDef diag(int version) {
  OpDef op{
      .name = name_of("MatrixDiag", version),
      .doc = "output[b…, i, i] = diagonal[b…, i], 0 elsewhere.",
      .inputs = {"diagonal: T"},
      .outputs = {"output: T"},
      .attrs = attrs_of(version),
      .shape = infer_diag,
      .gradient = [](Gradient& g) { g.dx(0) = part_of(g, g.dy(), 1); },
      .kernels = {cpu_moving_kernel(
          "T", []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_diag(t, r); })},
      .examples = {{.inputs = {floats({1, 2})}, .outputs = {floats({2, 2}, {1, 0, 0, 2})}}},
  };
  if (version > 1) {
    op.doc =
        "Matrices with diagonals k[0] to k[1] from the rows of diagonal, padding_value elsewhere; "
        "where num_rows or num_cols is -1, it is as small as possible.";
    op.inputs = {"diagonal: T", "k: int32", "num_rows: int32", "num_cols: int32",
                 "padding_value: T"};
    op.examples = {
        {.inputs = {floats({1, 2}), number(1), number(-1), number(-1), Tensor::scalar(0.0f)},
         .outputs = {floats({3, 3}, {0, 1, 0, 0, 0, 2, 0, 0, 0})}}};
    op.value_inputs = {1, 2, 3};
  }
  return op;
}

OpDef set_diag(int version) {
  OpDef op{
      .name = name_of("MatrixSetDiag", version),
      .doc = "output = input with diagonal[b…, i] at [b…, i, i].",
      .inputs = {"input: T", "diagonal: T"},
      .outputs = {"output: T"},
      .attrs = attrs_of(version),
      .shape = infer_set,
      .gradient =
          [](Gradient& g) {
            g.dx(0) = with_diagonal(g, g.dy(), zeros_like(g.x(1)), 2);
            g.dx(1) = part_of(g, g.dy(), 2);
          },
      .kernels = {cpu_moving_kernel(
          "T", []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_set(t, r); })},
      .examples = {{.inputs = {floats({2, 2}, {1, 2, 3, 4}), floats({7, 8})},
                    .outputs = {floats({2, 2}, {7, 2, 3, 8})}}},
  };
  if (version > 1) {
    op.doc =
        "output = input with the rows of diagonal as diagonals k[0] to k[1], the highest "
        "first.";
    op.inputs.push_back("k: int32");
    for (Example& example : op.examples) example.inputs.push_back(number(0));
    op.value_inputs = {2};
  }
  return op;
}

const Op part_op(part(1)), part_v2_op(part(2)), part_v3_op(part(3));
const Op diag_op(diag(1)), diag_v2_op(diag(2)), diag_v3_op(diag(3));
const Op set_diag_op(set_diag(1)), set_diag_v2_op(set_diag(2)), set_diag_v3_op(set_diag(3));

}  // namespace
}  // namespace leat
