// `leat viz` as users call it: files in, pictures out, and errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/support/child_process.h"
#include "tests/support/scratch_directory.h"

namespace leat {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class Viz : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_ / name; }
  std::string read(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // A chain of `count` nodes with an op unknown to Leat, on two tasks in turn.
  void write_graph(const std::string& name, int count) {
    std::ofstream file(path(name));
    for (int i = 0; i < count; ++i) {
      file << "node { name: \"layer_" << i / 10 << "/x" << i
           << "\" op: \"FutureOp\" device: \"/job:worker/task:" << i % 2 << "/device:CPU:0\"";
      if (i > 0) file << " input: \"layer_" << (i - 1) / 10 << "/x" << i - 1 << "\"";
      file << " attr { key: \"T\" value { type: DT_FLOAT } } attr { key: \"later\" value { b: true "
              "} } }\n";
    }
  }
  int viz(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {LEAT_BIN_DIR "/leat", "viz"});
    ChildProcess program(arguments);
    const int status = program.wait();
    output_ = program.output();
    return status;
  }

  const ScratchDirectory folder_;
  std::string output_;
};

TEST_F(Viz, DrawsUnknownOpsInEveryFormat) {
  write_graph("graph.pbtxt", 8);
  for (const auto& [format, start] : {std::pair{"svg", "<?xml"},
                                      {"png", "\x89PNG"},
                                      {"pdf", "%PDF"},
                                      {"dot", "digraph"},
                                      {"json", "{"}}) {
    const std::string out = std::string("graph.") + format;
    EXPECT_EQ(viz({path("graph.pbtxt"), "-o", path(out)}), 0) << output_;
    EXPECT_THAT(read(out), StartsWith(start)) << format;
  }
  EXPECT_THAT(read("graph.svg"), HasSubstr("FutureOp"));
  EXPECT_THAT(read("graph.svg"), HasSubstr("/job:worker/task:1 · CPU:0"));
  EXPECT_THAT(read("graph.svg"), HasSubstr("stroke-dasharray"));  // cables
}

TEST_F(Viz, WritesDotToStandardOutput) {
  write_graph("graph.pbtxt", 8);
  EXPECT_EQ(viz({path("graph.pbtxt")}), 0);
  EXPECT_THAT(output_, StartsWith("digraph"));
}

TEST_F(Viz, FailsIfThePictureCannotBeWritten) {
  write_graph("graph.pbtxt", 8);
  for (const std::string& arguments : {path("graph.pbtxt"), std::string("--help")}) {
    for (const std::string to : {">/dev/full", ">&-"}) {
      ChildProcess program({"/bin/bash", "-c", LEAT_BIN_DIR "/leat viz " + arguments + " " + to});
      EXPECT_EQ(program.wait(), 1) << arguments << to;
      EXPECT_THAT(program.output(), HasSubstr("cannot write to standard output"));
    }
  }
}

TEST_F(Viz, RejectsUnreadablyLargePicturesAndSuggestsFlags) {
  write_graph("graph.pbtxt", 700);
  EXPECT_EQ(viz({path("graph.pbtxt"), "--depth", "2", "-o", path("graph.svg")}), 2);
  EXPECT_THAT(output_, HasSubstr("700 boxes"));
  EXPECT_THAT(output_, HasSubstr("--max-nodes 600"));
  EXPECT_THAT(output_,
              HasSubstr("--depth 1 shows 2, --device /job:worker/task:0/device:CPU:0 shows 351"));
  EXPECT_FALSE(std::filesystem::exists(path("graph.svg")));
}

TEST_F(Viz, ReportsWhatIsWrongWithAFile) {
  EXPECT_EQ(viz({path("missing.pb")}), 2);
  EXPECT_THAT(output_, HasSubstr("missing.pb"));
  EXPECT_EQ(viz({path("")}), 2);
  EXPECT_THAT(output_, HasSubstr("is a directory"));
  std::ofstream(path("noise.pb"), std::ios::binary) << std::string("\x00\xff\x07 noise", 9);
  EXPECT_EQ(viz({path("noise.pb")}), 2);
  EXPECT_THAT(output_, HasSubstr("noise.pb is not a GraphDef"));
  std::ofstream(path("typo.pbtxt")) << "node { name: \"a\"\n  opp: 3 $ }";
  EXPECT_EQ(viz({path("typo.pbtxt")}), 2);
  EXPECT_THAT(output_, HasSubstr("line 2"));
  write_graph("graph.pbtxt", 2);
  EXPECT_EQ(viz({path("graph.pbtxt"), "-o", path("graph.gif")}), 2);
  EXPECT_THAT(output_, HasSubstr("svg, png, pdf, dot or json"));
}

}  // namespace
}  // namespace leat
