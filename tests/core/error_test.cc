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

TEST(Error, CodesEqualGrpc) {
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

TEST(Error, NamesTheNodeOnce) {
  const Status once = with_node({Code::internal, "bad", true}, "a/b");
  EXPECT_EQ(once.message, "bad\n\t [[{{node a/b}}]]");
  EXPECT_EQ(once.node, "a/b");
  EXPECT_EQ(once.code, Code::internal);
  EXPECT_TRUE(once.derived);
  const Status again = with_node(once, "outer");
  EXPECT_EQ(again.message, once.message);
  EXPECT_EQ(again.node, "a/b");
}

TEST(Error, KeepsItsNodeAsStatusAndAsException) {
  const Status status = status_of([] { fail_at("a/b", Code::not_found, "no file ", 3); });
  EXPECT_EQ(status.to_string(), "NOT_FOUND: no file 3\n\t [[{{node a/b}}]]");
  EXPECT_EQ(status.node, "a/b");
  EXPECT_EQ(status_of([&] { throw_if_error(status); }).node, "a/b");
  const Status around = status_of([&] {
    try {
      throw_if_error(status);
    } catch (const Error& error) {
      fail_again(error, Code::aborted, "around: ", error.message());
    }
  });
  EXPECT_EQ(around.code, Code::aborted);
  EXPECT_EQ(around.message, "around: " + status.message);
  EXPECT_EQ(around.node, "a/b");
  EXPECT_EQ(status_of([] { fail(Code::not_found, "[[{{node a}}]]"); }).node, "")
      << "a message is not searched";
}

}  // namespace
}  // namespace leat
