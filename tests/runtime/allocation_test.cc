// In steady state a step allocates nothing, neither in the tape nor around it. This file replaces
// operator new and aligned_alloc of the test program (and so of libleat.so) to count.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "graph/gradient.h"
#include "graph/ops.h"
#include "runtime/local_session.h"
#include "tests/runtime/ops_for_tests.h"
#include "tests/support/sanitizers.h"

namespace {
thread_local int64_t allocations = 0;
}  // namespace

#ifndef LEAT_UNDER_SANITIZER
// noinline: where only one of them is inlined, gcc takes free() for a mismatch.
[[gnu::noinline]] void* operator new(size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

extern "C" void* aligned_alloc(size_t alignment, size_t bytes) {
  ++allocations;
  using AlignedAlloc = void* (*)(size_t, size_t);
  static const auto real = reinterpret_cast<AlignedAlloc>(dlsym(RTLD_NEXT, "aligned_alloc"));
  return real(alignment, bytes);
}
#endif

namespace leat {
namespace {

TEST(Allocations, DoNotOccurInAThousandTrainingSteps) {
#ifdef LEAT_UNDER_SANITIZER
  GTEST_SKIP() << "a sanitizer has replaced the allocator";
#endif
  Graph graph;
  const Output x = placeholder(graph, "x", f32, {any, 16});
  const Output labels = placeholder(graph, "labels", i32, {any});
  std::vector<Output> variables, initial;
  const auto weights = [&](const std::string& name, const Shape& shape) {
    variables.push_back(variable(graph, name, shape));
    Tensor value(f32, shape);
    for (int64_t i = 0; i < value.elements(); ++i)
      value.data<float>()[i] = 0.01f * static_cast<float>(i % 7 - 3);
    initial.push_back(assign(variables.back(), constant(graph, value)));
    return variables.back();
  };
  Output h = x;
  int64_t width = 16;
  for (const int64_t next : {8, 4}) {
    h = bias_add(matmul(h, weights(concat("w", next), {width, next})),
                 weights(concat("b", next), {next}));
    if (next != 4) h = relu(h);
    width = next;
  }
  const Output loss = mean(softmax_cross_entropy(h, labels));
  const std::vector<Output> gradient = gradients({loss}, variables);
  std::vector<std::string> updates;
  const Output rate = constant(graph, Tensor::scalar(0.1f));
  for (size_t v = 0; v < variables.size(); ++v) {
    updates.push_back(op("ApplyGradientDescent", {variables[v], rate, gradient[v]}).node->name);
  }
  LocalSession session({.threads = 1}, {.cpus = 1, .gpus = false});
  session.extend(graph);
  for (const Output& init : initial) session.run({}, {}, {init.node->name});
  const auto handle = session.make_callable({{"x:0", "labels:0"}, {loss.name()}, updates});
  ASSERT_TRUE(session.registered_graph(handle)->runs_on_caller());

  Tensor images(f32, {4, 16});
  for (int64_t i = 0; i < images.elements(); ++i)
    images.data<float>()[i] = static_cast<float>(i % 5);
  const Tensor feeds[] = {images, Tensor::of<int32_t>({4}, {0, 1, 2, 3})};
  std::vector<Tensor> fetches;
  session.run_callable(handle, feeds, fetches);
  const float first = fetches[0].item<float>();
  session.run_callable(handle, feeds, fetches);
  const int64_t before = allocations;
  for (int step = 0; step < 1000; ++step) session.run_callable(handle, feeds, fetches);
  EXPECT_EQ(allocations - before, 0);
  EXPECT_LT(fetches[0].item<float>(), first);
}

TEST(Allocations, AreCounted) {
#ifndef LEAT_UNDER_SANITIZER
  const int64_t before = allocations;
  const Tensor tensor(f32, {4});
  EXPECT_GE(allocations - before, 2);
#endif
}

}  // namespace
}  // namespace leat
