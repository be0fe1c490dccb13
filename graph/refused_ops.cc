// Schemas of ops without any kernel. A client's graph often contains some that no step touches
// (readers, summaries of another program), so it must be readable; prune() refuses the steps that
// need one, with the reason given here.
#include "graph/refused_ops.h"

#include <array>
#include <vector>

#include "graph/op_def.h"

namespace leat {
namespace {

constexpr std::string_view function_gradients =
    "gradients of functions that the runtime makes are not supported: tf.gradients makes those of "
    "tf.function, tf.cond and tf.while_loop in the client";
constexpr std::string_view client_functions =
    "the function lives in the client's process and can never run on another task: compute it "
    "there and feed its result";
constexpr std::string_view input_pipelines =
    "tf.data is not supported: feed batches, or use queues and readers";

constexpr std::string_view complex_numbers =
    "complex numbers are not supported: compute with the real and the imaginary parts, or in the "
    "client's process";
constexpr std::string_view session_handles =
    "a cluster keeps no tensors for handles, as TensorFlow's does not: keep the value in a "
    "variable";
constexpr std::string_view old_checkpoints =
    "checkpoints are written in format V2: tf.train.Saver(write_version=tf.train.SaverDef.V2)";
constexpr std::string_view no_kernel = "there is no kernel for it";

using Strings = std::vector<std::string>;

struct Row {
  std::string_view reason;
  const char* name;
  Strings inputs, outputs, attrs;
};

const std::vector<Row>& rows() {
  static const Strings in_out = {"Tin: list(type) >= 0", "Tout: list(type) >= 0"};
  static const Strings named = {"container: string = ''", "shared_name: string = ''"};
  static const Strings types = {"output_types: list(type) >= 1", "output_shapes: list(shape) >= 1"};
  static const auto join = [](Strings a, const Strings& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  static const Strings to_complex = {"Treal: type = float", "Tcomplex: type = complex64"};
  static const Strings of_complex = {"Tcomplex: type = complex64"};
  static const Strings part = {"T: type = complex64", "Tout: type = float"};
  static const Strings any_type = {"T: type"};
  static const Strings mapped = join(types, {"f: func", "Targuments: list(type) >= 0"});

  static const std::vector<Row> all = {
      {function_gradients,
       "SymbolicGradient",
       {"input: Tin"},
       {"output: Tout"},
       join(in_out, {"f: func"})},

      {client_functions,
       "PyFunc",
       {"input: Tin"},
       {"output: Tout"},
       join(in_out, {"token: string"})},
      {client_functions,
       "PyFuncStateless",
       {"input: Tin"},
       {"output: Tout"},
       join(in_out, {"token: string"})},
      {client_functions,
       "EagerPyFunc",
       {"input: Tin"},
       {"output: Tout"},
       join(in_out, {"token: string", "is_async: bool = false"})},

      {input_pipelines, "Iterator", {}, {"handle: resource"}, join(types, named)},
      {input_pipelines, "IteratorV2", {}, {"handle: resource"}, join(types, named)},
      {input_pipelines,
       "OneShotIterator",
       {},
       {"handle: resource"},
       join(join(types, named), {"dataset_factory: func"})},
      {input_pipelines, "MakeIterator", {"dataset: variant", "iterator: resource"}, {}, {}},
      {input_pipelines,
       "IteratorGetNext",
       {"iterator: resource"},
       {"components: output_types"},
       types},
      {input_pipelines,
       "IteratorToStringHandle",
       {"resource_handle: resource"},
       {"string_handle: string"},
       {}},
      {input_pipelines,
       "TensorDataset",
       {"components: Toutput_types"},
       {"handle: variant"},
       {"Toutput_types: list(type) >= 1", "output_shapes: list(shape) >= 1"}},
      {input_pipelines,
       "TensorSliceDataset",
       {"components: Toutput_types"},
       {"handle: variant"},
       {"Toutput_types: list(type) >= 1", "output_shapes: list(shape) >= 1"}},
      {input_pipelines,
       "RangeDataset",
       {"start: int64", "stop: int64", "step: int64"},
       {"handle: variant"},
       types},
      {input_pipelines,
       "BatchDataset",
       {"input_dataset: variant", "batch_size: int64"},
       {"handle: variant"},
       types},
      {input_pipelines,
       "BatchDatasetV2",
       {"input_dataset: variant", "batch_size: int64", "drop_remainder: bool"},
       {"handle: variant"},
       types},
      {input_pipelines,
       "RepeatDataset",
       {"input_dataset: variant", "count: int64"},
       {"handle: variant"},
       types},
      {input_pipelines,
       "ShuffleDataset",
       {"input_dataset: variant", "buffer_size: int64", "seed: int64", "seed2: int64"},
       {"handle: variant"},
       types},
      {input_pipelines,
       "PrefetchDataset",
       {"input_dataset: variant", "buffer_size: int64"},
       {"handle: variant"},
       types},
      {input_pipelines,
       "MapDataset",
       {"input_dataset: variant", "other_arguments: Targuments"},
       {"handle: variant"},
       mapped},
      {input_pipelines,
       "FlatMapDataset",
       {"input_dataset: variant", "other_arguments: Targuments"},
       {"handle: variant"},
       mapped},

      {complex_numbers,
       "Complex",
       {"real: T", "imag: T"},
       {"out: Tout"},
       {"T: type = float", "Tout: type = complex64"}},
      {complex_numbers, "Real", {"input: T"}, {"output: Tout"}, part},
      {complex_numbers, "Imag", {"input: T"}, {"output: Tout"}, part},
      {complex_numbers, "Angle", {"input: T"}, {"output: Tout"}, part},
      {complex_numbers, "ComplexAbs", {"x: T"}, {"y: Tout"}, part},
      {complex_numbers, "Conj", {"input: T"}, {"output: T"}, {"T: type = complex64"}},
      {complex_numbers, "FFT", {"input: Tcomplex"}, {"output: Tcomplex"}, of_complex},
      {complex_numbers, "IFFT", {"input: Tcomplex"}, {"output: Tcomplex"}, of_complex},
      {complex_numbers, "FFT2D", {"input: Tcomplex"}, {"output: Tcomplex"}, of_complex},
      {complex_numbers, "IFFT2D", {"input: Tcomplex"}, {"output: Tcomplex"}, of_complex},
      {complex_numbers, "FFT3D", {"input: Tcomplex"}, {"output: Tcomplex"}, of_complex},
      {complex_numbers, "IFFT3D", {"input: Tcomplex"}, {"output: Tcomplex"}, of_complex},
      {complex_numbers,
       "RFFT",
       {"input: Treal", "fft_length: int32"},
       {"output: Tcomplex"},
       to_complex},
      {complex_numbers,
       "RFFT2D",
       {"input: Treal", "fft_length: int32"},
       {"output: Tcomplex"},
       to_complex},
      {complex_numbers,
       "RFFT3D",
       {"input: Treal", "fft_length: int32"},
       {"output: Tcomplex"},
       to_complex},
      {complex_numbers,
       "IRFFT",
       {"input: Tcomplex", "fft_length: int32"},
       {"output: Treal"},
       to_complex},
      {complex_numbers,
       "IRFFT2D",
       {"input: Tcomplex", "fft_length: int32"},
       {"output: Treal"},
       to_complex},
      {complex_numbers,
       "IRFFT3D",
       {"input: Tcomplex", "fft_length: int32"},
       {"output: Treal"},
       to_complex},
      {complex_numbers, "MatrixLogarithm", {"input: T"}, {"output: T"}, any_type},

      {session_handles, "GetSessionHandle", {"value: T"}, {"handle: string"}, any_type},
      {session_handles, "GetSessionHandleV2", {"value: T"}, {"handle: resource"}, any_type},
      {session_handles, "GetSessionTensor", {"handle: string"}, {"value: dtype"}, {"dtype: type"}},
      {session_handles, "DeleteSessionTensor", {"handle: string"}, {}, {}},
      {old_checkpoints,
       "SaveSlices",
       {"filename: string", "tensor_names: string", "shapes_and_slices: string", "data: T"},
       {},
       {"T: list(type) >= 1"}},

      {no_kernel, "MatrixSquareRoot", {"input: T"}, {"output: T"}, any_type},
      {no_kernel, "MatrixExponential", {"input: T"}, {"output: T"}, any_type},
      {no_kernel,
       "DecodeCompressed",
       {"bytes: string"},
       {"output: string"},
       {"compression_type: string = ''"}},
      {no_kernel, "UnicodeScript", {"input: int32"}, {"output: int32"}, {}},
      {no_kernel,
       "AudioSummary",
       {"tag: string", "tensor: float"},
       {"summary: string"},
       {"sample_rate: float", "max_outputs: int = 3"}},
  };
  return all;
}

// Registered before main() like all other ops.
const std::vector<Op> ops = [] {
  std::vector<Op> out;
  for (const Row& row : rows()) {
    out.emplace_back(OpDef{.name = row.name,
                           .doc = "Not supported: " + std::string(row.reason) + ".",
                           .inputs = row.inputs,
                           .outputs = row.outputs,
                           .attrs = row.attrs,
                           .is_stateful = true,
                           .is_not_differentiable = true});
  }
  return out;
}();

}  // namespace

std::string_view refusal(std::string_view op) {
  for (const Row& row : rows()) {
    if (row.name == op) return row.reason;
  }
  return {};
}

}  // namespace leat
