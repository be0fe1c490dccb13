// leat ops: the description of an op, and the answer to an unknown name.
#include "tools/leat/ops_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/support/child_process.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(OpsText, DescribesSignatureAttributesKernelsAndAnExample) {
  EXPECT_THAT(
      description_of_op("MatMul"),
      AllOf(StartsWith("MatMul(a: T, b: T) -> (product: T)\n"),
            HasSubstr("attributes\n  transpose_a: bool = false\n"), HasSubstr("\nkernels   CPU: "),
            HasSubstr("\ngradient  yes\n"), HasSubstr("\nexample\n  float[")));
  EXPECT_THAT(description_of_op("ArgMax"), HasSubstr("gradient  none: gradients() stops here"));
  EXPECT_THAT(description_of_op("RandomUniform"), HasSubstr("\nstate     runs in every step"));
}

TEST(OpsText, ExplainsOpsThatNoStepCanRun) {
  EXPECT_THAT(description_of_op("PyFunc"),
              AllOf(HasSubstr("no step can run it: the function lives in the client's process"),
                    Not(HasSubstr("kernels"))));
}

TEST(OpsText, SuggestsNamesForUnknownOps) {
  expect_error([] { description_of_op("MatMull"); }, Code::not_found,
               "there is no op \"MatMull\"; did you mean 'MatMul'?");
  expect_error([] { list_of_ops("quaternion"); }, Code::not_found,
               "no op has \"quaternion\" in its name or description");
}

TEST(OpsText, FiltersTheListIgnoringCase) {
  const std::string list = list_of_ops("softMAX");
  EXPECT_THAT(list, AllOf(HasSubstr("\nSoftmax "), HasSubstr("\nLogSoftmax "),
                          Not(HasSubstr("\nMatMul "))));
  EXPECT_THAT(list_of_ops(""), Not(HasSubstr("\n_")));
}

// After changing an op, run leat ops --markdown > docs/ops.md. The test runs the program, since its
// own registry also has the ops of tests.
TEST(OpsText, PageInDocsIsUpToDate) {
  ChildProcess program({LEAT_BIN_DIR "/leat", "ops", "--markdown"});
  ASSERT_EQ(program.wait(), 0);
  std::ifstream file(LEAT_TEST_DIR "/../docs/ops.md");
  std::stringstream page;
  page << file.rdbuf();
  EXPECT_TRUE(page.str() == program.output()) << "run: leat ops --markdown > docs/ops.md";
}

}  // namespace
}  // namespace leat
