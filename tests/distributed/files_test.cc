// Two tasks of one process, one of which may reach only the files below a directory: every op that
// takes a path stays there, on that task, whichever client asks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "distributed/cluster_session.h"
#include "distributed/random_id.h"
#include "distributed/task.h"
#include "graph/formats/checkpoint.h"
#include "graph/formats/checkpoint_v1.h"
#include "graph/formats/file.h"
#include "graph/formats/records.h"
#include "graph/ops.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch_directory.h"

namespace leat {
namespace {

class LimitedFiles : public testing::Test {
 protected:
  LimitedFiles() {
    for (const char* name : {"in", "out"}) {
      std::filesystem::create_directories(directory / name);
      fill(concat(directory / name, "/"));
    }
    std::filesystem::create_directory_symlink(directory / "out", directory / "in/link");
    ClusterSpec spec;
    spec.add({"free", 0}, "127.0.0.1:0");
    spec.add({"ps", 0}, "127.0.0.1:0");
    spec.set_id(concat("test-", random_id()));
    ClusterSpec limited = spec;
    limited.set_files({directory / "in"});
    free_ = std::make_unique<Task>(spec, TaskName{"free", 0});
    ps_ = std::make_unique<Task>(limited, TaskName{"ps", 0});
    for (Task* task : {free_.get(), ps_.get()}) spec.set_address(task->name(), task->address());
    free_->start(spec);
    ps_->start(spec);
    free_->wait_for_peers();
    ps_->wait_for_peers();
  }

  // One file of every kind that an op reads.
  static void fill(const std::string& at) {
    replace_file(at + "lines", "one\ntwo\n");
    replace_file(at + "weights", "a,1\nb,2\n");
    replace_file(at + "records", framed_record("record"));
    CheckpointWriter v2(at + "v2");
    v2.add("w", Tensor::of<float>({2, 1}, {1, 2}));
    v2.finish();
    V1CheckpointWriter v1(at + "v1");
    v1.add("w", {2, 1}, TensorSlice::whole(2), Tensor::of<float>({2, 1}, {1, 2}));
    v1.finish();
  }

  // Runs an op of the ps for a client of the other task. `make` makes the node to run.
  using Make = std::function<Node*(Graph& graph, const std::string& path)>;
  void run(const Make& make, const std::string& path, const std::string& task = "/job:ps/task:0") {
    Graph graph;
    Node* node = nullptr;
    {
      const DeviceScope on(graph, task);
      node = make(graph, path);
    }
    SessionOptions options;
    options.target = free_->target();
    options.timeout = std::chrono::seconds(30);
    const auto session = make_grpc_session(options);
    session->extend(graph);
    session->run({}, {}, {node->name});
  }

  const ScratchDirectory directory;
  std::unique_ptr<Task> free_, ps_;
};

Output text(Graph& graph, const std::string& value) {
  return constant(graph, Tensor::scalar(value));
}
Output texts(Graph& graph, const std::string& value) {
  return constant(graph, Tensor::of<std::string>({1}, {value}));
}
Output number(Graph& graph, int64_t value) { return constant(graph, Tensor::scalar(value)); }
Output truth(Graph& graph, bool value) { return constant(graph, Tensor::scalar(value)); }
Output matrix(Graph& graph) { return constant(graph, Tensor::of<float>({2, 1}, {3, 4})); }

Node* add(Graph& graph, const char* op, std::vector<Output> inputs, AttrMap attrs = {}) {
  return &graph.add({.op = op, .inputs = std::move(inputs), .attrs = std::move(attrs)});
}

Node* first(Graph& graph, Node* dataset) {
  const AttrMap types = {{"output_types", std::vector<DType>{DType::string}},
                         {"output_shapes", std::vector<Shape>{Shape{}}}};
  Node* one = add(graph, "TakeDataset", {dataset->output(), number(graph, 1)}, types);
  return add(graph, "DatasetToSingleElement", {one->output()}, types);
}

Node* read_with(Graph& graph, const char* reader, const std::string& path, AttrMap attrs = {}) {
  const Output names = add(graph, "FIFOQueueV2", {},
                           {{"component_types", std::vector<DType>{DType::string}},
                            {"shapes", std::vector<Shape>{Shape{}}}})
                           ->output();
  Node* put = add(graph, "QueueEnqueueV2", {names, text(graph, path)});
  const Output handle = add(graph, reader, {}, std::move(attrs))->output();
  return &graph.add({.op = "ReaderReadV2", .inputs = {handle, names}, .control_inputs = {put}});
}

Node* cached(Graph& graph, const std::string& path) {
  const AttrMap types = {{"output_types", std::vector<DType>{DType::string}},
                         {"output_shapes", std::vector<Shape>{Shape{}}}};
  Node* source = add(graph, "TensorDataset", {text(graph, "element")},
                     {{"Toutput_types", std::vector<DType>{DType::string}},
                      {"output_shapes", std::vector<Shape>{Shape{}}}});
  return first(graph, add(graph, "CacheDataset", {source->output(), text(graph, path)}, types));
}

Node* table(Graph& graph, const std::string& path) {
  const Output handle =
      add(graph, "HashTableV2", {}, {{"key_dtype", DType::string}, {"value_dtype", i64}})->output();
  return add(graph, "InitializeTableFromTextFileV2", {handle, text(graph, path)},
             {{"key_index", int64_t{-2}}, {"value_index", int64_t{-1}}});
}

const AttrMap one_float = {{"dtypes", std::vector<DType>{f32}}};
const AttrMap one_float_v1 = {{"T", std::vector<DType>{f32}}};

struct Case {
  const char* name;
  const char* file;  // an existing file, or a new one
  Node* (*make)(Graph& g, const std::string& path);
};

const Case cases[] = {
    {"ReadFile", "lines",
     [](Graph& g, const std::string& path) { return add(g, "ReadFile", {text(g, path)}); }},
    {"WriteFile", "new",
     [](Graph& g, const std::string& path) {
       return add(g, "WriteFile", {text(g, path), text(g, "x")});
     }},
    {"WriteFile makes directories", "new1/new2/new",
     [](Graph& g, const std::string& path) {
       return add(g, "WriteFile", {text(g, path), text(g, "x")});
     }},
    {"MatchingFiles", "*",
     [](Graph& g, const std::string& path) { return add(g, "MatchingFiles", {text(g, path)}); }},
    {"PrintV2", "printed",
     [](Graph& g, const std::string& path) {
       return add(g, "PrintV2", {text(g, "line")}, {{"output_stream", "file://" + path}});
     }},
    {"SaveV2", "saved",
     [](Graph& g, const std::string& path) {
       return add(g, "SaveV2", {text(g, path), texts(g, "w"), texts(g, ""), matrix(g)}, one_float);
     }},
    {"RestoreV2", "v2",
     [](Graph& g, const std::string& path) {
       return add(g, "RestoreV2", {text(g, path), texts(g, "w"), texts(g, "")}, one_float);
     }},
    {"RestoreV2 of V1", "v1",
     [](Graph& g, const std::string& path) {
       return add(g, "RestoreV2", {text(g, path), texts(g, "w"), texts(g, "")}, one_float);
     }},
    {"MergeV2Checkpoints", "merged",
     [](Graph& g, const std::string& path) {
       Node* part =
           &g.add({.op = "SaveV2",
                   .inputs = {text(g, path + "_part"), texts(g, "w"), texts(g, ""), matrix(g)},
                   .attrs = one_float});
       return &g.add({.op = "MergeV2Checkpoints",
                      .inputs = {texts(g, path + "_part"), text(g, path)},
                      .control_inputs = {part}});
     }},
    {"Save", "saved1",
     [](Graph& g, const std::string& path) {
       return add(g, "Save", {text(g, path), texts(g, "w"), matrix(g)}, one_float_v1);
     }},
    {"SaveSlices", "saved2",
     [](Graph& g, const std::string& path) {
       return add(g, "SaveSlices", {text(g, path), texts(g, "w"), texts(g, ""), matrix(g)},
                  one_float_v1);
     }},
    {"Restore", "v1",
     [](Graph& g, const std::string& path) {
       return add(g, "Restore", {text(g, path), text(g, "w")}, {{"dt", f32}});
     }},
    {"Restore with a wildcard", "v1*",
     [](Graph& g, const std::string& path) {
       return add(g, "Restore", {text(g, path), text(g, "w")}, {{"dt", f32}});
     }},
    {"RestoreSlice", "v2",
     [](Graph& g, const std::string& path) {
       return add(g, "RestoreSlice", {text(g, path), text(g, "w"), text(g, "2 1 0,1:-")},
                  {{"dt", f32}});
     }},
    {"LoadAndRemapMatrix", "v2",
     [](Graph& g, const std::string& path) {
       return add(g, "LoadAndRemapMatrix",
                  {text(g, path), text(g, "w"), constant(g, Tensor::of<int64_t>({2}, {1, 0})),
                   constant(g, Tensor(i64, {0})), constant(g, Tensor(f32, {0}))},
                  {{"num_rows", int64_t{2}}, {"num_cols", int64_t{1}}});
     }},
    {"GenerateVocabRemapping", "lines",
     [](Graph& g, const std::string& path) {
       return add(g, "GenerateVocabRemapping", {text(g, path), text(g, path)},
                  {{"new_vocab_offset", int64_t{0}}, {"num_new_vocab", int64_t{2}}});
     }},
    {"InitializeTableFromTextFileV2", "lines", table},
    {"FixedUnigramCandidateSampler", "weights",
     [](Graph& g, const std::string& path) {
       return add(g, "FixedUnigramCandidateSampler",
                  {constant(g, Tensor::of<int64_t>({1, 1}, {0}))},
                  {{"num_true", int64_t{1}},
                   {"num_sampled", int64_t{1}},
                   {"unique", false},
                   {"range_max", int64_t{2}},
                   {"vocab_file", path}});
     }},
    {"TextLineReaderV2", "lines",
     [](Graph& g, const std::string& path) { return read_with(g, "TextLineReaderV2", path); }},
    {"TFRecordReaderV2", "records",
     [](Graph& g, const std::string& path) { return read_with(g, "TFRecordReaderV2", path); }},
    {"WholeFileReaderV2", "lines",
     [](Graph& g, const std::string& path) { return read_with(g, "WholeFileReaderV2", path); }},
    {"FixedLengthRecordReaderV2", "lines",
     [](Graph& g, const std::string& path) {
       return read_with(g, "FixedLengthRecordReaderV2", path, {{"record_bytes", int64_t{4}}});
     }},
    {"TextLineDataset", "lines",
     [](Graph& g, const std::string& path) {
       return first(g, add(g, "TextLineDataset", {text(g, path), text(g, ""), number(g, 0)}));
     }},
    {"TFRecordDataset", "records",
     [](Graph& g, const std::string& path) {
       return first(g, add(g, "TFRecordDataset", {text(g, path), text(g, ""), number(g, 0)}));
     }},
    {"FixedLengthRecordDatasetV2", "lines",
     [](Graph& g, const std::string& path) {
       return first(g, add(g, "FixedLengthRecordDatasetV2",
                           {text(g, path), number(g, 0), number(g, 4), number(g, 0), number(g, 0),
                            text(g, "")}));
     }},
    {"CSVDataset", "lines",
     [](Graph& g, const std::string& path) {
       return first(g,
                    add(g, "CSVDataset",
                        {text(g, path), text(g, ""), number(g, 9), truth(g, false), text(g, ","),
                         truth(g, false), text(g, ""), constant(g, Tensor(i64, {0})), texts(g, "")},
                        {{"output_types", std::vector<DType>{DType::string}},
                         {"output_shapes", std::vector<Shape>{Shape{}}}}));
     }},
    {"CacheDataset", "cache", cached},
};

TEST_F(LimitedFiles, EveryOpStaysBelowTheDirectories) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_NO_THROW(run(c.make, concat(directory / "in/", c.file)));
    EXPECT_NO_THROW(run(c.make, concat(directory / "out/", c.file), "/job:free/task:0"));
    std::filesystem::remove_all(directory / "out");
    std::filesystem::create_directories(directory / "out");
    fill(directory / "out/");
    for (const char* at : {"out/", "in/../out/", "in/link/", "/proc/self/root/"}) {
      const std::string path =
          at[0] == '/' ? at + (directory / "out/") + c.file : concat(directory / at, c.file);
      expect_error_with(Code::permission_denied, "files below " + (directory / "in"),
                        [&] { run(c.make, path); });
    }
    EXPECT_THAT(names_in(directory / "out"), testing::SizeIs(6)) << "something is new there";
  }
}

TEST(LimitedFilesOfATask, MissingDirectoryFails) {
  ClusterSpec spec;
  spec.add({"ps", 0}, "127.0.0.1:0");
  spec.set_files({"/nonexistent"});
  expect_error_with(Code::not_found, "there is no directory /nonexistent", [&] {
    Task(spec, {"ps", 0});
  });
}

}  // namespace
}  // namespace leat
