// The example programs as users run them: real processes under `leat run`, on drawn digits.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>

#include "frontends/cpp/data/data.h"
#include "graph/import/graph_def.h"
#include "tests/support/sanitizers.h"

namespace leat {
namespace {

#ifdef LEAT_UNDER_SANITIZER
constexpr int limit_s = 400;
#else
constexpr int limit_s = 100;
#endif

struct Outcome {
  int exit_status = 0;
  std::string output;  // of both streams
};

Outcome run(const std::string& command) {
  Outcome out;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return {-1, "popen failed"};
  std::array<char, 4096> block{};
  while (const size_t n = fread(block.data(), 1, block.size(), pipe))
    out.output.append(block.data(), n);
  const int status = pclose(pipe);
  out.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return out;
}

class Examples : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::temp_directory_path() /
                 ("leat_example_" + std::to_string(getpid()) + "_" +
                  testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  // Runs an example and returns the test accuracy in percent that it printed.
  double accuracy_of(const std::string& program, const std::string& flags,
                     const std::string& run_flags = "",
                     const std::string& cluster = "local:ps=1,worker=2") {
    const std::string bin = LEAT_BIN_DIR;
    outcome_ = run("timeout " + std::to_string(limit_s) + " " + bin + "/leat run " + run_flags +
                   " " + cluster + " --log-dir " + directory_.string() + " -- " + bin +
                   "/examples/" + program + " --epochs 3 " + flags);
    EXPECT_EQ(outcome_.exit_status, 0) << outcome_.output;
    std::smatch found;
    EXPECT_TRUE(std::regex_search(outcome_.output, found, std::regex("test accuracy ([0-9.]+) %")))
        << outcome_.output;
    return found.empty() ? 0 : std::stod(found[1]);
  }

  std::filesystem::path directory_;
  Outcome outcome_;
};

TEST_F(Examples, AsynchronousParameterServerLearns) {
  EXPECT_GT(accuracy_of("mnist", "--strategy parameter_server"), 90.0) << outcome_.output;
}

TEST_F(Examples, SynchronousParameterServerLearns) {
  EXPECT_GT(accuracy_of("mnist", "--strategy parameter_server:staleness=0"), 90.0)
      << outcome_.output;
}

TEST_F(Examples, AllReduceLearnsWithoutAParameterServer) {
  for (const char* run_flags : {"", "--embed"}) {
    EXPECT_GT(accuracy_of("mnist", "--strategy all_reduce", run_flags, "local:worker=3"), 90.0)
        << outcome_.output;
  }
}

TEST_F(Examples, EveryStrategyLearns) {
  for (const char* strategy :
       {"one_device", "central_storage", "parameter_server:staleness=2", "local_sgd:steps=5",
        "bmuf:steps=5", "simu_parallel_sgd", "easgd:steps=5:moving_rate=0.2",
        "downpour:push=2:fetch=2", "admm:steps=10:rho=0.01", "pipeline", "automatic",
        "parameter_server:filter=significant:threshold=0.001", "all_reduce:replicas=per_worker"}) {
    EXPECT_GT(accuracy_of("mnist", std::string("--strategy ") + strategy), 85.0) << strategy << "\n"
                                                                                 << outcome_.output;
  }
}

// The workers' programs are their tasks. In the synchronous case one of them only computes for the
// chief, and stays until the chief is done.
TEST_F(Examples, EmbeddedProgramsLearn) {
  for (const char* strategy : {"parameter_server", "parameter_server:staleness=0"}) {
    EXPECT_GT(accuracy_of("mnist", std::string("--strategy ") + strategy, "--embed"), 90.0)
        << outcome_.output;
    EXPECT_EQ(outcome_.output.find("worker:0 task]"), std::string::npos) << outcome_.output;
  }
}

TEST_F(Examples, TensorParallelLearns) {
  for (const auto& [strategy, workers] : {std::pair{"tensor_parallel", "local:worker=2"},
                                          {"tensor_parallel:shards=2:data=2", "local:worker=4"}}) {
    EXPECT_GT(accuracy_of("mnist", std::string("--strategy ") + strategy, "", workers), 90.0)
        << strategy << "\n"
        << outcome_.output;
    EXPECT_NE(outcome_.output.find("hidden/kernel [784,128] split 1"), std::string::npos)
        << outcome_.output;
  }
}

// Four tasks check themselves against one device.
TEST_F(Examples, LocallyConnectedTasksExchangeTheirBorders) {
  const std::string bin = LEAT_BIN_DIR;
  const Outcome outcome = run("timeout " + std::to_string(limit_s) + " " + bin +
                              "/leat run local:worker=4 -- " + bin + "/examples/locally_connected");
  EXPECT_EQ(outcome.exit_status, 0) << outcome.output;
  std::smatch found;
  ASSERT_TRUE(
      std::regex_search(outcome.output, found, std::regex("4 strips: a step sends ([0-9]+) bytes")))
      << outcome.output;
  // Strips of the image; columns of both layers, and back those of the second; votes, and back.
  const int column = 16 * 16 * 4, votes = 16 * 10 * 4;
  EXPECT_EQ(std::stoi(found[1]), 3 * 4 * column + 6 * column + 2 * 6 * 8 * column + 2 * 3 * votes);
  EXPECT_NE(outcome.output.find("1 strips: a step sends 0 bytes"), std::string::npos)
      << outcome.output;
}

TEST_F(Examples, ModelParallelLearns) {
  EXPECT_GT(accuracy_of("model_parallel", ""), 90.0) << outcome_.output;
}

TEST_F(Examples, DataAndModelParallelLearns) {
  EXPECT_GT(accuracy_of("data_and_model_parallel", ""), 90.0) << outcome_.output;
}

TEST_F(Examples, ConvolutionalNetworkLearns) {
  EXPECT_GT(accuracy_of("mnist", "--strategy parameter_server:staleness=0 --model cnn"), 90.0)
      << outcome_.output;
}

TEST_F(Examples, LearnsWithRecomputation) {
  for (const char* recompute : {"layers", "auto"}) {
    EXPECT_GT(accuracy_of("mnist", std::string("--strategy parameter_server:staleness=0 --model "
                                               "cnn --recompute ") +
                                       recompute),
              90.0)
        << outcome_.output;
  }
  const Outcome outcome =
      run("timeout 60 " + std::string(LEAT_BIN_DIR) + "/examples/mnist --recompute all");
  EXPECT_NE(outcome.exit_status, 0);
  EXPECT_NE(outcome.output.find("--recompute: all not in {none,layers,auto}"), std::string::npos)
      << outcome.output;
}

TEST_F(Examples, LearnsInSixteenBits) {
  for (const char* format : {"bf16", "f16"}) {
    EXPECT_GT(accuracy_of("mnist", std::string("--strategy parameter_server:staleness=0 "
                                               "--mixed-precision ") +
                                       format),
              90.0)
        << outcome_.output;
  }
}

TEST_F(Examples, EveryOptimizerLearns) {
  for (const char* optimizer : {"sgd", "momentum"}) {
    EXPECT_GT(
        accuracy_of("mnist", std::string("--strategy parameter_server:staleness=0 --optimizer ") +
                                 optimizer),
        85.0)
        << optimizer << "\n"
        << outcome_.output;
  }
}

// MNIST's files, with digits that are drawn here.
void write_digits(const std::filesystem::path& directory, const data::Labelled& digits,
                  const std::string& name) {
  const auto count = static_cast<int>(digits.size());
  const auto big_endian = [](std::ofstream& out, std::initializer_list<int> numbers) {
    for (const int n : numbers)
      for (const int shift : {24, 16, 8, 0}) out.put(static_cast<char>(n >> shift));
  };
  std::ofstream images(directory / (name + "-images-idx3-ubyte"), std::ios::binary),
      labels(directory / (name + "-labels-idx1-ubyte"), std::ios::binary);
  big_endian(images, {0x803, count, 28, 28});
  for (const float x : digits.images.span<float>()) images.put(static_cast<char>(x * 255));
  big_endian(labels, {0x801, count});
  for (const int32_t x : digits.labels.span<int32_t>()) labels.put(static_cast<char>(x));
}

TEST_F(Examples, ConvolutionResumesFromItsCheckpoint) {
  const data::Digits digits = data::draw_digits(1000, 2000);
  write_digits(directory_, digits.train, "train");
  write_digits(directory_, digits.test, "t10k");
  const std::string program = std::string("timeout ") + std::to_string(limit_s) + " " +
                              LEAT_BIN_DIR + "/examples/convolution " + directory_.string();
  const std::string checkpoints = " " + (directory_ / "checkpoints").string();
  EXPECT_EQ(run(program + " 20" + checkpoints).exit_status, 0);
  const Outcome outcome = run(program + " 60" + checkpoints);
  EXPECT_EQ(outcome.exit_status, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("model.ckpt-20"), std::string::npos) << outcome.output;
  std::smatch found;
  ASSERT_TRUE(std::regex_search(outcome.output, found, std::regex("accuracy ([0-9.]+)")))
      << outcome.output;
  EXPECT_GT(std::stod(found[1]), 0.7) << outcome.output;
}

TEST_F(Examples, LstmReproducesItsText) {
  const Outcome outcome = run(std::string(LEAT_BIN_DIR) + "/examples/char_lstm");
  EXPECT_EQ(outcome.exit_status, 0) << outcome.output;
  std::smatch found;
  ASSERT_TRUE(std::regex_search(outcome.output, found, std::regex("step 200  loss ([^ \n]+)")))
      << outcome.output;
  EXPECT_LT(std::stod(found[1]), 1) << outcome.output;  // 4.9 before the first step
  EXPECT_NE(outcome.output.find("\nshe sells "), std::string::npos) << outcome.output;
}

TEST_F(Examples, ReportInvalidArguments) {
  const std::string bin = std::string(LEAT_BIN_DIR) + "/examples/";
  for (const auto& [command, text] :
       {std::pair{"char_lstm /no/such/text", "cannot read the text /no/such/text"},
        {"convolution", "usage: convolution DIR"},
        {"convolution . many", "usage: convolution DIR"},
        {"convolution /no/such/digits", "/no/such/digits"},
        {"locally_connected", "this program needs four workers"},
        {"ratings --parts none", "--parts"}}) {
    const Outcome outcome = run(bin + command);
    EXPECT_GT(outcome.exit_status, 0) << command;
    EXPECT_LT(outcome.exit_status, 128) << command;
    EXPECT_NE(outcome.output.find(text), std::string::npos) << command << "\n" << outcome.output;
  }
}

TEST_F(Examples, PartitionedTablesLearnOnTwoParameterServers) {
  const std::string bin = LEAT_BIN_DIR;
  const Outcome outcome =
      run("timeout " + std::to_string(limit_s) + " " + bin + "/leat run local:ps=2,worker=2 -- " +
          bin + "/examples/ratings --parts 3");
  EXPECT_EQ(outcome.exit_status, 0) << outcome.output;
  std::smatch found;
  ASSERT_TRUE(std::regex_search(outcome.output, found, std::regex("mean squared error ([^ \n]+)")))
      << outcome.output;
  EXPECT_LT(std::stod(found[1]), 0.01) << outcome.output;  // 4 at the beginning
}

TEST_F(Examples, ModelParallelGraphIsPlacedOnBothWorkers) {
  const std::string graph_file = (directory_ / "graph.pb").string(),
                    trace_file = (directory_ / "trace.json").string();
  accuracy_of("model_parallel", "--graph " + graph_file + " --trace " + trace_file);
  std::ifstream in(graph_file, std::ios::binary);
  Graph graph;
  from_graph_def(std::string(std::istreambuf_iterator<char>(in), {}), graph);
  int sends = 0, hidden = 0, logits = 0;
  for (const auto& node : graph.nodes()) {
    if (node->is("_Send")) ++sends;
    bool has_product = node->is("MatMul");
    if (node->is("_Fused")) {
      const auto& ops = node->attr<std::vector<std::string>>("ops");
      has_product = std::find(ops.begin(), ops.end(), "MatMul") != ops.end();
    }
    if (!has_product) continue;
    const bool on_first = *node->requested_device->task == 0;
    // Forward and backward products of the hidden layer are on worker 0, those of the output layer
    // on worker 1.
    (on_first ? hidden : logits) += 1;
  }
  EXPECT_GE(sends, 2);   // activations there, their gradients back
  EXPECT_EQ(hidden, 2);  // the gradient of the images is not needed
  EXPECT_EQ(logits, 3);
  std::ifstream trace(trace_file);
  const std::string events(std::istreambuf_iterator<char>(trace), {});
  EXPECT_NE(events.find("traceEvents"), std::string::npos);
  EXPECT_NE(events.find("/job:worker/replica:0/task:1"), std::string::npos)
      << events.substr(0, 2000);
}

TEST_F(Examples, NameADamagedDataFile) {
  std::ofstream(directory_ / "train-images-idx3-ubyte") << "not idx";
  const std::string bin = LEAT_BIN_DIR;
  const Outcome outcome =
      run("timeout 60 " + bin + "/examples/mnist --data " + directory_.string());
  EXPECT_EQ(outcome.exit_status, 1);
  EXPECT_NE(outcome.output.find("no train-labels file in"), std::string::npos) << outcome.output;
}

}  // namespace
}  // namespace leat
