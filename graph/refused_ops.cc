// Schemas of ops without any kernel. A client's graph often contains some that no step touches
// (readers, summaries of another program), so it must be readable; prune() refuses the steps that
// need one, with the reason given here.
#include "graph/refused_ops.h"

#include <array>
#include <vector>

#include "graph/op_def.h"

namespace leat {
namespace {

constexpr std::string_view client_functions =
    "the function lives in the client's process and can never run on another task: compute it "
    "there and feed its result";
constexpr std::string_view other_datasets =
    "this part of tf.data is not supported: map, filter, shuffle, batch, window, scan, interleave "
    "and the like are";

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
  static const auto join = [](Strings a, const Strings& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  static const Strings any_type = {"T: type"};

  static const std::vector<Row> all = {
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

      {other_datasets,
       "ShuffleDatasetV2",
       {"input_dataset: variant", "buffer_size: int64", "seed_generator: resource"},
       {"handle: variant"},
       {"output_types: list(type) >= 1", "output_shapes: list(shape) >= 1",
        "metadata: string = ''"}},
      {other_datasets,
       "SnapshotDatasetV2",
       {"input_dataset: variant", "path: string", "reader_func_other_args: Treader_func_args",
        "shard_func_other_args: Tshard_func_args"},
       {"handle: variant"},
       {"output_types: list(type) >= 1", "output_shapes: list(shape) >= 1",
        "compression: string = ''", "reader_prefix: string = ''", "writer_prefix: string = ''",
        "hash_valid: bool = false", "hash: int = 0", "reader_func: func", "shard_func: func",
        "Treader_func_args: list(type) >= 0", "Tshard_func_args: list(type) >= 0",
        "metadata: string = ''"}},
      {client_functions,
       "GeneratorDataset",
       {"init_func_other_args: Tinit_func_args", "next_func_other_args: Tnext_func_args",
        "finalize_func_other_args: Tfinalize_func_args"},
       {"handle: variant"},
       {"init_func: func", "next_func: func", "finalize_func: func",
        "Tinit_func_args: list(type) >= 0", "Tnext_func_args: list(type) >= 0",
        "Tfinalize_func_args: list(type) >= 0", "output_types: list(type) >= 1",
        "output_shapes: list(shape) >= 1", "metadata: string = ''"}},

      {no_kernel, "MatrixLogarithm", {"input: T"}, {"output: T"}, any_type},

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
