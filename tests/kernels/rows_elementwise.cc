#include "kernels/examples.h"
#include "tests/kernels/row_tables.h"

namespace leat {

std::vector<Row> elementwise_rows() {
  const Shape matrix = {3, 4};
  std::vector<Row> rows = {
      {.op = "Abs", .shapes = {matrix}, .avoid = {0}},
      {.op = "Relu", .shapes = {matrix}, .avoid = {0}},
      {.op = "ReluGrad", .shapes = {matrix, matrix}, .avoid = {0}, .no_gradient = {1}},
      {.op = "Log", .shapes = {matrix}, .low = 0.5},
      {.op = "Sqrt", .shapes = {matrix}, .low = 0.5},
      {.op = "SqrtGrad", .shapes = {matrix, matrix}, .low = 0.5},
      {.op = "Rsqrt", .shapes = {matrix}, .low = 0.5},
      {.op = "Reciprocal", .shapes = {matrix}, .low = 0.5},
      {.op = "Pow", .shapes = {matrix, matrix}, .low = 0.5},
      {.op = "Pow", .shapes = {{4}, {3, 1}}, .low = 0.5},
      {.op = "RealDiv", .shapes = {matrix, matrix}, .low = 0.5},
      {.op = "RealDiv", .shapes = {matrix, {}}, .low = 0.5},
      {.op = "Div", .shapes = {matrix, {4}}, .low = 1, .high = 5},
      {.op = "DivNoNan", .shapes = {{3, 1}, {4}}, .low = 0.5},
      {.op = "FloorMod", .shapes = {matrix, {4}}, .low = 0.5},
      {.op = "Tan", .shapes = {matrix}, .low = -1, .high = 1},
      {.op = "Asin", .shapes = {matrix}, .low = -0.9, .high = 0.9},
      {.op = "Acos", .shapes = {matrix}, .low = -0.9, .high = 0.9},
      {.op = "Acosh", .shapes = {matrix}, .low = 1.2, .high = 4},
      {.op = "Atanh", .shapes = {matrix}, .low = -0.9, .high = 0.9},
      {.op = "Atan2", .shapes = {{3, 1}, {4}}, .avoid = {0}},
      {.op = "Log1p", .shapes = {matrix}, .low = -0.5},
      {.op = "Lgamma", .shapes = {matrix}, .low = 0.5, .high = 5},
      {.op = "Digamma", .shapes = {matrix}, .low = 0.5, .high = 5},
      {.op = "Polygamma", .shapes = {{}, matrix}, .fixed = {{0, Tensor::scalar(2.0f)}}, .low = 0.5},
      {.op = "Zeta", .shapes = {matrix, {4}}, .low = 1.5, .high = 4, .no_gradient = {0}},
      {.op = "Igamma", .shapes = {{3, 1}, {4}}, .low = 0.5, .high = 5},
      {.op = "Igammac", .shapes = {matrix, {4}}, .low = 0.5, .high = 5},
      {.op = "DataFormatVecPermute", .shapes = {{4, 2}}},
      {.op = "Betainc",
       .shapes = {{}, {}, matrix},
       .fixed = {{0, Tensor::scalar(2.5F)}, {1, Tensor::scalar(0.75F)}},
       .low = 0.1,
       .high = 0.9},
      {.op = "Betainc",
       .shapes = {{3}, {3}, {}},
       .fixed = {{0, floats({2.5F, 1, 20})}, {1, floats({0.75F, 3, 30})}},
       .low = 0.3,
       .high = 0.6},
      {.op = "Erfinv", .shapes = {matrix}, .low = -0.9, .high = 0.9},
      {.op = "Ndtri", .shapes = {matrix}, .low = 0.05, .high = 0.95},
      {.op = "Expint", .shapes = {matrix}, .low = 0.5, .high = 5},
      {.op = "Spence", .shapes = {matrix}, .low = 0.2, .high = 5},
      {.op = "BesselK0", .shapes = {matrix}, .low = 0.5, .high = 3},
      {.op = "BesselK0e", .shapes = {matrix}, .low = 0.5, .high = 3},
      {.op = "BesselK1", .shapes = {matrix}, .low = 0.5, .high = 3},
      {.op = "BesselK1e", .shapes = {matrix}, .low = 0.5, .high = 3},
      {.op = "BesselY0", .shapes = {matrix}, .low = 0.5, .high = 5},
      {.op = "BesselY1", .shapes = {matrix}, .low = 0.5, .high = 5},
      {.op = "CumulativeLogsumexp", .shapes = {matrix, {}}, .fixed = {{1, Tensor::scalar(1)}}},
      {.op = "CumulativeLogsumexp",
       .shapes = {matrix, {}},
       .attrs = {{"reverse", true}},
       .fixed = {{1, Tensor::scalar(0)}}},
      {.op = "ClipByValue",
       .shapes = {matrix, {}, {}},
       .fixed = {{1, Tensor::scalar(1.0F)}, {2, Tensor::scalar(2.0F)}},
       .low = 0,
       .high = 3,
       .avoid = {1, 2}},
      {.op = "ClipByValue",
       .shapes = {matrix, matrix, {}},
       .fixed = {{2, Tensor::scalar(9.0F)}},
       .low = 0,
       .high = 5},
      {.op = "PopulationCount", .shapes = {matrix}, .low = 0, .high = 100},
      {.op = "ConjugateTranspose", .shapes = {matrix, {2}}, .fixed = {{1, ints({1, 0})}}},
      {.op = "TridiagonalSolve",
       .shapes = {{2, 3, 4}, {2, 4, 3}},
       .fixed = {{0, floats({2, 3, 4}, {1, 2, 1, 0, 4, 5, 6, 4, 0, 1, 2, 1,
                                        1, 1, 2, 0, 4, 4, 4, 4, 0, 1, 2, 1})}}},
      {.op = "TridiagonalMatMul", .shapes = {{1, 4}, {1, 4}, {1, 4}, {4, 3}}},
      {.op = "EncodePng", .shapes = {{4, 5, 3}}, .low = 0, .high = 200},
      {.op = "MulNoNan", .shapes = {{3, 1}, {4}}, .avoid = {0}},
      {.op = "Xdivy", .shapes = {{3, 1}, {4}}, .low = 0.5},
      {.op = "Xlogy", .shapes = {{3, 1}, {4}}, .low = 0.5},
      {.op = "Xlog1py", .shapes = {{3, 1}, {4}}, .low = 0.5},
      {.op = "Inv", .shapes = {matrix}, .low = 0.5},
      {.op = "TruncateDiv", .shapes = {matrix, {4}}, .low = 1, .high = 5},
      {.op = "TruncateMod", .shapes = {matrix, {4}}, .low = 1, .high = 5},
      {.op = "Mod", .shapes = {matrix, {4}}, .low = 1, .high = 5},
      {.op = "Softsign", .shapes = {matrix}, .avoid = {0}},
      {.op = "Round", .shapes = {matrix}, .avoid = {-1.5, -0.5, 0.5, 1.5}},
      {.op = "Select",
       .shapes = {matrix, matrix, matrix},
       .fixed = {{0, bools({true, false, true})}}},
      {.op = "SelectV2",
       .shapes = {{4}, {3, 1}, {4}},
       .fixed = {{0, bools({true, false, true, false})}}},
      {.op = "AddN", .shapes = {matrix, matrix, matrix}},
      {.op = "BroadcastTo", .shapes = {{3, 1}, {3}}, .fixed = {{1, ints({2, 3, 4})}}},
      {.op = "BroadcastArgs",
       .shapes = {{2}, {1}},
       .fixed = {{0, floats({3, 1})}, {1, floats({4})}}},
      {.op = "Cumsum", .shapes = {matrix, {}}, .fixed = {{1, Tensor::scalar(1)}}},
      {.op = "Cumsum",
       .shapes = {matrix, {}},
       .attrs = {{"exclusive", true}, {"reverse", true}},
       .fixed = {{1, Tensor::scalar(0)}}},
      {.op = "Cumprod", .shapes = {matrix, {}}, .fixed = {{1, Tensor::scalar(-1)}}, .low = 0.5},
      {.op = "FloorDiv", .shapes = {matrix, matrix}, .low = 1, .high = 5},
      {.op = "Cast", .shapes = {matrix}, .attrs = {{"DstT", f64}}},
      // ---- reductions ----
      {.op = "ArgMax", .shapes = {matrix, {}}, .fixed = {{1, Tensor::scalar(0)}}},
      {.op = "ArgMin", .shapes = {matrix, {}}, .fixed = {{1, Tensor::scalar(1)}}},
  };
  for (std::string op :
       {"AddV2", "Sub", "Mul", "Add", "Maximum", "Minimum", "SquaredDifference", "Equal", "Less"}) {
    rows.push_back({.op = op, .shapes = {matrix, matrix}});
    rows.push_back({.op = op, .shapes = {matrix, {4}}});
    rows.push_back({.op = op, .shapes = {{2, 3, 1}, {1, 4}}});
    rows.push_back({.op = op, .shapes = {{}, {2, 2}}});
    rows.push_back({.op = op, .shapes = {{5}, {1}}});
  }
  for (std::string op : {"Sum", "Mean", "Max", "Min", "Prod", "EuclideanNorm"}) {
    rows.push_back({.op = op, .shapes = {{2, 3, 4}, {1}}, .fixed = {{1, ints({1})}}});
    rows.push_back({.op = op, .shapes = {{2, 3, 4}, {2}}, .fixed = {{1, ints({-1, 0})}}});
    rows.push_back({.op = op, .shapes = {matrix, {1}}, .fixed = {{1, ints({0})}}});
    rows.push_back({.op = op, .shapes = {matrix, {2}}, .fixed = {{1, ints({0, 1})}}});
    rows.push_back({.op = op,
                    .shapes = {matrix, {1}},
                    .attrs = {{"keep_dims", true}},
                    .fixed = {{1, ints({1})}}});
    rows.push_back({.op = op, .shapes = {matrix, {0}}, .fixed = {{1, ints({})}}});
    if (op == "Prod") {
      for (Row& row : rows) row.low = row.op == op ? 0.5 : row.low;
    }
  }
  return rows;
}

}  // namespace leat
