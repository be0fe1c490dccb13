// Properties of every op in the registry, on every device. A registered op is covered at once;
// exceptions (no example, no gradient check) must be listed here with the reason.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <utility>

#include "core/visit_dtype.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/refused_ops.h"
#include "graph/shape_inference.h"
#include "tests/kernels/agreement.h"
#include "tests/kernels/rows.h"
#include "tests/support/run_op.h"

namespace leat {
namespace {

const std::set<std::string, std::less<>> without_example = {
    // The runtime or the caller defines their meaning; they have no kernel to call.
    "Placeholder", "VariableV2", "Variable", "VarHandleOp", "_Feed", "_AwaitFeed", "_DeliverFetch",
    "_Send", "_Recv", "Switch", "RefSwitch", "Merge", "RefMerge", "RefIdentity", "Enter",
    "RefEnter", "Exit", "RefExit", "NextIteration", "RefNextIteration", "LoopCond", "_Loop",
    "DatasetToGraph", "DatasetToGraphV2",
    // Passes make them, and only GPUs have kernels for them: tests/cuda/attention_test.cc and
    // collectives_test.cc.
    "_Attention", "_AttentionGrad", "_CollectiveJoin", "_CollectiveRun", "_ConcatInPlace",
    // They leave no value behind, or they wait, or hold a graph; they have their own tests.
    "_Fused", "CollectiveBcastRecv", "CollectiveBcastRecvV2", "_CollectiveMeet",
    "DestroyResourceOp", "GenerateVocabRemapping", "LoadAndRemapMatrix", "Save", "SaveSlices",
    "Restore", "RestoreSlice", "SaveV2", "RestoreV2", "MergeV2Checkpoints", "FIFOQueueV2",
    "PaddingFIFOQueueV2", "RandomShuffleQueueV2", "QueueEnqueueV2", "QueueEnqueueManyV2",
    "QueueDequeueV2", "QueueDequeueManyV2", "QueueDequeueUpToV2", "QueueCloseV2", "QueueSizeV2",
    "QueueIsClosedV2", "ConditionalAccumulator", "AccumulatorApplyGradient",
    "AccumulatorTakeGradient", "AccumulatorSetGlobalStep", "AccumulatorNumAccumulated",
    "ResourceConditionalAccumulator", "ResourceAccumulatorApplyGradient",
    "ResourceAccumulatorTakeGradient", "ResourceAccumulatorSetGlobalStep",
    "ResourceAccumulatorNumAccumulated", "SparseConditionalAccumulator",
    "SparseAccumulatorApplyGradient", "SparseAccumulatorTakeGradient", "HashTable", "HashTableV2",
    "MutableHashTable", "MutableHashTableV2", "MutableHashTableOfTensors",
    "MutableHashTableOfTensorsV2", "MutableDenseHashTable", "MutableDenseHashTableV2",
    "InitializeTable", "InitializeTableV2", "InitializeTableFromTextFile",
    "InitializeTableFromTextFileV2", "LookupTableFind", "LookupTableFindV2", "LookupTableInsert",
    "LookupTableInsertV2", "LookupTableRemoveV2", "LookupTableExport", "LookupTableExportV2",
    "LookupTableImport", "LookupTableImportV2", "LookupTableSize", "LookupTableSizeV2", "ReadFile",
    "WriteFile", "MatchingFiles", "TextLineReaderV2", "TFRecordReaderV2",
    "FixedLengthRecordReaderV2", "WholeFileReaderV2", "IdentityReaderV2", "ReaderReadV2",
    "ReaderReadUpToV2", "ReaderNumRecordsProducedV2", "ReaderNumWorkUnitsCompletedV2",
    "ReaderResetV2",
    // They work on state that a step makes: tests/tensorflow/loops_test.py.
    "StackV2", "StackPushV2", "StackPopV2", "StackCloseV2", "TensorArrayV3", "TensorArrayGradV3",
    "TensorArrayGradWithShape", "TensorArrayWriteV3", "TensorArrayReadV3", "TensorArrayGatherV3",
    "TensorArrayScatterV3", "TensorArrayConcatV3", "TensorArraySplitV3", "TensorArraySizeV3",
    "TensorArrayCloseV3",
    // Only ops make variants: tests/runtime/variants_test.cc, tests/tensorflow/functions_test.py.
    "EmptyTensorList", "TensorListReserve", "TensorListPushBack", "TensorListPopBack",
    "TensorListStack", "TensorListFromTensor", "TensorListGetItem", "TensorListSetItem",
    "TensorListLength", "TensorListResize", "TensorListGather", "TensorListScatter",
    "TensorListScatterV2", "TensorListScatterIntoExistingList", "TensorListConcat",
    "TensorListConcatV2", "TensorListSplit", "TensorListConcatLists", "TensorListElementShape",
    "OptionalFromValue", "OptionalNone", "OptionalGetValue", "OptionalHasValue",
    // Datasets are variants, iterators state: tests/runtime/datasets_test.cc,
    // tests/frontends/dataset_test.cc, tests/tensorflow/data_test.py, data_groups_test.py and
    // data_features_test.py.
    "_HostDataset", "TensorDataset", "TensorSliceDataset", "RangeDataset", "BatchDataset",
    "BatchDatasetV2", "ParallelBatchDataset", "PaddedBatchDataset", "PaddedBatchDatasetV2",
    "RepeatDataset", "TakeDataset", "SkipDataset", "ShardDataset", "ZipDataset",
    "ConcatenateDataset", "CacheDataset", "PrefetchDataset", "OptionsDataset", "ModelDataset",
    "OptimizeDataset", "OptimizeDatasetV2", "RewriteDataset", "AssertNextDataset", "ShuffleDataset",
    "ShuffleAndRepeatDataset", "TextLineDataset", "TFRecordDataset", "FixedLengthRecordDataset",
    "FixedLengthRecordDatasetV2", "MapDataset", "ParallelMapDataset", "ParallelMapDatasetV2",
    "FilterDataset", "FlatMapDataset", "InterleaveDataset", "ParallelInterleaveDatasetV2",
    "ParallelInterleaveDatasetV3", "ParallelInterleaveDatasetV4", "MapAndBatchDataset",
    "ExperimentalMapAndBatchDataset", "ShuffleDatasetV3", "CacheDatasetV2", "DummySeedGenerator",
    "DummyMemoryCache", "Iterator", "IteratorV2", "OneShotIterator", "MakeIterator",
    "IteratorGetNext", "IteratorGetNextSync", "IteratorToStringHandle", "IteratorFromStringHandle",
    "IteratorFromStringHandleV2", "TakeWhileDataset", "UnbatchDataset", "ScanDataset",
    "ReduceDataset", "DatasetToSingleElement", "DatasetCardinality", "AssertCardinalityDataset",
    "WindowDataset", "GroupByWindowDataset", "GroupByReducerDataset",
    "ExperimentalGroupByReducerDataset", "DirectedInterleaveDataset", "RandomDataset",
    "RandomDatasetV2", "UniqueDataset", "IgnoreErrorsDataset", "ShuffleAndRepeatDatasetV2",
    "ParallelInterleaveDataset", "LegacyParallelInterleaveDatasetV2", "SparseTensorSliceDataset",
    "RebatchDatasetV2", "ListDataset", "DenseToSparseBatchDataset", "ParseExampleDataset",
    "ParseExampleDatasetV2", "CSVDataset", "CSVDatasetV2", "IteratorGetNextAsOptional",
    "RaggedTensorToVariant", "RaggedTensorFromVariant", "RaggedTensorToVariantGradient", "_Result",
    // They work on state, and most find it by its name: tests/tensorflow/readers_test.py and
    // state_test.py.
    "AddSparseToTensorsMap", "AddManySparseToTensorsMap", "TakeManySparseFromTensorsMap", "Stage",
    "Unstage", "StagePeek", "StageSize", "StageClear", "MapStage", "MapPeek", "MapUnstage",
    "MapUnstageNoKey", "MapSize", "MapIncompleteSize", "MapClear", "OrderedMapStage",
    "OrderedMapPeek", "OrderedMapUnstage", "OrderedMapUnstageNoKey", "OrderedMapSize",
    "OrderedMapIncompleteSize", "OrderedMapClear", "PriorityQueueV2", "Barrier",
    "BarrierInsertMany", "BarrierTakeMany", "BarrierClose", "BarrierReadySize",
    "BarrierIncompleteSize",
    // Leat's own: tests/runtime/clock_test.cc, tests/kernels/mailbox_test.cc,
    // tests/frontends/strategies/per_worker_all_reduce_test.cc.
    "Clock", "ClockTick", "ClockWait", "ClockJoin", "ClockLeave", "ClockRead", "Mailbox",
    "MailboxPost", "MailboxTake", "MailboxJoin", "MailboxMeet", "MailboxLeave", "CheckEqualPlans",
    "CollectiveTicket", "CollectiveSignal",
    // Streams of random numbers have their own tests.
    "RandomUniform", "RandomUniformInt", "RandomStandardNormal", "TruncatedNormal", "RandomShuffle",
    "Multinomial", "RandomGamma", "RandomPoissonV2", "ParameterizedTruncatedNormal",
    "UniformCandidateSampler", "LogUniformCandidateSampler", "LearnedUnigramCandidateSampler",
    "ThreadUnsafeUnigramCandidateSampler", "FixedUnigramCandidateSampler",
    "Timestamp"};  // different every time

// Ops whose gradient is not that of their value, or that no kernel computes.
const std::set<std::string, std::less<>> without_gradient_check = {
    "PreventGradient", "GruLayerGrad", "LstmLayerGrad",  // their gradients are errors
    // Their gradients ignore the rounding.
    "FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel",
    "QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3", "QuantizeAndDequantizeV4",
    // Their gradient is that of the inverse transformation.
    "ImageProjectiveTransformV2", "ImageProjectiveTransformV3",
    "Cholesky",  // assumes a symmetric matrix: linear_algebra_test.cc
    "Switch", "RefSwitch", "Merge", "RefMerge", "RefIdentity",
    // Gradients of lists, which are not numbers: control_flow_gradients_test.cc.
    "TensorListFromTensor", "TensorListGather", "TensorListGetItem", "TensorListPopBack",
    "TensorListPushBack", "TensorListResize", "TensorListScatter", "TensorListScatterV2",
    "TensorListSetItem", "TensorListStack",
    // Gradients of a variable have their own tests.
    "ReadVariableOp", "ResourceGather", "ResourceGatherNd",
    // Gradients of complex numbers only: complex_test.cc.
    "Angle", "Complex", "ComplexAbs", "Conj", "Imag", "Real", "FFT", "FFT2D", "FFT3D", "IFFT",
    "IFFT2D", "IFFT3D",
    // They have no T that could be double; BatchMatMulV2 and TopKV2 have the same gradients.
    "BatchMatMulV3", "ApproxTopK",
    // No type is exact enough for differences; they have their own tests.
    "FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3", "LRN", "MaxPool3D", "MaxPool3DGrad",
    "MaxPool3DGradGrad", "ResizeBilinear", "ResizeBicubic", "ScaleAndTranslate", "CropAndResize",
    "BlockLSTM", "BlockLSTMV2", "RandomGamma", "SparseMatMul",
    // The gradient of a number that keeps its quantile: random_test.cc,
    // tests/tensorflow/ops_test.py.
    "StatelessRandomGammaV2", "StatelessRandomGammaV3", "StatelessParameterizedTruncatedNormal"};

// Ops with a second type that must match T.
const std::set<std::string, std::less<>> with_two_types = {"Angle", "Complex", "ComplexAbs", "Imag",
                                                           "Real"};
// Ops that return no complex numbers for complex ones, or take a real number besides.
const std::set<std::string, std::less<>> not_compared_as_complex = {"AsString", "SparseAdd"};

TEST(EveryOp, HasADocAndAnExample) {
  for (const OpDef* op : tested_ops()) {
    EXPECT_FALSE(op->doc.empty()) << op->name << " has no doc";
    EXPECT_EQ(op->examples.empty(), without_example.contains(op->name))
        << op->name << ": an op has an example unless `without_example` lists it";
  }
}

TEST(EveryOp, ExamplesHoldOnEveryDevice) {
  for (Device* device : test_devices()) expect_examples_hold(*device);
}

// ---- Inputs that do not match: the op returns an error or a result, but never reads beyond a
// tensor; AddressSanitizer would report it. One extent at a time of an example's inputs becomes one
// smaller, and then so much larger that the other inputs end long before it.

// A tensor of this shape that repeats the elements of `tensor`.
Tensor repeated(const Tensor& tensor, const Shape& shape) {
  Tensor out(tensor.dtype(), shape);
  const int64_t n = tensor.elements();
  for (int64_t i = 0; i < out.elements() && n > 0; ++i) {
    if (tensor.dtype() == DType::string) {
      out.data<std::string>()[i] = tensor.data<std::string>()[i % n];
    } else {
      const size_t size = dtype_size(tensor.dtype());
      std::memcpy(static_cast<char*>(out.raw()) + i * size,
                  static_cast<const char*>(tensor.raw()) + i % n * size, size);
    }
  }
  return out;
}

std::vector<Shape> other_shapes(const Shape& shape) {
  std::vector<Shape> out;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    for (const int64_t extent : {shape[axis] - 1, 40 * shape[axis] + 1}) {
      if (extent < 0) continue;
      out.push_back(shape);
      out.back().set(axis, extent);
    }
  }
  Shape of_higher_rank{40};
  for (int axis = 0; axis < shape.rank(); ++axis) of_higher_rank.push_back(shape[axis]);
  out.push_back(of_higher_rank);
  if (shape.rank() > 0) out.emplace_back();
  return out;
}

// The op must return a result or an error that is the caller's fault.
void run_with_input(const OpDef& op, const Example& example, size_t i, Tensor input) {
  std::vector<Tensor> inputs = example.inputs;
  inputs[i] = std::move(input);
  try {
    Graph graph;
    run_node(add_call_of_unknown_shapes(graph, op.name, inputs, example.attrs), inputs, test_cpu());
  } catch (const Error& error) {
    EXPECT_NE(code_name(error.code()), code_name(Code::internal))
        << op.name << ", input " << i << " = " << inputs[i] << ": " << error.message();
  } catch (const std::exception& error) {
    ADD_FAILURE() << op.name << ", input " << i << " = " << inputs[i] << ": " << error.what();
  }
}

TEST(EveryOp, MismatchedShapesNeverReadOutOfBounds) {
  for (const OpDef* op : tested_ops()) {
    for (const Example& example : op->examples) {
      for (size_t i = 0; i < example.inputs.size(); ++i) {
        for (const Shape& shape : other_shapes(example.inputs[i].shape()))
          run_with_input(*op, example, i, repeated(example.inputs[i], shape));
      }
    }
  }
}

TEST(EveryOp, WrongNumbersNeverReadOutOfBounds) {
  for (const OpDef* op : tested_ops()) {
    for (const Example& example : op->examples) {
      for (size_t i = 0; i < example.inputs.size(); ++i) {
        const Tensor& input = example.inputs[i];
        if (input.dtype() != i32 && input.dtype() != i64) continue;
        std::vector<double> values = to_doubles(input);
        for (double& value : values) {
          for (const double other : {-1, -1000, 1000}) {
            const double kept = std::exchange(value, other);
            run_with_input(*op, example, i, from_doubles(input.dtype(), input.shape(), values));
            value = kept;
          }
        }
      }
    }
  }
}

// ---- Dtypes: the kernel of every dtype against the same op in a wider one ----

// The elements as `dtype` holds them; integers wrap, as integer arithmetic does.
Tensor converted(const Tensor& tensor, DType dtype) {
  if (tensor.dtype() != i64 && !is_complex(tensor.dtype()) && !is_complex(dtype))
    return from_doubles(dtype, tensor.shape(), to_doubles(tensor));
  return run_op("Cast", {tensor}, {{"DstT", dtype}})[0];
}

// complex64 is compared with complex128, and complex128 with double on real numbers.
DType wider(DType dtype) {
  if (dtype == DType::complex64) return DType::complex128;
  return is_floating(dtype) || is_complex(dtype) ? f64 : i64;
}

// Adds imaginary parts: each is the real part of the neighbour.
Tensor with_imaginary_parts(const Tensor& tensor) {
  Tensor out = tensor.clone();
  const auto from = tensor.span<complex64>();
  for (size_t i = 0; i < from.size(); ++i)
    out.data<complex64>()[i] = {from[i].real(), from[(i + 1) % from.size()].real() / 2};
  return out;
}

TEST(EveryOp, EveryDtypeAgreesWithAWiderDtype) {
  for (const OpDef* op : tested_ops()) {
    const std::vector<DType> dtypes = dtypes_of(*op, DeviceType::cpu);
    for (const Row& row : rows_for(*op)) {
      for (DType dtype : dtypes) {
        const DType wide = wider(dtype);
        if (dtype == wide || dtype == DType::boolean || !contains(dtypes, wide)) continue;
        if (with_two_types.contains(op->name)) continue;
        if (is_complex(dtype) && not_compared_as_complex.contains(op->name)) continue;
        const std::string what = concat(op->name, " of ", dtype);
        try {
          const std::vector<Tensor> of_wide = inputs_of(row, wide);
          std::vector<Tensor> inputs = inputs_of(row, dtype), wide_inputs;
          for (int i = 0; i < static_cast<int>(inputs.size()); ++i) {
            const auto fixed = row.fixed.find(i);
            const bool keeps_dtype = of_wide[i].dtype() != wide ||
                                     (fixed != row.fixed.end() && fixed->second.dtype() != f32);
            if (inputs[i].dtype() == DType::complex64) inputs[i] = with_imaginary_parts(inputs[i]);
            wide_inputs.push_back(keeps_dtype ? inputs[i] : converted(inputs[i], wide));
          }
          const auto run = [&](const std::vector<Tensor>& values) {
            std::vector<Tensor> out = run_op(op->name, values, row.attrs);
            return is_complex(dtype) ? out : with_chosen_signs(op->name, std::move(out));
          };
          const std::vector<Tensor> actual = run(inputs), expected = run(wide_inputs);
          for (size_t i = 0; i < actual.size(); ++i) {
            const bool is_data = expected[i].dtype() == wide && actual[i].dtype() == dtype;
            expect_equal(actual[i], is_data ? converted(expected[i], dtype) : expected[i],
                         tolerance_of(dtype), what);
          }
        } catch (const Error& error) {
          ADD_FAILURE() << what << ": " << error.message();
        }
      }
    }
  }
}

// ---- Devices ----

TEST(EveryOp, EveryDeviceAgreesWithTheCpu) {
  const std::vector<Device*> devices = test_devices();
  if (devices.size() == 1) GTEST_SKIP() << "NO GPU HERE: the kernels of the plug-in were NOT tried";
  for (size_t d = 1; d < devices.size(); ++d) expect_agreement_with_the_cpu(*devices[d]);
}

// ---- Shapes ----

// Inference from partial inputs may yield less, but must not contradict the result.
TEST(EveryOp, InferredShapesMatchTheResults) {
  for (const OpDef* op : tested_ops()) {
    if (op->kernels.empty() || op->name.starts_with('_')) continue;  // a pass replaces or makes it
    for (const Row& row : rows_for(*op)) {
      const DType dtype = dtypes_of(*op, DeviceType::cpu).empty()
                              ? DType::boolean
                              : dtypes_of(*op, DeviceType::cpu)[0];
      const std::vector<Tensor> inputs = inputs_of(row, dtype);
      try {
        const std::vector<Tensor> outputs = run_op(op->name, inputs, row.attrs);
        for (int known : {0, 1, 2}) {  // nothing, the rank, everything
          Graph graph;
          std::vector<Output> placeholders;
          for (const Tensor& input : inputs) {
            const Shape shape = known == 0   ? Shape::unknown()
                                : known == 1 ? Shape::of_rank(input.shape().rank())
                                             : input.shape();
            placeholders.push_back(placeholder(graph, "x", input.dtype(), shape));
          }
          const Node& node =
              graph.add({.op = op->name, .inputs = placeholders, .attrs = row.attrs});
          for (size_t i = 0; i < outputs.size(); ++i) {
            EXPECT_TRUE(node.outputs[i].shape.is_compatible(outputs[i].shape()))
                << op->name << ", output " << i << ": inferred " << node.outputs[i].shape
                << ", produced " << outputs[i].shape();
          }
        }
      } catch (const Error& error) {
        ADD_FAILURE() << op->name << ": " << error.message();
      }
    }
  }
}

// ---- Gradients ----

double norm(const Tensor& tensor) {
  double sum = 0;
  for (double value : to_doubles(tensor)) sum += value * value;
  return std::sqrt(sum);
}

// The gradient of sqrt(sum(y²)): a plain sum would give symmetric gradients, which hide mistakes.
// Checked with static shapes and without, since gradients of broadcasting then take other paths.
void check_gradient(const OpDef& op, const Row& row, bool static_shapes) {
  const std::string what = concat(op.name, static_shapes ? ", static shapes" : ", unknown shapes");
  const std::vector<Tensor> inputs = inputs_of(row, f64);
  const auto shape_of_placeholder = [&](const Shape& shape) {
    return static_shapes ? shape : row.needs_rank ? Shape::of_rank(shape.rank()) : Shape::unknown();
  };
  Graph graph;
  std::vector<Output> placeholders, xs;
  std::vector<int> x_inputs;
  std::map<const Node*, Tensor> feeds;
  for (int i = 0; i < static_cast<int>(inputs.size()); ++i) {
    const bool is_fixed = row.fixed.contains(i);
    const Output input =
        is_fixed ? constant(graph, inputs[i])
                 : placeholder(graph, concat("x", i), f64, shape_of_placeholder(inputs[i].shape()));
    if (!is_fixed) feeds[input.node] = inputs[i];
    placeholders.push_back(input);
    if (is_fixed || contains(row.no_gradient, i)) continue;
    xs.push_back(input);
    x_inputs.push_back(i);
  }
  Node& node = graph.add({.op = op.name, .inputs = placeholders, .attrs = row.attrs});
  const Output y = node.output(row.output);
  ASSERT_EQ(y.dtype(), f64) << what;

  const Tensor value = evaluate({y}, feeds)[0];
  std::vector<double> seed = to_doubles(value);
  const double loss = norm(value);
  ASSERT_GT(loss, 1e-3) << what << ": choose inputs with a result that is not zero";
  for (double& element : seed) element /= loss;
  const Output dy = placeholder(graph, "dy", f64, shape_of_placeholder(value.shape()));
  feeds[dy.node] = from_doubles(f64, value.shape(), seed);

  const std::vector<Output> dxs = gradients({y}, xs, {dy});
  for (size_t k = 0; k < xs.size(); ++k) {
    ASSERT_TRUE(dxs[k]) << what << ": no gradient for input " << x_inputs[k];
    const Tensor dx = evaluate({dxs[k]}, feeds)[0];
    Tensor x = inputs[x_inputs[k]].clone();
    ASSERT_EQ(dx.shape(), x.shape()) << what << ", input " << x_inputs[k];
    EXPECT_TRUE(dxs[k].shape().is_compatible(x.shape())) << what << ": inferred " << dxs[k].shape();
    for (int64_t i = 0; i < x.elements(); ++i) {
      const double at = x.data<double>()[i], step = 1e-4;
      const auto loss_at = [&](double moved) {
        x.data<double>()[i] = moved;
        std::map<const Node*, Tensor> moved_feeds = feeds;
        moved_feeds[xs[k].node] = x;
        return norm(evaluate({y}, moved_feeds)[0]);
      };
      const double difference = (loss_at(at + step) - loss_at(at - step)) / (2 * step);
      x.data<double>()[i] = at;
      ASSERT_TRUE(close(dx.data<double>()[i], difference, row.tolerance))
          << what << ", input " << x_inputs[k] << ", element " << i << " = " << at << ": gradient "
          << dx.data<double>()[i] << ", central difference " << difference;
    }
  }
}

TEST(EveryOp, GradientAgreesWithCentralDifferences) {
  for (const OpDef* op : tested_ops()) {
    if (!op->gradient || without_gradient_check.contains(op->name)) continue;
    const std::vector<Row> rows = rows_for(*op);
    EXPECT_FALSE(rows.empty()) << op->name << " has a gradient: give it a row in rows.cc";
    for (const Row& row : rows) {
      for (bool static_shapes : {true, false}) {
        try {
          check_gradient(*op, row, static_shapes);
        } catch (const Error& error) {
          ADD_FAILURE() << op->name << (static_shapes ? "" : ", unknown shapes") << ": "
                        << error.message();
        }
      }
    }
  }
}

// Ops for which gradients() fails: state, what loops are made of (their gradient is that of the
// loop), gradients whose gradient is not there, and ops that TensorFlow or Leat has no gradient of.
// clang-format off
const std::set<std::string, std::less<>> without_gradient = {
    "AdjustContrastv2", "AdjustHue", "AdjustSaturation", "CollectiveBcastRecv",
    "CollectiveBcastRecvV2", "CollectiveBcastSend", "CollectiveBcastSendV2", "CollectiveGather",
    "CollectiveGatherV2", "CollectiveReduce", "CollectiveReduceV2", "CropAndResizeGradBoxes",
    "CropAndResizeGradImage", "DeepCopy", "Dilation2DBackpropFilter", "Dilation2DBackpropInput",
    "Empty", "Enter", "Exit", "ExtractImagePatches", "FIFOQueueV2", "FixedLengthRecordReaderV2",
    "FractionalAvgPoolGrad", "FractionalMaxPoolGrad", "FusedBatchNormGrad",
    "FusedBatchNormGradV2", "FusedBatchNormGradV3", "GRUBlockCell", "HSVToRGB", "IRFFT",
    "IRFFT2D", "IRFFT3D", "IdentityReaderV2", "IgammaGradA", "Iterator", "IteratorV2",
    "LRNGrad", "LSTMBlockCell", "LoopCond", "Lu", "MatrixSolveLs", "MaxPoolGradWithArgmax",
    "Mod", "NextIteration", "OneShotIterator", "PaddingFIFOQueueV2", "ParallelConcat",
    "PriorityQueueV2", "Qr", "RFFT", "RFFT2D", "RFFT3D", "RaggedFillEmptyRowsGrad",
    "RandomGammaGrad", "RandomShuffleQueueV2", "RefEnter", "RefExit", "RefNextIteration",
    "ResizeArea", "ResizeBicubicGrad", "ResizeBilinearGrad", "ScaleAndTranslateGrad",
    "SoftsignGrad", "SparseDenseCwiseAdd", "SparseFillEmptyRowsGrad", "SparseReduceMax",
    "SparseReduceMaxSparse", "SparseSegmentMeanGrad", "SparseSegmentMeanGradV2",
    "SparseSegmentSqrtNGrad", "SparseSegmentSqrtNGradV2", "SparseSegmentSumGrad",
    "SparseSegmentSumGradV2", "SparseSparseMaximum", "SparseSparseMinimum", "Svd",
    "TFRecordReaderV2", "TextLineReaderV2", "Timestamp", "TruncateMod", "VarHandleOp",
    "Variable", "VariableV2", "WholeFileReaderV2"};
// clang-format on

// On the GPUs of this machine.
TEST(EveryOp, AttentionAgreesWithItsParts) {
  for (Device* device : test_devices()) expect_attention_agrees_with_its_parts(*device);
}

// On the GPUs of this machine.
TEST(EveryOp, LargeMatricesAgreeWithTheCpu) {
  for (Device* device : test_devices()) {
    if (device->type() == DeviceType::cpu) continue;
    EXPECT_GT(expect_large_matrices_agree_with_the_cpu(*device), 40);
  }
}

TEST(EveryOp, HasAGradientOrIsNotDifferentiable) {
  for (const OpDef* op : tested_ops()) {
    EXPECT_FALSE(op->gradient && op->is_not_differentiable) << op->name << " says both";
    EXPECT_EQ(!op->gradient && !op->is_not_differentiable, without_gradient.contains(op->name))
        << op->name << ": an op has a gradient or is_not_differentiable, unless "
        << "`without_gradient` lists it";
  }
}

}  // namespace
}  // namespace leat
