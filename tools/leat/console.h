// The launcher's terminal: lines of many processes, each with its prefix, and one line that is
// redrawn in place.
#pragma once

#include <iosfwd>
#include <map>
#include <string>
#include <string_view>

namespace leat {

// Cuts the output of one process into lines. A carriage return restarts the line, as on a terminal;
// drops escape sequences other than colours.
class LineReader {
 public:
  // Calls on_line(text) for every finished line and on_redraw(text) for each state of a redrawn
  // line.
  template <class OnLine, class OnRedraw>
  void feed(std::string_view bytes, OnLine&& on_line, OnRedraw&& on_redraw) {
    for (const char c : bytes) {
      if (take_escape(c)) continue;
      if (c == '\n') {
        on_line(line_.empty() ? previous_ : line_);
        line_.clear(), previous_.clear();
      } else if (c == '\r') {
        if (!line_.empty()) on_redraw(line_), previous_ = std::move(line_);
        line_.clear();
      } else if (line_.size() < longest_line) {
        line_ += c;
      }
    }
    // "\rstep 3" without an end: progress bars that write the carriage return first.
    if (!previous_.empty() && !line_.empty()) on_redraw(line_);
  }
  // What is left at end of file.
  template <class OnLine>
  void finish(OnLine&& on_line) {
    if (!line_.empty() || !previous_.empty()) on_line(line_.empty() ? previous_ : line_);
    line_.clear(), previous_.clear();
  }

 private:
  static constexpr size_t longest_line = 1 << 16;
  bool take_escape(char c);  // true if it is part of an escape sequence

  std::string line_;
  std::string previous_;  // before the last carriage return
  std::string escape_;    // so far
};

class Console {
 public:
  // `is_terminal`: colours (unless NO_COLOR is set) and a redrawn line.
  Console(std::ostream& out, bool is_terminal, int columns);
  static Console& standard();  // on standard output
  ~Console();

  bool is_terminal() const { return is_terminal_; }
  int columns() const { return columns_; }

  void line(std::string_view prefix, std::string_view text);
  // On a terminal: the last line, until another line or the next redraw replaces it. Elsewhere:
  // nothing.
  void redraw(std::string_view prefix, std::string_view text);
  void end_redraw();  // keeps the redrawn line on the screen

 private:
  std::string painted(std::string_view prefix);
  void erase();

  std::ostream& out_;
  const bool is_terminal_;
  const bool has_colour_;
  const int columns_;
  std::string live_prefix_, live_text_;
  bool is_live_ = false;
  std::map<std::string, size_t> colours_;  // of prefixes, by first appearance
};

}  // namespace leat
