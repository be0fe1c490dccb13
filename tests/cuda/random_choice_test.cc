// Classes drawn on a GPU are those of the CPU, step after step, also where steps are recorded.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "frontends/cpp/session.h"
#include "graph/ops.h"
#include "tests/cuda/host_gpu.h"

namespace leat {
namespace {

// Logits of some rows; some are not finite.
Tensor logits(int64_t rows, int64_t classes) {
  Tensor out(f32, {rows, classes});
  for (int64_t i = 0; i < out.elements(); ++i)
    out.data<float>()[i] = 3 * std::sin(0.7F * static_cast<float>(i));
  out.data<float>()[1] = -std::numeric_limits<float>::infinity();
  out.data<float>()[classes - 1] = std::numeric_limits<float>::quiet_NaN();
  return out;
}

using Steps = std::vector<std::vector<int64_t>>;

Steps draw(const char* device, int64_t rows, int64_t classes, int64_t samples, AttrMap attrs) {
  Graph graph;
  const DeviceScope on{graph, device};
  const Output x = placeholder(graph, "x", f32, {rows, classes});
  const Output count = constant(graph, static_cast<int32_t>(samples));
  const Output chosen = cast(op("Multinomial", {x, count}, attrs), i64);
  Session session(graph, {.threads = 1});
  Steps out;
  for (int step = 0; step < 6; ++step)
    out.push_back(session.run({{x, logits(rows, classes)}}, chosen).to_vector<int64_t>());
  return out;
}

TEST(RandomChoice, DrawsTheClassesOfTheCpu) {
  (void)host_gpu();
  for (const DType dtype : {i32, i64}) {
    for (const auto& [rows, classes, samples] :
         {std::tuple{1, 2, 1}, {3, 7, 5}, {2, 3000, 33}, {70, 33, 2}}) {
      const AttrMap attrs = {{"seed", 3}, {"seed2", 7}, {"output_dtype", dtype}};
      const Steps here = draw("/device:CPU:0", rows, classes, samples, attrs);
      EXPECT_EQ(draw("/device:GPU:0", rows, classes, samples, attrs), here)
          << rows << " " << classes << " " << samples;
      const std::set<int64_t> first(here[0].begin(), here[0].begin() + samples);
      EXPECT_FALSE(first.contains(1)) << "its weight is 0 in the first row";
      if (samples > 30) {
        EXPECT_NE(here[0], here[1]);
      }
    }
  }
}

}  // namespace
}  // namespace leat
