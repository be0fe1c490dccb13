// Each kind of kernel at the extents where threads, warps, blocks and chunks end, against the
// CPU's.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "kernels/examples.h"
#include "tests/cuda/host_gpu.h"
#include "tests/kernels/agreement.h"
#include "tests/kernels/rows.h"

namespace leat {
namespace {

const std::vector<int64_t> extents = {1, 2, 31, 32, 33, 127, 256, 1023, 4097};
constexpr int64_t many = 70001;  // several chunks of a reduction

// A block that starts where no element type but bytes has its usual alignment to 16.
std::shared_ptr<Buffer> allocate_off_by_8(Device& device, size_t bytes) {
  const std::shared_ptr<Buffer> all = allocate_exactly(device, bytes + 8);
  return std::make_shared<Buffer>(
      static_cast<char*>(all->data()) + 8, bytes, [all](void*) {}, &device);
}

void expect_agreement(const Row& row, DType dtype, double tolerance = 0,
                      const RunChoices& choices = exactly()) {
  const std::vector<Tensor> inputs = inputs_of(row, dtype);
  std::string what = concat(row.op, " of ", dtype);
  for (const Tensor& input : inputs) what += concat(" ", input.shape());
  try {
    const std::vector<Tensor> expected = run_op(row.op, inputs, row.attrs);
    for (const uint64_t seed : {0, 77}) {
      set_order_of_threads(seed);
      const std::vector<Tensor> actual = run_op(row.op, inputs, row.attrs, host_gpu(), choices);
      ASSERT_EQ(actual.size(), expected.size());
      for (size_t i = 0; i < actual.size(); ++i)
        expect_equal(actual[i], expected[i], std::max(tolerance, tolerance_of(dtype)), what);
    }
  } catch (const Error& error) {
    ADD_FAILURE() << what << ": " << error.message();
  }
  set_order_of_threads(0);
}

class Extents : public testing::TestWithParam<int64_t> {
 protected:
  int64_t n = GetParam();
};
INSTANTIATE_TEST_SUITE_P(Ends, Extents, testing::ValuesIn(extents));

TEST_P(Extents, FlatElementwise) {
  for (const DType dtype : {f32, f64, DType::f16, DType::bf16}) {
    expect_agreement({.op = "Tanh", .shapes = {{n}}}, dtype);
    expect_agreement({.op = "Add", .shapes = {{n}, {n}}}, dtype);
    expect_agreement({.op = "Mul", .shapes = {{n}, {}}}, dtype);
    expect_agreement({.op = "Less", .shapes = {{n}, {n}}}, dtype);
  }
  for (const DType dtype : {DType::i8, DType::i16, i32, i64})
    expect_agreement({.op = "Sub", .shapes = {{n}, {n}}}, dtype);
}

TEST_P(Extents, ElementwiseWithoutAlignment) {
  const RunChoices off{false, allocate_off_by_8};
  expect_agreement({.op = "Add", .shapes = {{n}, {n}}}, f32, 0, off);
  expect_agreement({.op = "Relu", .shapes = {{n}}}, DType::bf16, 0, off);
  expect_agreement({.op = "Sum", .shapes = {{3, n}, {1}}, .fixed = {{1, ints({1})}}}, f32, 1e-4,
                   off);
  expect_agreement({.op = "MatMul", .shapes = {{2, n}, {n, 3}}}, f32, 1e-4, off);
}

TEST_P(Extents, BroadcastElementwise) {
  expect_agreement({.op = "Add", .shapes = {{n, 3}, {3}}}, f32);
  expect_agreement({.op = "Add", .shapes = {{n, 1}, {1, 5}}}, f32);
  expect_agreement({.op = "Mul", .shapes = {{2, n, 1}, {n, 3}}}, DType::f16);
  expect_agreement({.op = "BiasAdd", .shapes = {{2, n}, {n}}}, f32);
}

TEST_P(Extents, Folds) {
  for (const int count : {1, 2, 16, 17, 33}) {  // a launch takes 16
    expect_agreement(
        {.op = "AddN", .shapes = std::vector<Shape>(count, {n}), .attrs = {{"N", int64_t{count}}}},
        f32);
  }
}

TEST_P(Extents, Reductions) {
  for (const char* op : {"Sum", "Max", "Min", "Mean", "Prod"}) {
    for (const DType dtype : {f32, f64, DType::bf16, i32}) {
      if (std::string(op) == "Prod" && dtype == i32) continue;  // overflows
      const auto reduce = [&](Shape shape, Tensor axes) {
        expect_agreement({.op = op,
                          .shapes = {std::move(shape), axes.shape()},
                          .fixed = {{1, std::move(axes)}},
                          .low = 0.5,
                          .high = 1.5},
                         dtype, dtype == f64 ? 1e-10 : 1e-4);
      };
      reduce({3, n}, ints({1}));
      reduce({n, 3}, ints({0}));
      reduce({n, 3}, ints({1}));
      reduce({2, n, 3}, ints({1}));
      reduce({2, n, 3}, ints({0, 2}));
      reduce({n}, ints({0}));
    }
  }
}

TEST(LongReductions, ComeInChunks) {
  for (const char* op : {"Sum", "Max", "Mean"}) {
    for (const Shape& shape : {Shape{many}, Shape{1, many, 2}, Shape{3, many}}) {
      for (const int axis : {0, shape.rank() - 1}) {
        expect_agreement({.op = op, .shapes = {shape, {1}}, .fixed = {{1, ints({axis})}}}, f32,
                         1e-3);
      }
    }
  }
  expect_agreement({.op = "Sum", .shapes = {{1, many, 2}, {1}}, .fixed = {{1, ints({1})}}}, f32,
                   1e-3);
  expect_agreement({.op = "L2Loss", .shapes = {{many}}}, f32, 1e-3);
}

TEST_P(Extents, SoftmaxAndLosses) {
  for (const DType dtype : {f32, f64, DType::f16}) {
    for (const Shape& shape : {Shape{3, n}, Shape{n, 7}}) {
      expect_agreement({.op = "Softmax", .shapes = {shape}}, dtype);
      expect_agreement({.op = "LogSoftmax", .shapes = {shape}}, dtype);
      expect_agreement({.op = "SoftmaxCrossEntropyWithLogits", .shapes = {shape, shape}, .low = 0},
                       dtype, 1e-3);
      Tensor labels(i64, {shape[0]});
      for (int64_t i = 0; i < shape[0]; ++i) labels.data<int64_t>()[i] = i * 5 % shape[1];
      expect_agreement({.op = "SparseSoftmaxCrossEntropyWithLogits",
                        .shapes = {shape, labels.shape()},
                        .attrs = {{"Tlabels", i64}},
                        .fixed = {{1, labels}}},
                       dtype);
    }
  }
}

Tensor row_numbers(int64_t count, int64_t rows) {
  Tensor out(i32, {count});
  for (int64_t i = 0; i < count; ++i)
    out.data<int32_t>()[i] = static_cast<int32_t>((i * 7 + i / 3) % rows);
  return out;
}

TEST_P(Extents, Gathers) {
  for (const DType dtype : {f64, f32, DType::f16, DType::i8}) {
    const Tensor numbers = row_numbers(n, 5), few = row_numbers(9, n);
    expect_agreement({.op = "GatherV2",
                      .shapes = {{5, 3}, numbers.shape(), {}},
                      .fixed = {{1, numbers}, {2, Tensor::scalar<int32_t>(0)}}},
                     dtype);
    expect_agreement({.op = "GatherV2",
                      .shapes = {{2, n, 3}, few.shape(), {}},
                      .fixed = {{1, few}, {2, Tensor::scalar<int32_t>(1)}}},
                     dtype);
  }
}

TEST_P(Extents, DenseUpdates) {
  for (const DType dtype : {f32, f64, DType::bf16}) {
    expect_agreement({.op = "ApplyGradientDescent", .shapes = {{n}, {}, {n}}}, dtype);
    expect_agreement({.op = "ApplyMomentum", .shapes = {{n}, {n}, {}, {n}, {}}}, dtype);
    expect_agreement({.op = "ApplyAdagrad", .shapes = {{n}, {n}, {}, {n}}, .low = 0.5}, dtype);
    expect_agreement({.op = "ApplyAdam",
                      .shapes = {{n}, {n}, {n}, {}, {}, {}, {}, {}, {}, {n}},
                      .low = 0.1,
                      .high = 0.9},
                     dtype, 1e-4);
    expect_agreement({.op = "AssignAdd", .shapes = {{n}, {n}}}, dtype);
  }
}

TEST_P(Extents, UpdatesOfRows) {
  // With repeated rows; n rows of 3, and few rows of n.
  const Tensor numbers = row_numbers(n, std::max<int64_t>(1, n / 2)), few = row_numbers(9, 4);
  const auto update = [&](const Shape& var, const Tensor& at, DType dtype) {
    const Shape gradient = {at.shape()[0], var[1]};
    expect_agreement({.op = "SparseApplyMomentum",
                      .shapes = {var, var, {}, gradient, at.shape(), {}},
                      .fixed = {{4, at}}},
                     dtype, 1e-4);
    expect_agreement({.op = "SparseApplyAdagrad",
                      .shapes = {var, var, {}, gradient, at.shape()},
                      .fixed = {{4, at}},
                      .low = 0.5},
                     dtype, 1e-4);
  };
  for (const DType dtype : {f32, f64}) {
    update({n, 3}, numbers, dtype);
    update({4, n}, few, dtype);
  }
}

TEST_P(Extents, Bincounts) {
  const auto count = [&](const Tensor& numbers, int64_t size, DType dtype) {
    for (const Shape& weights : {Shape{0}, numbers.shape()}) {
      expect_agreement({.op = "Bincount",
                        .shapes = {numbers.shape(), {}, weights},
                        .fixed = {{0, numbers}, {1, Tensor::scalar(static_cast<int32_t>(size))}}},
                       dtype);
    }
  };
  for (const DType dtype : {f32, f64, i32, i64}) {
    count(row_numbers(n, 5), 4, dtype);
    count(row_numbers(9, n), n, dtype);
  }
  Tensor rows(i64, {n, 3});
  for (int64_t i = 0; i < rows.elements(); ++i) rows.data<int64_t>()[i] = i * 5 % 7;
  expect_agreement({.op = "DenseBincount",
                    .shapes = {rows.shape(), {}, rows.shape()},
                    .fixed = {{0, rows}, {1, Tensor::scalar<int64_t>(6)}}},
                   f32);
}

TEST_P(Extents, SparseMatrices) {
  Tensor places(i64, {n, 2});
  for (int64_t i = 0; i < n; ++i) {
    places.data<int64_t>()[2 * i] = i * 3 % 7;
    places.data<int64_t>()[2 * i + 1] = i * 2 % 5;
  }
  for (const DType dtype : {f32, DType::bf16, i32}) {
    for (const int64_t columns : {int64_t{1}, int64_t{33}}) {
      expect_agreement({.op = "SparseTensorDenseMatMul",
                        .shapes = {places.shape(), {n}, {2}, {5, columns}},
                        .fixed = {{0, places}, {2, longs({7, 5})}}},
                       dtype, 1e-3);
    }
    expect_agreement({.op = "SparseTensorDenseAdd",
                      .shapes = {places.shape(), {n}, {2}, {7, 5}},
                      .fixed = {{0, places}, {2, longs({7, 5})}}},
                     dtype, 1e-3);
    expect_agreement({.op = "SparseToDense",
                      .shapes = {places.shape(), {2}, {n}, {}},
                      .attrs = {{"validate_indices", false}},
                      .fixed = {{0, places}, {1, longs({7, 5})}}},
                     dtype);
  }
}

TEST_P(Extents, Colours) {
  for (const DType dtype : {f32, DType::f16}) {
    expect_agreement({.op = "RGBToHSV", .shapes = {{n, 3}}, .low = 0.1, .high = 1}, dtype);
    expect_agreement({.op = "AdjustHue",
                      .shapes = {{1, n, 3}, {}},
                      .fixed = {{1, Tensor::scalar(0.3F)}},
                      .low = 0.1,
                      .high = 1},
                     dtype, 1e-4);
    for (const Shape& shape : {Shape{2, 3, n, 3}, Shape{n, 2, 2, 1}, Shape{2, 3, n}})
      expect_agreement(
          {.op = "AdjustContrastv2", .shapes = {shape, {}}, .fixed = {{1, Tensor::scalar(1.5F)}}},
          dtype);
  }
}

TEST(Contrast, OfLargeImagesIsAddedUpInParts) {
  expect_agreement({.op = "AdjustContrastv2",
                    .shapes = {{1, 300, 310, 3}, {}},
                    .fixed = {{1, Tensor::scalar(1.5F)}},
                    .low = 0},
                   f32);
}

TEST_P(Extents, Crops) {
  const Tensor boxes = floats({3, 4}, {0.1F, 0.2F, 0.8F, 1.1F, 0, 0, 1, 1, 0.9F, 0.7F, 0.2F, 0.1F});
  const Tensor images = ints({1, 0, 1});
  const auto crop = [&](int32_t rows, int32_t columns, int64_t channels) {
    const Shape image = {2, 4, 5, channels}, crops = {3, rows, columns, channels};
    for (const char* method : {"bilinear", "nearest"}) {
      expect_agreement({.op = "CropAndResize",
                        .shapes = {image, {3, 4}, {3}, {2}},
                        .attrs = {{"method", method}},
                        .fixed = {{1, boxes}, {2, images}, {3, ints({rows, columns})}}},
                       f32);
      expect_agreement({.op = "CropAndResizeGradImage",
                        .shapes = {crops, {3, 4}, {3}, {4}},
                        .attrs = {{"method", method}, {"T", f32}},
                        .fixed = {{1, boxes},
                                  {2, images},
                                  {3, ints({2, 4, 5, static_cast<int32_t>(channels)})}}},
                       f32, 1e-4);
    }
    expect_agreement({.op = "CropAndResizeGradBoxes",
                      .shapes = {crops, image, {3, 4}, {3}},
                      .fixed = {{2, boxes}, {3, images}}},
                     f32, 1e-3);
  };
  crop(2, static_cast<int32_t>(n), 2);
  crop(3, 2, n);
}

TEST_P(Extents, Bounds) {
  Tensor sorted(f32, {2, n});
  for (int64_t i = 0; i < 2 * n; ++i) sorted.data<float>()[i] = static_cast<float>(i % n / 3);
  for (const char* op : {"LowerBound", "UpperBound"}) {
    for (const DType dtype : {f32, i64}) {
      expect_agreement({.op = op,
                        .shapes = {sorted.shape(), {2, 9}},
                        .fixed = {{0, sorted}},
                        .low = -1,
                        .high = static_cast<double>(n)},
                       dtype);
      expect_agreement({.op = op,
                        .shapes = {{2, 3}, {2, n}},
                        .fixed = {{0, floats({2, 3}, {-1, 0, 1, 0, 0, 2})}}},
                       dtype);
    }
  }
}

TEST_P(Extents, NthElements) {
  std::vector<double> values(3 * n);
  for (int64_t i = 0; i < 3 * n; ++i) values[i] = static_cast<double>(i * 37 % 101) - 50;
  const Tensor entries = from_doubles(f64, {3, n}, values);
  std::vector<double> with_nan = values;
  with_nan[n / 2] = with_nan[2 * n] = std::numeric_limits<double>::quiet_NaN();
  with_nan[0] = -std::numeric_limits<double>::infinity();
  for (const DType dtype : {f32, f64, DType::f16, DType::bf16, DType::i8, DType::i16, i32, i64,
                            DType::u8, DType::u16, DType::u32, DType::u64}) {
    for (const int64_t place : {int64_t{0}, n / 3, n - 1}) {
      for (const bool reverse : {false, true}) {
        const Tensor wanted = Tensor::scalar(static_cast<int32_t>(place));
        expect_agreement({.op = "NthElement",
                          .shapes = {{3, n}, {}},
                          .attrs = {{"reverse", reverse}},
                          .fixed = {{1, wanted}},
                          .low = -100,
                          .high = 100},
                         dtype);
        for (const auto& given : {values, with_nan}) {
          if (!is_floating(dtype)) continue;
          expect_agreement({.op = "NthElement",
                            .shapes = {{3, n}, {}},
                            .attrs = {{"reverse", reverse}},
                            .fixed = {{0, from_doubles(dtype, {3, n}, given)}, {1, wanted}}},
                           dtype);
        }
      }
    }
  }
}

TEST_P(Extents, Buckets) {
  std::vector<float> boundaries(n);
  for (int64_t i = 0; i < n; ++i) boundaries[i] = static_cast<float>(i / 2);
  for (const DType dtype : {f32, f64, i32, i64}) {
    for (const Shape& shape : {Shape{9}, Shape{n}}) {
      expect_agreement({.op = "Bucketize",
                        .shapes = {shape},
                        .attrs = {{"boundaries", boundaries}},
                        .low = -2,
                        .high = static_cast<double>(n) / 2 + 2},
                       dtype);
    }
  }
  const Tensor odd =
      floats({std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
              -std::numeric_limits<float>::infinity(), 0});
  expect_agreement({.op = "Bucketize",
                    .shapes = {{4}},
                    .attrs = {{"boundaries", boundaries}},
                    .fixed = {{0, odd}}},
                   f32);
  expect_agreement(
      {.op = "Bucketize", .shapes = {{4}}, .attrs = {{"boundaries", std::vector<float>{}}}}, f32);
}

TEST_P(Extents, BatchesOfProductsWithThreeTypes) {
  for (const DType dtype : {f32, f64, DType::f16, DType::bf16}) {
    expect_agreement({.op = "BatchMatMulV3",
                      .shapes = {{2, 3, n}, {1, n, 5}},
                      .attrs = {{"Tout", dtype}},
                      .low = 0,
                      .high = 1},
                     dtype, 1e-4);
  }
}

TEST_P(Extents, CopiesOfAllBytes) {
  for (const DType dtype : {f32, i64, DType::f16, DType::u8, boolean, DType::complex128})
    expect_agreement({.op = "DeepCopy", .shapes = {{n, 3}}}, dtype);
  for (const DType type : {i32, i64, DType::u8})
    expect_agreement({.op = "Bitcast", .shapes = {{n, 2}}, .attrs = {{"type", type}}}, f32);
}

TEST_P(Extents, FakeQuantisation) {
  const Tensor low = Tensor::scalar(-1.3F), high = Tensor::scalar(0.9F),
               zero = Tensor::scalar(0.0F);
  const auto run = [&](const char* op, std::vector<Shape> shapes,
                       const std::map<int, Tensor>& fixed) {
    for (const bool is_narrow : {false, true}) {
      for (const int bits : {2, 8}) {
        expect_agreement({.op = op,
                          .shapes = shapes,
                          .attrs = {{"num_bits", bits}, {"narrow_range", is_narrow}},
                          .fixed = fixed},
                         f32);
      }
    }
  };
  for (const Shape& shape : {Shape{n}, Shape{n, 3}}) {
    run("FakeQuantWithMinMaxArgs", {shape}, {});
    run("FakeQuantWithMinMaxArgsGradient", {shape, shape}, {});
    for (const auto& [min, max] : {std::pair{low, high}, {zero, zero}}) {
      run("FakeQuantWithMinMaxVars", {shape, {}, {}}, {{1, min}, {2, max}});
      run("FakeQuantWithMinMaxVarsGradient", {shape, shape, {}, {}}, {{2, min}, {3, max}});
    }
  }
  for (const Shape& shape : {Shape{n, 3}, Shape{2, 2, n}}) {
    const int64_t channels = shape[shape.rank() - 1];
    std::vector<double> mins(channels), maxs(channels);
    for (int64_t c = 0; c < channels; ++c) {
      mins[c] = -0.1 * static_cast<double>(c % 9);
      maxs[c] = 0.3 + 0.1 * static_cast<double>(c % 5);
    }
    const Tensor min = from_doubles(f32, {channels}, mins),
                 max = from_doubles(f32, {channels}, maxs);
    run("FakeQuantWithMinMaxVarsPerChannel", {shape, {channels}, {channels}}, {{1, min}, {2, max}});
    run("FakeQuantWithMinMaxVarsPerChannelGradient", {shape, shape, {channels}, {channels}},
        {{2, min}, {3, max}});
  }
}

TEST_P(Extents, QuantisationByScale) {
  const auto run = [&](const char* op, const Shape& shape, int64_t axis, bool has_range,
                       AttrMap attrs, DType dtype) {
    const Shape of_range = axis < 0 ? Shape{} : Shape{shape[static_cast<int>(axis)]};
    const std::vector<double> ones(of_range.elements(), 1), below(of_range.elements(), -0.7);
    Row row{
        .op = op,
        .shapes = {shape, of_range, of_range},
        .attrs = std::move(attrs),
        .fixed = {{1, from_doubles(f32, of_range, below)}, {2, from_doubles(f32, of_range, ones)}}};
    row.attrs["axis"] = axis;
    row.attrs["range_given"] = has_range;
    if (std::string_view(op) == "QuantizeAndDequantizeV3") {
      row.shapes.push_back({});
      row.fixed[3] = Tensor::scalar<int32_t>(5);
    } else {
      row.attrs["num_bits"] = 5;
    }
    expect_agreement(row, dtype);
  };
  for (const DType dtype : {f32, f64, DType::f16, DType::bf16}) {
    for (const bool has_range : {false, true}) {
      for (const auto& [shape, axis] : {std::pair{Shape{n}, -1},
                                        {Shape{2, n, 3}, 1},
                                        {Shape{n, 3}, 1},
                                        {Shape{3, n}, 0},
                                        {Shape{n, 2}, -1}}) {
        run("QuantizeAndDequantizeV2", shape, axis, has_range, {{"round_mode", "HALF_UP"}}, dtype);
        run("QuantizeAndDequantizeV2", shape, axis, has_range, {{"signed_input", false}}, dtype);
        run("QuantizeAndDequantizeV3", shape, axis, has_range, {{"narrow_range", true}}, dtype);
        run("QuantizeAndDequantizeV4", shape, axis, has_range, {}, dtype);
      }
    }
    const Tensor low = from_doubles(f32, {3}, {-1, -0.5, 0}),
                 high = from_doubles(f32, {3}, {1, 0.5, 1});
    expect_agreement({.op = "QuantizeAndDequantizeV4Grad",
                      .shapes = {{n, 3}, {n, 3}, {3}, {3}},
                      .attrs = {{"axis", 1}},
                      .fixed = {{2, low}, {3, high}}},
                     dtype);
  }
}

// A GPU cannot report numbers that name nothing: they change nothing, and no memory beyond the
// tensors is touched.
TEST(NumbersOutOfRange, AreLeftOut) {
  const auto expect = [](const char* op, const std::vector<Tensor>& inputs, const AttrMap& attrs,
                         const Tensor& expected) {
    expect_equal(run_op(op, inputs, attrs, host_gpu(), exactly())[0], expected, 0, op);
  };
  expect("Bincount", {ints({-1, 2, 1, -70000}), Tensor::scalar(3), ints({})}, {}, ints({0, 1, 1}));
  expect("Bincount", {ints({-1, 2, 5}), Tensor::scalar(3), floats({1, 2, 3})}, {},
         floats({0, 0, 2}));
  expect("SparseToDense",
         {ints({3, 2}, {0, 2, 1, 0, -1, 1}), ints({2, 2}), floats({5, 6, 7}), Tensor::scalar(1.0F)},
         {}, floats({2, 2}, {1, 1, 6, 1}));
  expect("SparseTensorDenseAdd",
         {longs({3, 2}, {0, 2, 1, 0, -1, 1}), floats({5, 6, 7}), longs({2, 2}),
          floats({2, 2}, {1, 1, 1, 1})},
         {}, floats({2, 2}, {1, 1, 7, 1}));
  expect("SparseTensorDenseMatMul",
         {longs({3, 2}, {0, 2, 1, 0, -1, 1}), floats({5, 6, 7}), longs({2, 2}),
          floats({2, 1}, {1, 2})},
         {}, floats({2, 1}, {0, 6}));
  const Tensor image = floats({1, 2, 1, 1}, {1, 2}),
               boxes = floats({2, 4}, {0, 0, 1, 0, 0, 0, 1, 0});
  for (const int32_t wrong : {-1, 1}) {
    expect("CropAndResize", {image, boxes, ints({wrong, 0}), ints({2, 1})},
           {{"extrapolation_value", 9.0F}}, floats({2, 2, 1, 1}, {9, 9, 1, 2}));
    const Tensor dy = floats({2, 2, 1, 1}, {5, 6, 7, 8});
    expect("CropAndResizeGradImage", {dy, boxes, ints({wrong, 0}), ints({1, 2, 1, 1})},
           {{"T", f32}}, floats({1, 2, 1, 1}, {7, 8}));
    expect("CropAndResizeGradBoxes", {dy, image, boxes, ints({wrong, 0})}, {},
           run_op("CropAndResizeGradBoxes",
                  {floats({2, 2, 1, 1}, {0, 0, 7, 8}), image, boxes, ints({0, 0})})[0]);
  }
}

TEST_P(Extents, Products) {
  for (const DType dtype : {f32, f64, DType::f16, DType::bf16}) {
    for (const bool a : {false, true}) {
      for (const bool b : {false, true}) {
        expect_agreement({.op = "MatMul",
                          .shapes = {a ? Shape{n, 3} : Shape{3, n}, b ? Shape{5, n} : Shape{n, 5}},
                          .attrs = {{"transpose_a", a}, {"transpose_b", b}}},
                         dtype, 1e-3);
        expect_agreement(
            {.op = "BatchMatMulV2",
             .shapes = {a ? Shape{4, 2, 3} : Shape{4, 3, 2}, b ? Shape{4, n, 2} : Shape{4, 2, n}},
             .attrs = {{"adj_x", a}, {"adj_y", b}}},
            dtype, 1e-3);
      }
    }
  }
}

TEST(BatchMatMul, BroadcastsLeadingAxes) {
  const std::vector<std::pair<Shape, Shape>> batches = {{{}, {}},
                                                        {{5}, {}},
                                                        {{}, {5}},
                                                        {{1}, {5}},
                                                        {{4, 1}, {1, 3}},
                                                        {{4, 1}, {3}},
                                                        {{2, 1, 3}, {4, 1}},
                                                        {{2, 3}, {2, 3}},
                                                        {{2, 3}, {1, 3}},
                                                        {{3, 1, 2}, {1, 4, 1}}};
  for (const auto& [x, y] : batches) {
    Shape a = x, b = y;
    for (const int64_t extent : {2, 3}) a.push_back(extent);
    for (const int64_t extent : {3, 4}) b.push_back(extent);
    for (const DType dtype : {f32, DType::bf16})
      expect_agreement({.op = "BatchMatMulV2", .shapes = {a, b}}, dtype, 1e-3);
  }
  expect_agreement({.op = "BatchMatMul", .shapes = {{3, 2, 3}, {3, 3, 4}}}, f32);
}

TEST(Products, OfNothingAreZero) {
  expect_agreement({.op = "MatMul", .shapes = {{3, 0}, {0, 5}}}, f32);
  expect_agreement({.op = "BatchMatMulV2", .shapes = {{2, 3, 0}, {2, 0, 5}}}, f32);
  expect_agreement({.op = "BatchMatMulV2", .shapes = {{0, 3, 2}, {0, 2, 5}}}, f32);
}

}  // namespace
}  // namespace leat
