#include "core/state/variable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "core/device.h"

namespace leat {
namespace {

TEST(Variable, IsUninitialisedUntilAssigned) {
  Variable variable("dense/w", f32);
  EXPECT_FALSE(variable.is_initialized());
  try {
    variable.value();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::failed_precondition);
    EXPECT_EQ(error.message(), "Attempting to use uninitialized value dense/w");
  }
  variable.assign(Tensor::scalar(2.0f));
  EXPECT_EQ(variable.value().item<float>(), 2.0f);
  EXPECT_EQ(variable.version(), 1u);
}

TEST(Variable, RejectsAnotherDtype) {
  Variable variable("w", f32);
  EXPECT_THROW(variable.assign(Tensor::scalar<int32_t>(1)), Error);
}

TEST(Variable, ValueReadNeverChanges) {
  Variable variable("w", f32);
  variable.assign(Tensor::of<float>({2}, {1, 2}));
  const Tensor read = variable.value();
  variable.mutable_value().data<float>()[0] = 7;  // a handle exists: copied first
  EXPECT_EQ(read.data<float>()[0], 1);
  EXPECT_EQ(variable.value().data<float>()[0], 7);
}

TEST(Variable, ChangesInPlaceWithoutOtherHandles) {
  Variable variable("w", f32);
  variable.assign(Tensor::of<float>({2}, {1, 2}));
  const void* before = variable.value().raw();
  variable.mutable_value().data<float>()[0] = 7;
  EXPECT_EQ(variable.value().raw(), before);
}

TEST(Variable, ReusesMemoryUnlessTheShapeChangesOrAHandleExists) {
  ThreadPool pool(1);
  const auto device =
      make_cpu_device(DeviceName::parse("/job:localhost/replica:0/task:0/device:CPU:0"), pool);
  Variable variable("w", f32);
  const void* first = variable.memory({2}, *device).raw();
  EXPECT_FALSE(variable.is_initialized());
  variable.mark_written();
  EXPECT_EQ(variable.memory({2}, *device).raw(), first);
  const Tensor handle = variable.value();
  EXPECT_NE(variable.memory({2}, *device).raw(), first);
  EXPECT_EQ(variable.memory({3}, *device).shape(), Shape({3}));
}

TEST(Containers, FindsOrMakesByContainerAndName) {
  Containers containers;
  const auto a = containers.variable("", "w", f32);
  EXPECT_EQ(containers.variable("localhost", "w", f32), a);
  EXPECT_NE(containers.variable("other", "w", f32), a);
  EXPECT_EQ(containers.size(), 2u);
  containers.clear("other");
  EXPECT_EQ(containers.size(), 1u);
  containers.variable("", "v", f32);
  containers.clear("");
  EXPECT_EQ(containers.size(), 1u) << "that one is held here";
}

class Box : public Resource {
 public:
  using Resource::Resource;
  void check_fits(const NodeView&) const override {}
  std::string state() const override { return "full"; }
};

// Two classes of one kind, like the classes of queues.
class RedBag : public Box {
 public:
  using Box::Box;
  std::type_index kind() const override { return typeid(RedBag); }
};
class StripedBag : public RedBag {
  using RedBag::RedBag;
};

TEST(Containers, StateOfDifferentKindsMayHaveOneName) {
  Containers containers;
  const auto by_reference = containers.variable("", "w", f32);
  const auto by_handle = containers.variable("", "w", i32, VariableKind::resource);
  EXPECT_NE(by_reference, by_handle);
  EXPECT_EQ(containers.variable("", "w", i32, VariableKind::resource), by_handle);

  const auto box = containers.resource("", std::make_shared<Box>("w"));
  const auto bag = containers.resource("", std::make_shared<RedBag>("w"));
  EXPECT_NE(box, bag);
  EXPECT_EQ(containers.resource("localhost", std::make_shared<Box>("w")), box);
  EXPECT_EQ(containers.resource("", std::make_shared<StripedBag>("w")), bag);
  EXPECT_NE(containers.resource("", std::make_shared<Box>("v")), box);
  EXPECT_NE(containers.resource("other", std::make_shared<Box>("w")), box);
  containers.clear("");
  EXPECT_NE(containers.resource("", std::make_shared<Box>("w")), box);
}

// Otherwise a session whose program holds it would continue with a copy that nobody else sees.
TEST(Containers, ClearedVariableInUseKeepsItsName) {
  Containers containers;
  const auto held = containers.variable("", "w", f32);
  held->assign(Tensor::scalar(1.0f));
  containers.clear("");
  EXPECT_FALSE(held->is_initialized());
  EXPECT_EQ(containers.variable("", "w", f32), held);
  EXPECT_NE(containers.variable("", "w", i32), held) << "what is cleared has no dtype";
  held->assign(Tensor::scalar(2.0f));
  EXPECT_TRUE(held->is_initialized());
}

TEST(Containers, DifferentDtypeNamesBothDtypes) {
  Containers containers;
  containers.variable("", "w", f32);
  try {
    containers.variable("", "w", i32);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(),
                testing::AllOf(testing::HasSubstr("float"), testing::HasSubstr("int32")));
  }
}

TEST(Containers, AreSafeToUseFromManyThreads) {
  Containers containers;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        const auto variable = containers.variable("", "w" + std::to_string(i), f32);
        std::unique_lock lock(variable->mutex());
        if (!variable->is_initialized()) variable->assign(Tensor::scalar(0.0f));
        variable->mutable_value().data<float>()[0] += 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(containers.size(), 100u);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(containers.variable("", "w" + std::to_string(i), f32)->value().item<float>(), 8);
  }
}

}  // namespace
}  // namespace leat
