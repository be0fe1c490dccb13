#include "core/utf8.h"

#include <gtest/gtest.h>

namespace leat {
namespace {

TEST(Utf8, KeepsValidTextUnchanged) {
  for (const char* text : {"", "plain", "ünïcödé", "€", "\xf0\x9f\x98\x80", "\x7f\n"})
    EXPECT_EQ(as_utf8(text), text);
  EXPECT_EQ(as_utf8(std::string_view("a\0b", 3)), std::string_view("a\0b", 3));
}

TEST(Utf8, EscapesInvalidBytes) {
  EXPECT_EQ(as_utf8("a\x80z"), "a\\x80z");
  EXPECT_EQ(as_utf8("\xc3"), "\\xc3") << "cut off";
  EXPECT_EQ(as_utf8("\xe2\x82!"), "\\xe2\\x82!");
  EXPECT_EQ(as_utf8("\xc0\xaf"), "\\xc0\\xaf") << "longer than it need be";
  EXPECT_EQ(as_utf8("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "half of a pair";
  EXPECT_EQ(as_utf8("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "beyond the last character";
  EXPECT_EQ(as_utf8("\xff\xc3\xa4"), "\\xff\xc3\xa4");
}

}  // namespace
}  // namespace leat
