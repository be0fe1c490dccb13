// GenerateVocabRemapping and LoadAndRemapMatrix: for tf.train.warm_start(), remap a matrix whose
// rows or columns belong to the words of a vocabulary that has changed since the checkpoint.
#include <limits>
#include <numeric>
#include <unordered_map>

#include "graph/formats/checkpoint.h"
#include "graph/op_def.h"
#include "graph/shape_inference.h"
#include "kernels/blocking.h"
#include "kernels/examples.h"
#include "kernels/extents.h"
#include "kernels/state/vocabulary.h"

namespace leat {
namespace {

// The line number of each of the first `most` words (-1: of all).
std::unordered_map<std::string, int64_t> numbered_words(const std::string& path, int64_t most,
                                                        const FileRoots& roots) {
  std::unordered_map<std::string, int64_t> words;
  const std::vector<std::string> lines =
      lines_of(path, most < 0 ? std::numeric_limits<int64_t>::max() : most, roots);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!words.emplace(lines[i], static_cast<int64_t>(i)).second)
      fail(Code::failed_precondition, "the vocabulary ", path, " contains '", lines[i], "' twice");
  }
  return words;
}

void generate_remapping(ExecuteContext& c) {
  const auto first = c.node().attr<int64_t>("new_vocab_offset"),
             count = c.node().attr<int64_t>("num_new_vocab");
  const std::string &new_path = c.input(0).item<std::string>(),
                    &old_path = c.input(1).item<std::string>();
  check(!new_path.empty() && !old_path.empty(), "the file names of vocabularies must not be empty");
  const FileRoots& roots = files_of(c.device());
  const auto old_words = numbered_words(old_path, c.node().attr<int64_t>("old_vocab_size"), roots);
  const std::vector<std::string> words = lines_of(new_path, sum_of_extents(first, count), roots);
  check(static_cast<int64_t>(words.size()) == first + count, "the vocabulary ", new_path, " has ",
        words.size(), " lines, but new_vocab_offset and num_new_vocab require ", first, " + ",
        count);
  Tensor remapping(i64, {count});
  int64_t found = 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto old = old_words.find(words[first + i]);
    remapping.data<int64_t>()[i] = old == old_words.end() ? -1 : old->second;
    found += old != old_words.end();
  }
  c.set_output(0, std::move(remapping));
  c.set_output(1, Tensor::scalar(static_cast<int32_t>(found)));
}

// The old row or column of each new one. TensorFlow does not support two new ones from one old one.
std::vector<int64_t> sources(const Tensor& remapping, int64_t count, int64_t extent,
                             const char* what) {
  std::vector<int64_t> out(count);
  check(remapping.elements() == count, "the remapping of ", what, "s has ", remapping.elements(),
        " numbers, expected ", count);
  std::unordered_map<int64_t, int64_t> seen;
  for (int64_t i = 0; i < count; ++i) {
    out[i] = remapping.data<int64_t>()[i];
    if (out[i] < 0) continue;
    check(out[i] < extent, what, " ", out[i], " is out of range: the old matrix has ", extent);
    if (!seen.emplace(out[i], i).second) {
      fail(Code::unimplemented, "Old ID ", out[i], " is mapped to both new ID ", seen[out[i]],
           " and ", i, ", which is not currently supported.");
    }
  }
  return out;
}

// Without a remapping, the columns stay the same.
std::vector<int64_t> source_columns(const Tensor& remapping, int64_t count, int64_t extent) {
  if (remapping.elements() > 0) return sources(remapping, count, extent, "column");
  check(count == extent, "without a remapping of columns the matrix keeps its ", extent,
        " columns, but num_cols is ", count);
  std::vector<int64_t> out(count);
  std::iota(out.begin(), out.end(), 0);
  return out;
}

void load_matrix(ExecuteContext& c) {
  check(c.input(0).elements() == 1 && c.input(1).elements() == 1,
        "ckpt_path and old_tensor_name must each be one string");
  for (const int i : {2, 3})
    check(c.input(i).shape().rank() == 1, i == 2 ? "row" : "col",
          "_remapping tensor must be 1-D, got shape ", c.input(i).shape());
  const CheckpointReader reader(*c.input(0).data<std::string>(), files_of(c.device()));
  const Tensor old = reader.read(*c.input(1).data<std::string>());
  check(old.dtype() == f32 && old.shape().rank() == 2, "'", *c.input(1).data<std::string>(),
        "' in the checkpoint must be a matrix of floats, but is ", old.dtype(), old.shape());
  const auto num_rows = c.node().attr<int64_t>("num_rows"),
             num_cols = c.node().attr<int64_t>("num_cols");
  const std::vector<int64_t> rows = sources(c.input(2), num_rows, old.shape()[0], "row"),
                             columns = source_columns(c.input(3), num_cols, old.shape()[1]);
  Tensor out(f32, {num_rows, num_cols});
  const Tensor& initial = c.input(4);
  int64_t used = 0;
  for (int64_t i = 0; i < num_rows; ++i) {
    for (int64_t j = 0; j < num_cols; ++j) {
      float& to = out.data<float>()[i * num_cols + j];
      if (rows[i] >= 0 && columns[j] >= 0) {
        to = old.data<float>()[rows[i] * old.shape()[1] + columns[j]];
        continue;
      }
      check(used < initial.elements(), "initializing_values has ", initial.elements(),
            " values, fewer than the new elements of the matrix");
      to = initial.data<float>()[used++];
    }
  }
  check(used == initial.elements(), "initializing_values has ", initial.elements(),
        " values, but the matrix has ", used, " new elements");
  c.set_output(0, std::move(out));
}

const Op generate_op{{
    .name = "GenerateVocabRemapping",
    .doc = "remapping[i] = the line of old_vocab_file with the word in line new_vocab_offset + i "
           "of new_vocab_file, or -1 if it is not there (or not in the first old_vocab_size "
           "lines); num_present = the number of words that are there.",
    .inputs = {"new_vocab_file: string", "old_vocab_file: string"},
    .outputs = {"remapping: int64", "num_present: int32"},
    .attrs = {"new_vocab_offset: int >= 0", "num_new_vocab: int >= 0",
              "old_vocab_size: int >= -1 = -1"},
    .shape =
        [](ShapeContext& c) {
          for (int i : {0, 1}) c.with_rank(i, 0);
          c.set_output(0, {c.attr<int64_t>("num_new_vocab")});
          c.set_output(1, {});
        },
    .kernels = {{.execute_async = blocking(generate_remapping)}},
    .is_not_differentiable = true,
}};

const Op load_op{{
    .name = "LoadAndRemapMatrix",
    .doc = "output_matrix[i, j] = element [row_remapping[i], col_remapping[j]] of the matrix "
           "old_tensor_name in a checkpoint, or the next of initializing_values where a remapping "
           "is -1. An empty col_remapping keeps the columns as they are.",
    .inputs = {"ckpt_path: string", "old_tensor_name: string", "row_remapping: int64",
               "col_remapping: int64", "initializing_values: float"},
    .outputs = {"output_matrix: float"},
    .attrs = {"num_rows: int >= 0", "num_cols: int >= 1", "max_rows_in_memory: int = -1"},
    .shape =
        [](ShapeContext& c) {
          for (int i : {2, 3}) c.with_rank(i, 1);
          c.set_output(0, {c.attr<int64_t>("num_rows"), c.attr<int64_t>("num_cols")});
        },
    .kernels = {{.execute_async = blocking(load_matrix)}},
    .is_stateful = true,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
