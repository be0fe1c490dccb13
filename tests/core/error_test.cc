#include "core/error.h"

#include <gtest/gtest.h>

#include <new>

namespace leat {
namespace {

Status status_of(auto&& f) {
  try {
    f();
  } catch (...) {
    return status_of_current_exception();
  }
  return {};
}

TEST(Error, CodesAreGrpcs) {
  EXPECT_EQ(static_cast<int>(Code::unauthenticated), 16);
  EXPECT_EQ(code_name(Code::ok), "OK");
  EXPECT_EQ(code_name(Code::deadline_exceeded), "DEADLINE_EXCEEDED");
  EXPECT_EQ(code_name(static_cast<Code>(99)), "UNKNOWN");
}

TEST(Error, EveryExceptionHasAStatus) {
  const Status ours = status_of([] { fail(Code::not_found, "no node ", 3); });
  EXPECT_EQ(ours.to_string(), "NOT_FOUND: no node 3");
  EXPECT_EQ(status_of([] { throw std::bad_alloc(); }).code, Code::resource_exhausted);
  EXPECT_EQ(status_of([] { throw std::runtime_error("boom"); }).to_string(), "INTERNAL: boom");
  EXPECT_EQ(status_of([] { throw 3; }).code, Code::internal);
  EXPECT_EQ(Status().to_string(), "OK");
}

TEST(Error, TheNodeIsNamedOnce) {
  const std::string once = with_node("bad", "a/b");
  EXPECT_EQ(once, "bad\n\t [[{{node a/b}}]]");
  EXPECT_EQ(with_node(once, "outer"), once);
}

}  // namespace
}  // namespace leat
