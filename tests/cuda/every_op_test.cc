// The plug-in's kernels, run on the host, through the table that tests every device: what
// tests/kernels/every_op_test.cc does where there is a GPU.
#include <gtest/gtest.h>

#include "tests/cuda/host_gpu.h"
#include "tests/kernels/agreement.h"

namespace leat {
namespace {

TEST(HostGpu, ExamplesHold) { EXPECT_GT(expect_examples_hold(host_gpu(), exactly()), 200); }

TEST(HostGpu, EveryOpAgreesWithTheCpu) {
  EXPECT_GT(expect_agreement_with_the_cpu(host_gpu(), exactly()), 500);
}

TEST(HostGpu, AttentionAgreesWithItsParts) {
  EXPECT_GT(expect_attention_agrees_with_its_parts(host_gpu(), exactly()), 20);
  refuse_attention();
  EXPECT_GT(expect_attention_agrees_with_its_parts(host_gpu(), exactly()), 20);
  refuse_attention(false);
}

TEST(HostGpu, LargeMatricesAgreeWithTheCpu) {
  EXPECT_GT(expect_large_matrices_agree_with_the_cpu(host_gpu(), exactly()), 40);
}

TEST(HostGpu, EveryOpAgreesWithTheCpuInAnotherOrderOfThreads) {
  (void)host_gpu();
  set_order_of_threads(20260101);
  EXPECT_GT(expect_agreement_with_the_cpu(host_gpu(), exactly()), 500);
  expect_attention_agrees_with_its_parts(host_gpu(), exactly());
  set_order_of_threads(0);
}

}  // namespace
}  // namespace leat
