#include "core/device_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace leat {
namespace {

std::string round_trip(std::string_view text) { return DeviceName::parse(text).to_string(); }

TEST(DeviceName, ReadsAllForms) {
  EXPECT_EQ(round_trip("/job:ps/replica:0/task:1/device:CPU:0"),
            "/job:ps/replica:0/task:1/device:CPU:0");
  EXPECT_EQ(round_trip("/job:ps/task:1"), "/job:ps/task:1");
  EXPECT_EQ(round_trip("/cpu:0"), "/device:CPU:0");
  EXPECT_EQ(round_trip("/GPU:3"), "/device:GPU:3");
  EXPECT_EQ(round_trip("cpu:0"), "/device:CPU:0");
  EXPECT_EQ(round_trip("job:ps/task:1"), "/job:ps/task:1");
  EXPECT_EQ(round_trip("/gpu:*"), "/device:GPU:*");
  EXPECT_EQ(round_trip("/device:GPU"), "/device:GPU:*");
  EXPECT_EQ(round_trip("/device:*:1"), "/device:*:1");
  EXPECT_EQ(round_trip("/job:*/task:2"), "/task:2");
  EXPECT_EQ(round_trip("/device:CPU:0/job:ps"), "/job:ps/device:CPU:0");
  EXPECT_EQ(round_trip(""), "");
}

TEST(DeviceName, NamesTheBadPartWithAnExample) {
  for (const char* text : {"nix:0", "/job:", "/job:1a", "/task:x", "/task:-1", "/task:1x", "/nix:0",
                           "/job:a b", "/device:", "/replica:99999999999"}) {
    try {
      DeviceName::parse(text);
      ADD_FAILURE() << text << " was read";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      EXPECT_THAT(error.message(),
                  testing::AllOf(testing::HasSubstr(text),
                                 testing::HasSubstr("/job:worker/task:1/device:GPU:0")));
    }
  }
}

TEST(DeviceName, Matches) {
  const DeviceName device = DeviceName::parse("/job:ps/replica:0/task:1/device:CPU:0");
  for (const char* constraint :
       {"", "/job:ps", "/task:1", "/device:CPU:*", "/cpu:0", "/replica:0"}) {
    EXPECT_TRUE(DeviceName::parse(constraint).matches(device)) << constraint;
  }
  for (const char* constraint : {"/job:worker", "/task:0", "/gpu:0", "/cpu:1", "/replica:1"}) {
    EXPECT_FALSE(DeviceName::parse(constraint).matches(device)) << constraint;
  }
  EXPECT_FALSE(DeviceName::parse("/task:1").matches(DeviceName::parse("/job:ps")));
  EXPECT_TRUE(DeviceName::parse("/replica:0").matches(DeviceName::parse("/job:ps/task:1")));
}

TEST(DeviceName, Merges) {
  const DeviceName ps = DeviceName::parse("/job:ps"), gpu = DeviceName::parse("/gpu:0");
  EXPECT_EQ(ps.merged(gpu).to_string(), "/job:ps/device:GPU:0");
  EXPECT_FALSE(ps.is_compatible(DeviceName::parse("/job:worker")));
  EXPECT_THROW(ps.merged(DeviceName::parse("/job:worker")), Error);
  EXPECT_EQ(gpu.with_defaults(DeviceName::parse("/job:ps/task:1/cpu:3")).to_string(),
            "/job:ps/task:1/device:GPU:0");
  EXPECT_TRUE(DeviceName::parse("/job:ps/task:0/cpu:0").is_complete());
  EXPECT_FALSE(ps.is_complete());
  EXPECT_EQ(DeviceName::parse("/job:ps/replica:0/task:2/cpu:0").task_string(),
            "/job:ps/replica:0/task:2");
  EXPECT_TRUE(DeviceName().is_empty());
}

}  // namespace
}  // namespace leat
