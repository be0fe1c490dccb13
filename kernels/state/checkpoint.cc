// Checkpoints as ops, run where each task's variables are: SaveV2, RestoreV2, MergeV2Checkpoints;
// Save, SaveSlices, Restore and RestoreSlice of the previous format. They wait for the disk, so
// they run on threads of their own.
#include "graph/formats/checkpoint.h"

#include "graph/formats/checkpoint_v1.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/blocking.h"
#include "kernels/cpu.h"

namespace leat {
namespace {

std::span<const std::string> strings(const ExecuteContext& c, int input) {
  return c.input(input).span<std::string>();
}

Tensor read_part(const CheckpointReader& reader, const std::string& name, std::string_view part) {
  const ShapeAndSlice wanted = ShapeAndSlice::parse(part);
  return wanted.is_whole ? reader.read(name) : reader.read_slice(name, wanted.full, wanted.slice);
}

void check_names(const ExecuteContext& c, int64_t tensors) {
  check(c.input(1).elements() == tensors && c.input(2).elements() == tensors, "there are ", tensors,
        " tensors, ", c.input(1).elements(), " tensor_names and ", c.input(2).elements(),
        " shape_and_slices: the three numbers must be equal");
}

void save(ExecuteContext& c) {
  const int tensors = c.num_inputs() - 3;
  check_names(c, tensors);
  CheckpointWriter writer(c.input(0).item<std::string>(), files_of(c.device()));
  for (int i = 0; i < tensors; ++i) {
    const std::string& name = strings(c, 1)[i];
    const ShapeAndSlice part = ShapeAndSlice::parse(strings(c, 2)[i]);
    if (part.is_whole) {
      writer.add(name, c.input(3 + i));
    } else {
      writer.add_slice(name, part.full, part.slice, c.input(3 + i));
    }
  }
  writer.finish();
}

void restore(ExecuteContext& c) {
  const auto& dtypes = c.node().attr<std::vector<DType>>("dtypes");
  check_names(c, static_cast<int64_t>(dtypes.size()));
  const CheckpointReader reader(c.input(0).item<std::string>(), files_of(c.device()));
  // Reports all mismatches at once, so that whoever restores another program's checkpoint sees them
  // all.
  std::string missing, different;
  for (size_t i = 0; i < dtypes.size(); ++i) {
    const std::string& name = strings(c, 1)[i];
    if (!reader.has(name)) {
      missing += (missing.empty() ? "Key " : ", key ") + name;
      continue;
    }
    const CheckpointEntry& entry = reader.entry(name);
    if (entry.dtype != dtypes[i]) {
      different += concat("\n  ", name, ": ", entry.dtype, " in the checkpoint, ", dtypes[i],
                          " in the graph");
    }
    const ShapeAndSlice part = ShapeAndSlice::parse(strings(c, 2)[i]);
    if (!part.is_whole && !(part.full == entry.shape)) {
      different += concat("\n  ", name, ": ", entry.shape, " in the checkpoint, ", part.full,
                          " in the graph");
    }
  }
  const std::string& prefix = c.input(0).item<std::string>();
  if (!missing.empty()) fail(Code::not_found, missing, " not found in checkpoint ", prefix);
  check(different.empty(), "the checkpoint ", prefix, " does not fit the graph:", different);
  for (size_t i = 0; i < dtypes.size(); ++i) {
    c.set_output(static_cast<int>(i), read_part(reader, strings(c, 1)[i], strings(c, 2)[i]));
  }
}

// `has_slices`: an input gives the part that each tensor is.
template <bool has_slices>
void save_v1(ExecuteContext& c) {
  constexpr int first = has_slices ? 3 : 2;
  const int tensors = c.num_inputs() - first;
  if (has_slices) check_names(c, tensors);
  check(c.input(1).elements() == tensors, "there are ", tensors, " tensors and ",
        c.input(1).elements(), " tensor_names");
  V1CheckpointWriter writer(c.input(0).item<std::string>(), files_of(c.device()));
  for (int i = 0; i < tensors; ++i) {
    const Tensor& tensor = c.input(first + i);
    const ShapeAndSlice part =
        has_slices ? ShapeAndSlice::parse(strings(c, 2)[i]) : ShapeAndSlice();
    writer.add(strings(c, 1)[i], part.is_whole ? tensor.shape() : part.full,
               part.is_whole ? TensorSlice::whole(tensor.shape().rank()) : part.slice, tensor);
  }
  writer.finish();
}

template <bool has_slice>
void restore_v1(ExecuteContext& c) {
  const std::string& name = c.input(1).item<std::string>();
  const auto dtype = c.node().attr<DType>("dt");
  const CheckpointReader reader(c.input(0).item<std::string>(), files_of(c.device()));
  const CheckpointEntry& entry = reader.entry(name);
  check(entry.dtype == dtype, "'", name, "' is ", entry.dtype, " in the checkpoint ",
        c.input(0).item<std::string>(), ", not ", dtype);
  c.set_output(0, read_part(reader, name, has_slice ? c.input(2).item<std::string>() : ""));
}

void merge(ExecuteContext& c) {
  const std::span<const std::string> prefixes = strings(c, 0);
  merge_checkpoints({prefixes.begin(), prefixes.end()}, c.input(1).item<std::string>(),
                    c.node().attr<bool>("delete_old_dirs"),
                    c.node().attr<bool>("allow_missing_files"), files_of(c.device()));
}

// Inputs 0 to 2: a prefix, names, and a slice for each name.
void check_key_ranks(ShapeContext& c) {
  c.with_rank(0, 0);
  c.with_rank(1, 1);
  c.with_rank(2, 1);
}

const Op save_op{{
    .name = "SaveV2",
    .doc = "Writes the tensors as the checkpoint `prefix`, under tensor_names. An element of "
           "shape_and_slices is empty, or says which part of a partitioned variable a tensor is: "
           "\"10 20 0,5:-\".",
    .inputs = {"prefix: string", "tensor_names: string", "shape_and_slices: string",
               "tensors: dtypes"},
    .attrs = {"dtypes: list(type) >= 1"},
    .shape = check_key_ranks,
    .kernels = {{.execute_async = blocking(save)}},
    .is_stateful = true,
    .is_not_differentiable = true,
}};

const Op restore_op{{
    .name = "RestoreV2",
    .doc = "tensors = those of the checkpoint `prefix` called tensor_names, or the parts of them "
           "that shape_and_slices asks for, wherever they were cut when they were saved.",
    .inputs = {"prefix: string", "tensor_names: string", "shape_and_slices: string"},
    .outputs = {"tensors: dtypes"},
    .attrs = {"dtypes: list(type) >= 1"},
    .shape = check_key_ranks,
    .kernels = {{.execute_async = blocking(restore)}},
    .is_stateful = true,
    .is_not_differentiable = true,
}};

const Op merge_op{{
    .name = "MergeV2Checkpoints",
    .doc = "Joins the checkpoints that several tasks wrote to one, destination_prefix. Data files "
           "are renamed, so all tasks must see one file system. With allow_missing_files, "
           "prefixes of which there is no checkpoint are passed over, but not all of them.",
    .inputs = {"checkpoint_prefixes: string", "destination_prefix: string"},
    .attrs = {"delete_old_dirs: bool = true", "allow_missing_files: bool = false"},
    .shape =
        [](ShapeContext& c) {
          c.with_rank(0, 1);
          c.with_rank(1, 0);
        },
    .kernels = {{.execute_async = blocking(merge)}},
    .is_stateful = true,
    .is_not_differentiable = true,
}};

// Ops of format V1.

void check_scalars(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) c.with_rank(i, 0);
}

const Op save_v1_op{{
    .name = "Save",
    .doc = "Writes the tensors as a checkpoint of TensorFlow's old format V1, one file, under "
           "tensor_names.",
    .inputs = {"filename: string", "tensor_names: string", "data: T"},
    .attrs = {"T: list(type) >= 1"},
    .shape =
        [](ShapeContext& c) {
          c.with_rank(0, 0);
          c.with_rank(1, 1);
        },
    .kernels = {{.execute_async = blocking(save_v1<false>)}},
    .is_stateful = true,
    .is_not_differentiable = true,
}};

const Op save_slices_op{{
    .name = "SaveSlices",
    .doc = "Save; an element of shapes_and_slices is empty, or says which part of a partitioned "
           "variable a tensor is.",
    .inputs = {"filename: string", "tensor_names: string", "shapes_and_slices: string", "data: T"},
    .attrs = {"T: list(type) >= 1"},
    .shape = check_key_ranks,
    .kernels = {{.execute_async = blocking(save_v1<true>)}},
    .is_stateful = true,
    .is_not_differentiable = true,
}};

const Op restore_v1_op{{
    .name = "Restore",
    .doc = "tensor = the tensor called tensor_name of the checkpoint file_pattern, which may have "
           "either format. preferred_shard is where TensorFlow would look first.",
    .inputs = {"file_pattern: string", "tensor_name: string"},
    .outputs = {"tensor: dt"},
    .attrs = {"dt: type", "preferred_shard: int = -1"},
    .shape = check_scalars,
    .kernels = {{.execute_async = blocking(restore_v1<false>)}},
    .is_stateful = true,
    .is_not_differentiable = true,
}};

const Op restore_slice_op{{
    .name = "RestoreSlice",
    .doc =
        "Restore of the part that shape_and_slice names, or of the whole tensor if that is empty.",
    .inputs = {"file_pattern: string", "tensor_name: string", "shape_and_slice: string"},
    .outputs = {"tensor: dt"},
    .attrs = {"dt: type", "preferred_shard: int = -1"},
    .shape = check_scalars,
    .kernels = {{.execute_async = blocking(restore_v1<true>)}},
    .is_stateful = true,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
