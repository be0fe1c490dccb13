// Convolutions in parts and as products, against convolutions as a whole.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "core/device.h"
#include "core/execution/thread_pool.h"
#include "kernels/neural/convolution.h"

namespace leat {
namespace {

struct Case {
  const char* name;
  Convolution c;
};

Window window(int64_t in, int64_t size, int64_t stride, int64_t dilation, int64_t before,
              int64_t after) {
  Window w{.in = in,
           .size = size,
           .stride = stride,
           .dilation = dilation,
           .before = before,
           .after = after};
  w.out = (in + before + after - (size - 1) * dilation - 1) / stride + 1;
  return w;
}

const Case cases[] = {
    {"OneImage",
     {.batch = 1,
      .in_channels = 8,
      .out_channels = 16,
      .height = window(13, 3, 1, 1, 1, 1),
      .width = window(9, 3, 1, 1, 1, 1)}},
    {"Batch",
     {.batch = 5,
      .in_channels = 3,
      .out_channels = 8,
      .height = window(11, 5, 2, 1, 2, 2),
      .width = window(10, 3, 1, 1, 0, 0)}},
    {"StridesWiderThanTheFilter",
     {.batch = 2,
      .in_channels = 4,
      .out_channels = 4,
      .height = window(17, 2, 5, 1, 0, 0),
      .width = window(8, 2, 3, 1, 0, 1)}},
    {"Dilations",
     {.batch = 2,
      .in_channels = 8,
      .out_channels = 8,
      .height = window(20, 3, 1, 4, 4, 4),
      .width = window(12, 3, 1, 2, 2, 2)}},
    {"Groups",
     {.batch = 1,
      .in_channels = 8,
      .out_channels = 16,
      .groups = 8,
      .height = window(12, 3, 1, 1, 1, 1),
      .width = window(12, 3, 1, 1, 1, 1)}},
    {"ChannelsFirst",
     {.batch = 4,
      .in_channels = 4,
      .out_channels = 8,
      .height = window(9, 3, 1, 1, 1, 1),
      .width = window(9, 3, 1, 1, 1, 1),
      .channels_first = true}},
    {"Pointwise",
     {.batch = 3,
      .in_channels = 5,
      .out_channels = 7,
      .height = window(4, 1, 1, 1, 0, 0),
      .width = window(6, 1, 1, 1, 0, 0)}},
    {"FilterInBlocks",
     {.batch = 1,
      .in_channels = 201,  // neither fills its last vector
      .out_channels = 403,
      .height = window(5, 3, 1, 1, 1, 1),
      .width = window(5, 3, 1, 1, 1, 1)}},
    {"Volume",
     {.batch = 2,
      .in_channels = 4,
      .out_channels = 8,
      .planes = window(7, 3, 1, 1, 1, 1),
      .height = window(6, 3, 1, 1, 1, 1),
      .width = window(5, 3, 2, 1, 1, 1)}},
};

class ConvolutionPartsTest : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Cases, ConvolutionPartsTest, testing::ValuesIn(cases),
                         [](const auto& info) { return info.param.name; });

std::vector<float> numbers(int64_t n, std::mt19937& random) {
  std::vector<float> out(n);
  for (float& x : out) x = std::uniform_real_distribution<float>(-1, 1)(random);
  return out;
}

template <class Run>
std::vector<float> run(const Run& run, Stream& stream, const std::vector<float>& a,
                       const std::vector<float>& b, int64_t n) {
  std::vector<float> out(n, NAN);
  const auto workspace = Buffer::allocate(run.workspace_bytes() + 64);
  std::memset(workspace->data(), 0xff, workspace->bytes());  // NaN: nothing is there before
  run(stream, a.data(), b.data(), out.data(), workspace->data());
  return out;
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(a[i] - b[i]);
    most = std::isnan(difference) ? 1e9 : std::max(most, difference);
  }
  return most;
}

TEST_P(ConvolutionPartsTest, EqualTheWhole) {
  const Convolution& c = GetParam().c;
  std::mt19937 random(1);
  const std::vector<float> x = numbers(c.x_elements(), random), y = numbers(c.y_elements(), random),
                           filter = numbers(c.filter_elements(), random);
  ThreadPool pool(3);
  const auto device =
      make_cpu_device(DeviceName::parse("/job:localhost/replica:0/task:0/device:CPU:0"), pool);
  struct Pass {
    ConvolutionPass pass;
    const std::vector<float>&a, &b;
    int64_t n;
  };
  for (const Pass& p : {Pass{ConvolutionPass::forward, x, filter, c.y_elements()},
                        Pass{ConvolutionPass::input_gradient, y, filter, c.x_elements()},
                        Pass{ConvolutionPass::filter_gradient, x, y, c.filter_elements()}}) {
    const std::vector<float> whole =
        run(FloatConvolution(p.pass, c, int64_t{1}), device->stream(), p.a, p.b, p.n);
    for (const int64_t count : {2, 3, 7, 16, 100}) {
      const std::vector<float> parts =
          run(FloatConvolution(p.pass, c, count), device->stream(), p.a, p.b, p.n);
      EXPECT_LT(distance(whole, parts), 1e-3)
          << "pass " << static_cast<int>(p.pass) << ", " << count << " parts";
    }
    if (!ConvolutionProduct::is_possible(p.pass, c)) continue;
    const std::vector<float> product =
        run(ConvolutionProduct(p.pass, c), device->stream(), p.a, p.b, p.n);
    EXPECT_LT(distance(whole, product), 1e-3)
        << "pass " << static_cast<int>(p.pass) << ", as a product";
  }
}

}  // namespace
}  // namespace leat
