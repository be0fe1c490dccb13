#include "tools/leat/console.h"

#include <gtest/gtest.h>

#include <sstream>
#include <vector>

namespace leat {
namespace {

struct Seen {
  std::vector<std::string> lines, redraws;
  void feed(LineReader& reader, std::string_view bytes) {
    reader.feed(
        bytes, [&](const std::string& line) { lines.push_back(line); },
        [&](const std::string& text) { redraws.push_back(text); });
  }
};

using Strings = std::vector<std::string>;

TEST(LineReader, JoinsLinesThatArriveInPieces) {
  LineReader reader;
  Seen seen;
  seen.feed(reader, "one\ntw");
  seen.feed(reader, "o\n\nthree");
  EXPECT_EQ(seen.lines, (Strings{"one", "two", ""}));
  reader.finish([&](const std::string& line) { seen.lines.push_back(line); });
  EXPECT_EQ(seen.lines.back(), "three");
}

TEST(LineReader, CarriageReturnRestartsTheLine) {
  LineReader reader;
  Seen seen;
  seen.feed(reader, "\rstep 1\rstep 2\rstep 3\ndone\r\n");
  EXPECT_EQ(seen.lines, (Strings{"step 3", "done"}));
  EXPECT_EQ(seen.redraws, (Strings{"step 1", "step 2", "done"}));
}

TEST(LineReader, ReportsLinesThatBeginWithAReturnAtOnce) {
  LineReader reader;
  Seen seen;
  seen.feed(reader, "\rstep 1");
  seen.feed(reader, "\rstep 2");
  EXPECT_EQ(seen.redraws, (Strings{"step 1", "step 2"}));
  reader.finish([&](const std::string& line) { seen.lines.push_back(line); });
  EXPECT_EQ(seen.lines, (Strings{"step 2"}));
}

TEST(LineReader, KeepsColoursAndDropsOtherEscapes) {
  LineReader reader;
  Seen seen;
  seen.feed(reader, "\r\x1b[Kstep 1\r\x1b");
  seen.feed(reader, "[2Kstep \x1b[31m2\x1b[0m\n");
  EXPECT_EQ(seen.redraws, (Strings{"step 1"}));
  EXPECT_EQ(seen.lines, (Strings{"step \x1b[31m2\x1b[0m"}));
}

TEST(Console, PrefixesLinesWithoutColourIfNotATerminal) {
  std::ostringstream out;
  Console console(out, /*is_terminal=*/false, 80);
  console.line("[ps:0]", "hello");
  console.redraw("[worker:0]", "step 1");
  console.line("[worker:0]", "bye");
  EXPECT_EQ(out.str(), "[ps:0] hello\n[worker:0] bye\n");
}

TEST(Console, PrintsOtherLinesAboveTheRedrawnOne) {
  std::ostringstream out;
  Console console(out, /*is_terminal=*/true, 30);
  console.redraw("w", "step 1");
  out.str("");
  console.line("p", "hello");
  const std::string text = out.str();
  EXPECT_EQ(text.substr(0, 4), "\r\x1b[K");              // the redrawn line disappears,
  EXPECT_LT(text.find("hello\n"), text.find("step 1"));  // and comes back below
  out.str("");
  console.line("w", "step 2");  // its owner finished it
  console.line("p", "again");
  EXPECT_EQ(out.str().find("step 1"), std::string::npos);
}

TEST(Console, RedrawnLinesFitTheTerminal) {
  std::ostringstream out;
  Console console(out, /*is_terminal=*/true, 20);
  console.redraw("w", std::string(100, 'x'));
  const std::string text = out.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), 'x'), 17);
}

}  // namespace
}  // namespace leat
