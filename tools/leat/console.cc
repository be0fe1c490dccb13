#include "tools/leat/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

namespace leat {
namespace {

int terminal_columns() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

// The first `columns` characters; an escape sequence takes no room and is kept.
std::string cut(std::string_view text, int columns) {
  std::string out;
  int used = 0;
  bool is_escape = false;
  for (const char c : text) {
    const bool continues = (static_cast<unsigned char>(c) & 0xc0) == 0x80;  // UTF-8
    if (c == '\x1b') is_escape = true;
    if (!is_escape && !continues && ++used > columns) break;
    out += c;
    if (is_escape && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))) is_escape = false;
  }
  return out;
}

}  // namespace

bool LineReader::take_escape(char c) {
  if (escape_.empty() && c != '\x1b') return false;
  escape_ += c;
  if (escape_.size() == 1 || (escape_.size() == 2 && c == '[')) return true;
  const bool is_sequence = escape_[1] == '[';
  const bool is_over = !is_sequence || (c >= '@' && c <= '~') || escape_.size() > 32;
  if (!is_over) return true;
  if (is_sequence && c == 'm') line_ += escape_;
  escape_.clear();
  return true;
}

Console::Console(std::ostream& out, bool is_terminal, int columns)
    : out_(out),
      is_terminal_(is_terminal),
      has_colour_(is_terminal && std::getenv("NO_COLOR") == nullptr),
      columns_(columns) {}

Console& Console::standard() {
  static Console console(std::cout, isatty(STDOUT_FILENO) != 0, terminal_columns());
  return console;
}

Console::~Console() { end_redraw(); }

std::string Console::painted(std::string_view prefix) {
  if (!has_colour_ || prefix.empty()) return std::string(prefix);
  // A colour for each prefix; none of red, which is for errors.
  static constexpr const char* colours[] = {"36", "33", "32", "35", "34",
                                            "96", "93", "92", "95", "94"};
  const size_t colour = colours_.try_emplace(std::string(prefix), colours_.size()).first->second;
  return std::string("\x1b[") + colours[colour % std::size(colours)] + "m" + std::string(prefix) +
         "\x1b[0m";
}

void Console::erase() {
  if (is_live_) out_ << "\r\x1b[K";
}

void Console::line(std::string_view prefix, std::string_view text) {
  erase();
  out_ << painted(prefix) << (prefix.empty() ? "" : " ") << text << "\n";
  if (is_live_ && prefix == live_prefix_) is_live_ = false;  // its owner finished the line
  if (is_live_) redraw(std::string(live_prefix_), std::string(live_text_));
  out_.flush();
}

void Console::redraw(std::string_view prefix, std::string_view text) {
  if (!is_terminal_) return;
  erase();
  live_prefix_ = prefix;
  live_text_ = text;
  is_live_ = true;
  const int room = columns_ - static_cast<int>(prefix.size()) - 2;
  out_ << painted(prefix) << " " << cut(text, room) << std::flush;
}

void Console::end_redraw() {
  if (is_live_) out_ << "\n" << std::flush;
  is_live_ = false;
}

}  // namespace leat
