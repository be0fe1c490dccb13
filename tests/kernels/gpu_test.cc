// Tests of the GPU plug-in on a machine without GPU: it loads, finds no GPU, adds its kernels, and
// these can be prepared without a device. Where there is a GPU, every_op_test compares the numbers.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "graph/op_def.h"
#include "graph/op_schema.h"
#include "graph/shape_inference.h"
#include "tests/kernels/rows.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/run_op.h"

namespace leat {
namespace {

// Loads the plug-in even without a driver. Null if this build has none.
void* load_plugin() {
  const std::filesystem::path path =
      std::filesystem::path(LEAT_BIN_DIR).parent_path() / "lib/libleat_cuda.so";
  if (!std::filesystem::exists(path)) return nullptr;
  void* plugin = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(plugin, nullptr) << dlerror();
  return plugin;
}

// Among them everything that a training step of an MLP or of a CNN runs on the device of its
// variables, and its initialisers.
const std::set<std::string> on_gpus = {"SelfAdjointEigV2",
                                       "Svd",
                                       "CollectiveResult",
                                       "BlockLSTM",
                                       "BlockLSTMGrad",
                                       "BlockLSTMGradV2",
                                       "BlockLSTMV2",
                                       "GRUBlockCell",
                                       "GRUBlockCellGrad",
                                       "LSTMBlockCell",
                                       "LSTMBlockCellGrad",
                                       "CheckNumerics",
                                       "FakeQuantWithMinMaxArgs",
                                       "FakeQuantWithMinMaxArgsGradient",
                                       "FakeQuantWithMinMaxVars",
                                       "FakeQuantWithMinMaxVarsGradient",
                                       "FakeQuantWithMinMaxVarsPerChannel",
                                       "FakeQuantWithMinMaxVarsPerChannelGradient",
                                       "QuantizeAndDequantizeV2",
                                       "QuantizeAndDequantizeV3",
                                       "QuantizeAndDequantizeV4",
                                       "QuantizeAndDequantizeV4Grad",
                                       "BatchMatMulV3",
                                       "Bitcast",
                                       "Bucketize",
                                       "DeepCopy",
                                       "MaxPoolGradGradV2",
                                       "MaxPoolGradV2",
                                       "MaxPoolV2",
                                       "NthElement",
                                       "Angle",
                                       "Complex",
                                       "ComplexAbs",
                                       "Conj",
                                       "Imag",
                                       "Real",
                                       "RandomGamma",
                                       "RandomPoissonV2",
                                       "RandomShuffle",
                                       "StatelessRandomGammaV2",
                                       "StatelessRandomGammaV3",
                                       "StatelessRandomPoisson",
                                       "StatelessShuffle",
                                       "Multinomial",
                                       "StatelessMultinomial",
                                       "GruLayer",
                                       "GruLayerGrad",
                                       "LstmLayer",
                                       "LstmLayerGrad",
                                       "_Attention",
                                       "_AttentionGrad",
                                       "_MaxPoolReluGrad",
                                       "Abs",
                                       "Add",
                                       "AddN",
                                       "AddV2",
                                       "AdjustContrastv2",
                                       "AdjustHue",
                                       "AdjustSaturation",
                                       "All",
                                       "Any",
                                       "ApplyAdadelta",
                                       "ApplyAdagrad",
                                       "ApplyAdam",
                                       "ApplyFtrl",
                                       "ApplyGradientDescent",
                                       "ApplyMomentum",
                                       "ApplyRMSProp",
                                       "ApproxTopK",
                                       "ArgMax",
                                       "AvgPool",
                                       "AvgPool3D",
                                       "AvgPool3DGrad",
                                       "AvgPoolGrad",
                                       "BatchMatMul",
                                       "BatchMatMulV2",
                                       "BatchToSpace",
                                       "BatchToSpaceND",
                                       "BiasAdd",
                                       "BiasAddGrad",
                                       "Bincount",
                                       "BroadcastTo",
                                       "Cast",
                                       "Concat",
                                       "ConcatV2",
                                       "Conv2D",
                                       "Conv2DBackpropFilter",
                                       "Conv2DBackpropInput",
                                       "Conv3D",
                                       "Conv3DBackpropFilterV2",
                                       "Conv3DBackpropInputV2",
                                       "CropAndResize",
                                       "CropAndResizeGradBoxes",
                                       "CropAndResizeGradImage",
                                       "Cross",
                                       "DenseBincount",
                                       "DepthToSpace",
                                       "DepthwiseConv2dNative",
                                       "DepthwiseConv2dNativeBackpropFilter",
                                       "DepthwiseConv2dNativeBackpropInput",
                                       "Diag",
                                       "DiagPart",
                                       "Div",
                                       "DivNoNan",
                                       "Empty",
                                       "Equal",
                                       "Exp",
                                       "Fill",
                                       "Floor",
                                       "FloorDiv",
                                       "FloorMod",
                                       "FusedBatchNorm",
                                       "FusedBatchNormGrad",
                                       "FusedBatchNormGradV2",
                                       "FusedBatchNormGradV3",
                                       "FusedBatchNormV2",
                                       "FusedBatchNormV3",
                                       "Gather",
                                       "GatherNd",
                                       "GatherV2",
                                       "Greater",
                                       "GreaterEqual",
                                       "HSVToRGB",
                                       "InTopK",
                                       "InTopKV2",
                                       "InplaceAdd",
                                       "InplaceSub",
                                       "InplaceUpdate",
                                       "InvertPermutation",
                                       "L2Loss",
                                       "Less",
                                       "LessEqual",
                                       "LinSpace",
                                       "Log",
                                       "LogSoftmax",
                                       "LogicalAnd",
                                       "LogicalNot",
                                       "LogicalOr",
                                       "LowerBound",
                                       "MatMul",
                                       "MatrixBandPart",
                                       "MatrixDiag",
                                       "MatrixDiagPart",
                                       "MatrixDiagPartV2",
                                       "MatrixDiagPartV3",
                                       "MatrixDiagV2",
                                       "MatrixDiagV3",
                                       "MatrixSetDiag",
                                       "MatrixSetDiagV2",
                                       "MatrixSetDiagV3",
                                       "Max",
                                       "MaxPool",
                                       "MaxPool3D",
                                       "MaxPool3DGrad",
                                       "MaxPoolGrad",
                                       "MaxPoolGradGrad",
                                       "MaxPoolGradWithArgmax",
                                       "MaxPoolWithArgmax",
                                       "Maximum",
                                       "Mean",
                                       "Min",
                                       "Minimum",
                                       "MirrorPad",
                                       "MirrorPadGrad",
                                       "Mul",
                                       "Neg",
                                       "NotEqual",
                                       "OneHot",
                                       "OnesLike",
                                       "Pack",
                                       "Pad",
                                       "PadV2",
                                       "ParallelConcat",
                                       "Pow",
                                       "Prod",
                                       "RGBToHSV",
                                       "RandomStandardNormal",
                                       "RandomUniform",
                                       "RandomUniformInt",
                                       "Range",
                                       "RealDiv",
                                       "Reciprocal",
                                       "Relu",
                                       "ReluGrad",
                                       "ResourceApplyAdam",
                                       "ResourceGather",
                                       "ResourceGatherNd",
                                       "ResourceScatterAdd",
                                       "ResourceScatterDiv",
                                       "ResourceScatterMax",
                                       "ResourceScatterMin",
                                       "ResourceScatterMul",
                                       "ResourceScatterNdAdd",
                                       "ResourceScatterNdMax",
                                       "ResourceScatterNdMin",
                                       "ResourceScatterNdSub",
                                       "ResourceScatterNdUpdate",
                                       "ResourceScatterSub",
                                       "ResourceScatterUpdate",
                                       "ResourceSparseApplyAdagrad",
                                       "ResourceStridedSliceAssign",
                                       "ReverseSequence",
                                       "ReverseV2",
                                       "Roll",
                                       "Rsqrt",
                                       "ScatterAdd",
                                       "ScatterDiv",
                                       "ScatterMax",
                                       "ScatterMin",
                                       "ScatterMul",
                                       "ScatterNd",
                                       "ScatterNdAdd",
                                       "ScatterNdMax",
                                       "ScatterNdMin",
                                       "ScatterNdNonAliasingAdd",
                                       "ScatterNdSub",
                                       "ScatterNdUpdate",
                                       "ScatterSub",
                                       "ScatterUpdate",
                                       "Select",
                                       "SelectV2",
                                       "Sigmoid",
                                       "SigmoidGrad",
                                       "Sign",
                                       "Slice",
                                       "Softmax",
                                       "SoftmaxCrossEntropyWithLogits",
                                       "SpaceToBatch",
                                       "SpaceToBatchND",
                                       "SpaceToDepth",
                                       "SparseApplyFtrl",
                                       "SparseApplyMomentum",
                                       "SparseSoftmaxCrossEntropyWithLogits",
                                       "SparseTensorDenseAdd",
                                       "SparseTensorDenseMatMul",
                                       "SparseToDense",
                                       "Split",
                                       "SplitV",
                                       "Sqrt",
                                       "Square",
                                       "SquaredDifference",
                                       "StatelessRandomNormal",
                                       "StatelessRandomNormalV2",
                                       "StatelessRandomUniform",
                                       "StatelessRandomUniformFullInt",
                                       "StatelessRandomUniformFullIntV2",
                                       "StatelessRandomUniformInt",
                                       "StatelessRandomUniformIntV2",
                                       "StatelessRandomUniformV2",
                                       "StatelessTruncatedNormal",
                                       "StatelessTruncatedNormalV2",
                                       "StridedSlice",
                                       "StridedSliceAssign",
                                       "StridedSliceGrad",
                                       "Sub",
                                       "Sum",
                                       "Tanh",
                                       "TanhGrad",
                                       "TensorScatterAdd",
                                       "TensorScatterMax",
                                       "TensorScatterMin",
                                       "TensorScatterSub",
                                       "TensorScatterUpdate",
                                       "Tile",
                                       "TopKV2",
                                       "Transpose",
                                       "TruncatedNormal",
                                       "Unpack",
                                       "UnsortedSegmentMax",
                                       "UnsortedSegmentMin",
                                       "UnsortedSegmentProd",
                                       "UnsortedSegmentSum",
                                       "UpperBound",
                                       "ZerosLike"};

// The same where cuSOLVER can be opened.
const std::set<std::string> are_solved = {
    "Cholesky",    "LogMatrixDeterminant", "MatrixDeterminant",     "MatrixInverse",
    "MatrixSolve", "MatrixSolveLs",        "MatrixTriangularSolve", "Qr"};

// They ask the device's library when they are prepared, as those do.
const std::set<std::string> needs_library = {"MatMul",
                                             "BatchMatMul",
                                             "BatchMatMulV2",
                                             "BatchMatMulV3",
                                             "Conv2D",
                                             "Conv2DBackpropInput",
                                             "Conv2DBackpropFilter",
                                             "Conv3D",
                                             "Conv3DBackpropInputV2",
                                             "Conv3DBackpropFilterV2",
                                             "BlockLSTM",
                                             "BlockLSTMGrad",
                                             "BlockLSTMGradV2",
                                             "BlockLSTMV2",
                                             "GRUBlockCell",
                                             "GRUBlockCellGrad",
                                             "LSTMBlockCell",
                                             "GruLayer",
                                             "GruLayerGrad",
                                             "LstmLayer",
                                             "LstmLayerGrad",
                                             "Einsum",
                                             "DepthwiseConv2dNative",
                                             "DepthwiseConv2dNativeBackpropInput",
                                             "DepthwiseConv2dNativeBackpropFilter"};

bool has_gpu_kernel(const OpDef& op) {
  for (const Kernel& kernel : op.kernels) {
    if (kernel.device == DeviceType::gpu) return true;
  }
  return false;
}

// float, where the op accepts it; else an integer or a complex number.
DType usual_dtype(const OpDef& op) {
  const AttrDef* type = op.schema.attr("T");
  if (type == nullptr) return DType::boolean;
  for (const DType usual : {f32, i32}) {
    if (violation(*type, AttrValue(usual)).empty()) return usual;
  }
  return DType::complex64;
}

TEST(GpuPlugin, LoadsWithoutADriverAndReportsNoGpu) {
  void* plugin = load_plugin();
  if (plugin == nullptr) GTEST_SKIP() << "this build has no GPU plug-in";
  if (dlopen("libcuda.so.1", RTLD_LAZY) != nullptr) GTEST_SKIP() << "there is a driver here";
  using MakeDevices = void (*)(const DeviceName&, std::vector<std::unique_ptr<Device>>&);
  const auto make_devices = reinterpret_cast<MakeDevices>(dlsym(plugin, "leat_cuda_make_devices"));
  ASSERT_NE(make_devices, nullptr);
  std::vector<std::unique_ptr<Device>> devices;
  make_devices(DeviceName::parse("/job:localhost/replica:0/task:0"), devices);
  EXPECT_TRUE(devices.empty());
}

TEST(GpuPlugin, AddsItsKernels) {
  if (load_plugin() == nullptr) GTEST_SKIP() << "this build has no GPU plug-in";
  const bool has_solvers = dlopen("libcusolver.so.12", RTLD_LAZY) != nullptr;
  for (const std::string& name : on_gpus) EXPECT_TRUE(has_gpu_kernel(op_named(name))) << name;
  for (const std::string& name : are_solved)
    EXPECT_EQ(has_gpu_kernel(op_named(name)), has_solvers) << name;
}

// They count in the device's memory what has been drawn, or have tables there.
const std::set<std::string> has_memory = {"Bucketize",
                                          "Multinomial",
                                          "RandomShuffle",
                                          "RandomUniform",
                                          "RandomStandardNormal",
                                          "TruncatedNormal",
                                          "RandomUniformInt",
                                          "ResizeArea",
                                          "ResizeBicubic",
                                          "ResizeBicubicGrad",
                                          "ResizeBilinear",
                                          "ResizeBilinearGrad",
                                          "ResizeNearestNeighbor",
                                          "ResizeNearestNeighborGrad"};

TEST(GpuPlugin, PreparesKernelsWithoutTheDevice) {
  if (load_plugin() == nullptr) GTEST_SKIP() << "this build has no GPU plug-in";
  FakeGpu gpu;
  int prepared = 0;
  for (const OpDef* op : all_ops()) {
    if (!has_gpu_kernel(*op) || needs_library.contains(op->name) || are_solved.contains(op->name))
      continue;
    for (const Row& row : rows_for(*op)) {
      const std::vector<Tensor> inputs = inputs_of(row, usual_dtype(*op));
      Graph graph;
      const Node& node = add_call(graph, op->name, inputs, row.attrs);
      const Kernel* kernel = find_kernel(*op, node.attrs, DeviceType::gpu);
      if (kernel == nullptr || !kernel->prepare) continue;  // it runs between segments
      std::vector<TensorSpec> in, out;
      for (size_t i = 0; i < inputs.size(); ++i) {
        const bool shown = op->is_value_input(static_cast<int>(i), static_cast<int>(inputs.size()));
        in.push_back({inputs[i].dtype(), inputs[i].shape(), shown ? &inputs[i] : nullptr});
      }
      const auto shapes = infer_shapes(node.view(), *op, in, static_cast<int>(node.outputs.size()));
      for (size_t i = 0; i < shapes.size(); ++i)
        out.push_back({node.outputs[i].dtype, shapes[i], nullptr});
      std::shared_ptr<void> state;
      const BoundKernel bound = kernel->prepare(
          {.node = node.view(), .inputs = in, .outputs = out, .device = gpu, .node_state = state});
      EXPECT_TRUE(bound.function != nullptr || !bound.views.empty()) << op->name;
      if (has_memory.contains(op->name)) gpu.clear_log();
      EXPECT_TRUE(gpu.log().empty())
          << op->name << " asked the device to " << gpu.log()[0] << " while it was prepared";
      ++prepared;
    }
  }
  EXPECT_GT(prepared, 60);
}

TEST(MakeGpuDevices, IsEmptyWithoutADriver) {
  if (dlopen("libcuda.so.1", RTLD_LAZY) != nullptr) GTEST_SKIP() << "there is a driver here";
  EXPECT_TRUE(make_gpu_devices(DeviceName::parse("/job:localhost/replica:0/task:0")).empty());
}

// These tests' evaluator, on a device with its own memory.
const Op on_fake_gpu{{
    .name = "TestDouble",
    .doc = "y = 2 x, for tests of devices.",
    .inputs = {"x: float"},
    .outputs = {"y: float"},
    .shape = shapes::same_as(0),
    .kernels = {{.device = DeviceType::gpu,
                 .prepare =
                     [](const KernelRequest& request) {
                       return BoundKernel::of(
                           [n = request.inputs[0].shape.elements()](const Arguments& arguments) {
                             for (int64_t i = 0; i < n; ++i) {
                               arguments.output<float>()[i] = 2 * arguments.input<float>(0)[i];
                             }
                           });
                     }},
                {.prepare =
                     [](const KernelRequest& request) {
                       return BoundKernel::of(
                           [n = request.inputs[0].shape.elements()](const Arguments& arguments) {
                             for (int64_t i = 0; i < n; ++i) {
                               arguments.output<float>()[i] = 2 * arguments.input<float>(0)[i];
                             }
                           });
                     }}},
    .examples = {{.inputs = {Tensor::of<float>({2}, {1, 2})},
                  .outputs = {Tensor::of<float>({2}, {2, 4})}}},
    .is_not_differentiable = true,
}};

TEST(FakeGpu, RecordsTheCallsOfARun) {
  FakeGpu gpu;
  const std::vector<Tensor> outputs =
      run_op("TestDouble", {Tensor::of<float>({2}, {1, 2})}, {}, gpu);
  EXPECT_EQ(outputs[0].data<float>()[1], 4);
  EXPECT_EQ(gpu.log(), (std::vector<std::string>{"allocate 8", "copy_from_host 8", "allocate 8",
                                                 "copy_to_host 8"}));
}

}  // namespace
}  // namespace leat
