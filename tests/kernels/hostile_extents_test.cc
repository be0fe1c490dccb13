// Extents, indices and counts at the ends of their types. A client's feeds must neither lead a
// kernel out of its memory nor keep a thread busy for years.
#include <gtest/gtest.h>

#include <limits>
#include <span>
#include <string>
#include <vector>

#include "graph/ops.h"
#include "graph/ops/raw.h"
#include "graph/shape_inference.h"
#include "kernels/control/tensor_array.h"
#include "kernels/examples.h"
#include "tests/support/expect_error.h"
#include "tests/support/run_op.h"

namespace leat {
namespace {

constexpr int64_t most = std::numeric_limits<int64_t>::max(), vast = int64_t{1} << 62;
constexpr int32_t most32 = std::numeric_limits<int32_t>::max();
using Steps = std::vector<int64_t>;

struct Call {
  std::string op;
  std::vector<Tensor> inputs;
  AttrMap attrs = {};
  Code code = Code::invalid_argument;
};

// A tensor without elements, whatever its extents.
Tensor nothing(const Shape& shape, DType dtype = f32) { return Tensor(dtype, shape); }

Tensor many(int64_t number) {
  return Tensor::of<int64_t>({100}, std::span<const int64_t>(Steps(100, number)));
}

AttrMap steps(const Steps& ksizes, const char* padding) {
  const Steps ones = {1, 1, 1, 1};
  return {{"ksizes", ksizes}, {"strides", ones}, {"rates", ones}, {"padding", padding}};
}

// {"x": [1, 2]} as a tf.train.Example
std::string two_floats() {
  return std::string("\x0a\x13\x0a\x11\x0a\x01x\x12\x0c\x12\x0a\x0a\x08\0\0\x80\x3f\0\0\0\x40", 21);
}

Call parse_example(int64_t num_sparse, const Shape& dense_shape, Tensor defaults) {
  return {"ParseExampleV2",
          {Tensor::scalar(two_floats()), Tensor(DType::string, {0}), Tensor(DType::string, {0}),
           texts({"x"}), Tensor(DType::string, {0}), std::move(defaults)},
          {{"num_sparse", num_sparse},
           {"sparse_types", std::vector<DType>{}},
           {"ragged_value_types", std::vector<DType>{}},
           {"ragged_split_types", std::vector<DType>{}},
           {"dense_shapes", std::vector<Shape>{dense_shape}}}};
}

// Two values, padded.
Call padded(const Steps& shape, const std::string& kind, std::vector<Tensor> partitions) {
  const bool has_size = kind == "VALUE_ROWIDS";
  Call out = {"RaggedTensorToTensor",
              {Tensor::of<int64_t>({2}, std::span<const int64_t>(shape)), floats({1, 2}),
               Tensor::scalar(0.0F)},
              {{"row_partition_types", has_size ? std::vector<std::string>{"FIRST_DIM_SIZE", kind}
                                                : std::vector<std::string>{kind}}}};
  for (Tensor& partition : partitions) out.inputs.push_back(std::move(partition));
  return out;
}

TEST(HostileExtents, AreRejected) {
  const Tensor zero = Tensor::scalar<int32_t>(0), one = Tensor::scalar<int32_t>(1);
  const std::vector<Call> calls = {
      {"Reshape", {floats({1, 2}), longs({int64_t{1} << 32, int64_t{1} << 32, -1})}},
      {"Pad", {floats({1}), longs({1, 2}, {most, 2})}},
      {"Pad", {floats({1}), longs({1, 2}, {most, most})}},
      {"PadV2", {floats({1}), ints({1, 2}, {1, 1}), floats({})}},
      {"MirrorPad",
       {nothing({vast, 0}), longs({2, 2}, {vast, vast, 0, 0})},
       {{"mode", "SYMMETRIC"}}},
      {"Tile", {floats({1, 2}), longs({vast})}},
      {"Tile", {floats({1, 2, 3, 4}), longs({vast})}},
      {"ExtractImagePatches",
       {floats({1, 1, 1, 4}, {1, 2, 3, 4})},
       steps({1, most32, most32, 1}, "SAME")},
      {"StridedSlice", {floats({1}), many(0), many(0), many(1)}},
      {"SpaceToBatchND", {floats({1, 1, 1}, {1}), ints({3}), longs({1, 2}, {most, 1})}},
      {"Range",
       {Tensor::scalar<uint64_t>(0), Tensor::scalar<uint64_t>(~uint64_t{0}),
        Tensor::scalar<uint64_t>(1)}},
      {"Range", {Tensor::scalar<int64_t>(-most), Tensor::scalar(most), Tensor::scalar<int64_t>(1)}},
      {"Range", {Tensor::scalar(0.0), Tensor::scalar(1e30), Tensor::scalar(1.0)}},
      {"GatherV2",
       {floats({2, 1}, {1, 2}), ints({2, 1}, {0, 0}), one},
       {{"batch_dims", int64_t{1} << 32}}},
      {"ResourceGather",
       {floats({2, 1}, {1, 2}), ints({1, 1}, {0})},
       {{"batch_dims", 1}, {"dtype", f32}}},
      {"ResourceGatherNd", {floats({1, 2}), longs({1, 1}, {most})}, {{"dtype", f32}}},
      {"ResourceGatherNd", {floats({1, 2}), longs({1, 1}, {0})}, {{"dtype", f64}}},
      {"StridedSliceAssign", {floats({1}), many(0), many(0), many(1), floats({1})}},
      {"StridedSliceAssign",
       {floats({1, 2}), longs({-most}), longs({most}), longs({most}), floats({1, 2})}},
      {"ResourceStridedSliceAssign",
       {floats({1}), ints({0}), ints({1}), ints({1}), nothing({vast, 0})}},
      {"ScatterNdAdd", {floats({1, 2}), longs({1, 1}, {most}), floats({1})}},
      {"ScatterNdUpdate", {floats({1, 2}), longs({1, 1}, {-most}), floats({1})}},
      {"ResourceScatterNdMax", {floats({1, 2}), nothing({vast, 0}, i32), nothing({vast, 2, 0})}},
      {"ScatterMul", {floats({1, 2}), longs({most}), floats({1})}},
      {"ScatterDiv", {ints({7}), ints({0}), ints({0})}},
      {"SegmentSum", {floats({1}), longs({most})}},
      {"SparseSegmentSumWithNumSegments", {floats({1}), ints({0}), longs({most}), one}},
      {"UnsortedSegmentSum", {floats({1}), ints({0}), Tensor::scalar<int32_t>(-1)}},
      {"ConcatV2", {nothing({vast, 0}), nothing({vast, 0}), zero}},
      {"SplitV",
       {floats({1, 2, 3, 4, 5}), longs({vast, vast, vast, vast, 5}), zero},
       {{"num_split", 5}}},
      {"ConcatOffset", {zero, longs({most}), longs({most}), longs({most})}},
      {"Mfcc",
       {floats({1, 1, 5}, {9, 0, 4, 0, 9}), Tensor::scalar<int32_t>(8)},
       {{"dct_coefficient_count", 1 << 16}, {"filterbank_channel_count", int64_t{1} << 48}}},
      {"MatrixDiagPartV2", {floats({1, 1}, {1}), one, floats({})}},
      {"MatrixDiagV2", {floats({1}), zero, one, one, floats({})}},
      parse_example(0, {any, 0}, floats({7})),
      parse_example(3, {2}, floats({})),
      {"Conv2D",
       {floats({1, 1, 3, 1}, {1, 2, 3}), floats({1, 3, 1, 1}, {1, 2, 3})},
       {{"strides", Steps{1, 1, 1, 1}}, {"dilations", Steps{1, 1, most32, 1}}, {"padding", "SAME"}},
       Code::unimplemented},
      {"FixedUnigramCandidateSampler",
       {longs({1, 1}, {0})},
       {{"num_true", 1},
        {"num_sampled", 1},
        {"unique", false},
        {"range_max", 3},
        {"num_reserved_ids", vast},
        {"num_shards", vast},
        {"unigrams", std::vector<float>{1}}}},
      {"RaggedRange", {longs({0, 0}), longs({most, most}), longs({1, 1})}},
      {"RaggedRange", {longs({-most}), longs({most}), longs({1})}},
      {"RaggedGather",
       {longs({0, 3}), longs({0, 1, 2}), floats({1, 2}), longs({0})},
       {{"OUTPUT_RAGGED_RANK", 2}}},
      {"RaggedGather",
       {longs({0, 2}), floats({1, 2}), nothing({4, vast, 0}, i64)},
       {{"OUTPUT_RAGGED_RANK", 3}}},
      {"RaggedGather", {longs({0, 2}), floats({1, 2}), longs({0})}, {{"OUTPUT_RAGGED_RANK", 2}}},
      {"RaggedTensorToSparse", {longs({0, vast}), longs({0, 2}), floats({1, 2})}},
      padded({any, any}, "ROW_SPLITS", {longs({-most, most})}),
      padded({2, 2}, "ROW_SPLITS", {longs({0, most, -most, 2})}),
      padded({2, 2}, "ROW_SPLITS", {longs({0, 3})}),  // beyond the values
      padded({vast, 8}, "ROW_SPLITS", {longs({0, 2})}),
      padded({2, any}, "VALUE_ROWIDS", {Tensor::scalar<int64_t>(2), longs({0, 1, 1})}),
      padded({2, any}, "VALUE_ROWIDS", {Tensor::scalar<int64_t>(2), longs({0, -most})}),
      padded({2, any}, "ROW_LENGTHS", {longs({0, 2})}),
      {"UnicodeEncode", {ints({65, 66}), longs({0, vast})}, {{"output_encoding", "UTF-8"}}},
      {"UnicodeDecode", {texts({"a"})}, {{"input_encoding", "EBCDIC"}}},
      {"SparseToDense",
       {nothing({vast, 0}, i32), ints({}), Tensor::scalar(1.0f), Tensor::scalar(0.0f)},
       {{"validate_indices", false}}},
      {"RandomIndexShuffle",
       {Tensor::scalar<int64_t>(1), longs({1, 2, 3}), Tensor::scalar<int64_t>(5)},
       {{"rounds", vast}}},
      {"StatelessRandomGammaV2", {longs({vast, 4}), longs({1, 2}), Tensor::scalar(1.0f)}},
      {"SparseSoftmax", {longs({1, 2}, {0, 0}), floats({1}), longs({vast, vast})}},
      {"DecodePaddedRaw",
       {nothing({vast, 0}, DType::string), Tensor::scalar<int32_t>(-4)},
       {{"out_type", DType::u8}}},
  };
  for (const Call& call : calls) {
    const Status status = error_of([&] { run_op(call.op, call.inputs, call.attrs); });
    EXPECT_EQ(code_name(status.code), code_name(call.code)) << call.op << ": " << status.message;
  }
}

TEST(HostileExtents, AreRejectedIfMemoryIsTooSmall) {
  const Tensor row(f32, {1, 1 << 20});
  for (const Call& call : std::vector<Call>{
           {"DynamicStitch", {ints({most32}), row}},
           {"ParallelDynamicStitch", {ints({most32}), row}},
           {"RaggedRange", {longs({0}), longs({vast}), longs({1})}},
           {"RaggedGather",
            {longs({0, 2}), floats({1, 2}), nothing({vast, 1, 0}, i64)},
            {{"OUTPUT_RAGGED_RANK", 3}}},
           {"RaggedFillEmptyRows",
            {longs({}), floats({}), Tensor::scalar(vast), Tensor::scalar(1.0f)}},
           padded({2, 2}, "ROW_SPLITS", {longs({0, vast})}),
           padded({any, any}, "ROW_SPLITS", {longs({0, vast})}),
           padded({2, 2}, "VALUE_ROWIDS", {Tensor::scalar(vast), longs({0, 1})}),
           {"Mfcc",
            {floats({1, 1, 5}, {9, 0, 4, 0, 9}), Tensor::scalar<int32_t>(8)},
            {{"dct_coefficient_count", 1 << 16},
             {"filterbank_channel_count", int64_t{1} << 40},
             {"upper_frequency_limit", 3.5F},
             {"lower_frequency_limit", 0.0F}}},
       }) {
    const Status status = error_of([&] { run_op(call.op, call.inputs, call.attrs); });
    EXPECT_EQ(code_name(status.code), "RESOURCE_EXHAUSTED") << call.op << ": " << status.message;
  }
}

TEST(HostileExtents, OfEmptyTensorsReturnAtOnce) {
  const Tensor scalar = Tensor::scalar<int32_t>(0);
  const std::vector<Call> calls = {
      {"BiasAdd", {nothing({vast, 0}), floats({})}},
      {"BiasAddGrad", {nothing({vast, 3, 0})}, {{"data_format", "NCHW"}}},
      {"UniqueV2", {nothing({vast, 0}), longs({1})}},
      {"OneHot",
       {nothing({vast, 0}, i64), Tensor::scalar<int32_t>(3), Tensor::scalar(1.0f),
        Tensor::scalar(0.0f)}},
      {"ReduceJoin", {nothing({0, vast}, DType::string), ints({0, 1})}},
      {"ScatterNd", {nothing({vast, 0}, i32), nothing({vast, 0}), ints({0})}},
      {"TensorScatterUpdate", {floats({}), nothing({vast, 0}, i32), nothing({vast, 0})}},
      {"Qr", {nothing({vast, 0, 0})}},
      {"MatrixDiagPart", {nothing({vast, 0, 5})}},
      {"MatrixSetDiag", {nothing({vast, 0, 5}), nothing({vast, 0})}},
      {"DrawBoundingBoxes", {nothing({vast, 0, 1, 1}), nothing({vast, 0, 4})}},
      {"GRUBlockCell",
       {nothing({vast, 0}), nothing({vast, 0}), nothing({0, 0}), nothing({0, 0}), floats({}),
        floats({})}},
      {"CombinedNonMaxSuppression",
       {nothing({1, 0, 1, 4}), nothing({1, 0, vast}), Tensor::scalar<int32_t>(1),
        Tensor::scalar<int32_t>(1), Tensor::scalar(0.5f), Tensor::scalar(0.0f)}},
      {"SparseSegmentSumGrad",
       {nothing({vast, 0}), nothing({0}, i32), nothing({0}, i32), Tensor::scalar<int32_t>(3)}},
      {"SparseAddGrad",
       {floats({}), nothing({0, vast}, i64), nothing({0, vast}, i64), nothing({0, vast}, i64)}},
      {"StridedSlice", {floats({1, 2}), longs({1}), longs({2}), longs({most})}},
      {"RaggedTensorToSparse", {longs({0, vast}), nothing({vast, 0})}},
      {"UnicodeTranscode",
       {nothing({vast, 0}, DType::string)},
       {{"input_encoding", "UTF-8"}, {"output_encoding", "UTF-8"}}},
      {"SpaceToBatchND", {nothing({0, 1, 1}), ints({most32}), longs({1, 2}, {0, most32 - 1})}},
      {"ParameterizedTruncatedNormal",
       {longs({vast, 0}), Tensor::scalar(0.0f), Tensor::scalar(1.0f), floats({0}), floats({1})},
       {{"seed", 1}}},
      {"StatelessParameterizedTruncatedNormal",
       {longs({vast, 0}), longs({1, 2}), Tensor::scalar(0.0f), Tensor::scalar(1.0f),
        nothing({vast, 0}), Tensor::scalar(1.0f)}},
      {"StatelessShuffle",
       {nothing({vast, 0}), Tensor::of<uint64_t>({1}, {1}), Tensor::of<uint64_t>({2}, {1, 2}),
        Tensor::scalar<int32_t>(1)}},
      {"ApproxTopK", {nothing({vast, 0})}, {{"k", int64_t{0}}}},
      {"Fingerprint", {nothing({0, vast}), Tensor::scalar<std::string>("farmhash64")}},
      {"DecodePaddedRaw",
       {nothing({vast, 0}, DType::string), Tensor::scalar<int32_t>(1)},
       {{"out_type", DType::u8}}},
      {"BatchNormWithGlobalNormalization",
       {nothing({vast, 1, 1, 0}), floats({}), floats({}), floats({}), floats({})},
       {{"variance_epsilon", 0.1F}, {"scale_after_normalization", true}}},
      {"BatchNormWithGlobalNormalizationGrad",
       {nothing({vast, 1, 1, 0}), floats({}), floats({}), floats({}), nothing({vast, 1, 1, 0})},
       {{"variance_epsilon", 0.1F}, {"scale_after_normalization", true}}},
  };
  for (const Call& call : calls) {
    const Status status = error_of([&] { run_op(call.op, call.inputs, call.attrs); });
    EXPECT_TRUE(status.is_ok()) << call.op << ": " << status.to_string();
  }
}

// Far more positions in a block than pixels.
TEST(HostileExtents, BlockLargerThanItsImage) {
  const Tensor x = floats({1, 2, 1}, {5, 6});
  const Tensor y = run_op("SpaceToBatchND", {x, ints({1000}), ints({1, 2}, {7, 991})})[0];
  ASSERT_EQ(y.shape(), Shape({1000, 1, 1}));
  for (int64_t i = 0; i < 1000; ++i)
    EXPECT_EQ(y.data<float>()[i], i == 7 ? 5 : i == 8 ? 6 : 0) << i;
  const Tensor back = run_op("BatchToSpaceND", {y, ints({1000}), ints({1, 2}, {7, 991})})[0];
  EXPECT_EQ(to_doubles(back), to_doubles(x));
}

TEST(HostileExtents, LargestStrideOfAConstant) {
  Graph graph;
  const auto number = [&](int64_t x) { return constant(graph, longs({x})); };
  const Output part =
      strided_slice(constant(graph, longs({3, 4})), number(1), number(2), number(most));
  EXPECT_EQ(to_doubles(constant_value(part)), std::vector<double>{4});
}

TEST(HostileExtents, LargestTensorArrayIndex) {
  TensorArray array("a", {.dtype = f32,
                          .size = 0,
                          .element_shape = Shape::unknown(),
                          .is_dynamic = true,
                          .clear_after_read = true,
                          .has_one_shape = false,
                          .is_gradient = false});
  expect_error_with(Code::invalid_argument, "Could not write to TensorArray index 2147483647",
                    [&] { array.write(most32, Tensor::scalar(1.0f)); });
  EXPECT_EQ(array.size(), 0);
}

}  // namespace
}  // namespace leat
