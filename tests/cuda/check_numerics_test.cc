// CheckNumerics on a GPU: the CPU's errors, before anything depends on the numbers.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "frontends/cpp/nn/nn.h"
#include "frontends/cpp/session.h"
#include "graph/ops.h"
#include "kernels/examples.h"
#include "tests/cuda/host_gpu.h"
#include "tests/kernels/agreement.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

class CheckNumerics : public testing::Test {
 protected:
  CheckNumerics() { (void)host_gpu(); }

  // A variable to which x is assigned, if all of its numbers are finite.
  struct Program {
    Graph graph;
    Output x, checked, assigned, kept;
    Program(const std::string& device, DType dtype, const Shape& shape) {
      const DeviceScope on{graph, device};
      x = placeholder(graph, "x", dtype, shape);
      const std::vector<double> zeros(shape.elements());
      kept = variable(graph, "kept", from_doubles(dtype, shape, zeros));
      checked = check_numerics(x * 1.0, "the loss");
      assigned = assign(kept, checked);
    }
  };

  // What a step with these numbers says, but for the place and the line.
  static std::string outcome_of(const std::string& device, const Tensor& value) {
    Program program(device, value.dtype(), value.shape());
    Session session(program.graph, {.threads = 1});
    session.initialize();
    const Status status = error_of([&] { session.run({{program.x, value}}, {program.assigned}); });
    const std::vector<double> kept = to_doubles(session.run(program.kept)),
                              given = to_doubles(value);
    if (status.is_ok()) {
      EXPECT_EQ(kept, given);
      return "OK";
    }
    EXPECT_EQ(kept, std::vector<double>(kept.size())) << "the variable was updated";
    EXPECT_NE(status.message.find("CheckNumerics on"), std::string::npos) << status.message;
    EXPECT_NE(status.message.find(device), std::string::npos) << status.message;
    return status.to_string().substr(0, status.to_string().find(" (CheckNumerics"));
  }
};

TEST_F(CheckNumerics, SaysWhatTheCpuSays) {
  for (const DType dtype : {f32, f64, DType::f16, DType::bf16}) {
    for (const int64_t n : {1, 33, 5000}) {
      const auto with = [&](std::initializer_list<double> last) {
        std::vector<double> values(n, 0.5);
        std::copy(last.begin(), last.end(), values.end() - std::min<int64_t>(n, last.size()));
        return from_doubles(dtype, {n}, values);
      };
      const std::string what = concat(dtype, " ", n);
      const auto expect = [&](const Tensor& value, const std::string& expected) {
        EXPECT_EQ(outcome_of("/device:GPU:0", value), expected) << what;
        EXPECT_EQ(outcome_of("/device:CPU:0", value), expected) << what;
      };
      const std::string error = "INVALID_ARGUMENT: the loss : Tensor had ";
      expect(with({}), "OK");
      expect(with({nan}), error + "NaN values");
      expect(with({-infinity}), error + "Inf values");
      if (n > 1) expect(with({infinity, nan}), error + "Inf and NaN values");
    }
  }
}

TEST_F(CheckNumerics, AnswersEachStepAnew) {
  Program program("/device:GPU:0", f32, {3});
  Session session(program.graph, {.threads = 1});
  session.initialize();
  const auto run = [&](float last) {
    return error_of([&] {
             session.run({{program.x, floats({3}, {1, 2, last})}}, {program.checked});
           })
        .is_ok();
  };
  for (int step = 0; step < 8; ++step) {
    const bool is_finite = step % 3 != 2;
    EXPECT_EQ(run(is_finite ? 3 : static_cast<float>(nan)), is_finite) << "step " << step;
  }
}

TEST_F(CheckNumerics, RunsOnTheGpuAndPassesTheTensorOn) {
  for (const Shape& shape : {Shape{2, 3}, Shape{0, 3}, Shape{}}) {
    Program program("/device:GPU:0", f32, shape);
    Session session(program.graph, {.threads = 1});
    RunMetadata ran;
    const Tensor value = from_doubles(f32, shape, std::vector<double>(shape.elements(), 7));
    const int64_t before = count_gpu_calls().from_host;
    const auto got =
        session.run({{program.x, value}}, {program.checked}, {}, {.trace = true}, &ran);
    EXPECT_LE(count_gpu_calls().from_host - before, 2) << "its input came back from the host";
    expect_equal(got[0], value, 0, "checked");
    bool is_there = false;
    for (const TraceEvent& event : ran.events)
      is_there |= event.op == "CheckNumerics" && event.device.find("GPU:0") != std::string::npos;
    EXPECT_TRUE(is_there) << shape;
  }
}

}  // namespace
}  // namespace leat
