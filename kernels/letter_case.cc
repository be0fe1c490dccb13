// Single letters are glibc's, in the locale C.UTF-8, which it brings along; for the others see
// SpecialCasing.txt of Unicode.
#include "kernels/letter_case.h"

#include <locale.h>
#include <wctype.h>

#include <vector>

#include "core/error.h"

namespace leat {
namespace {

using Letters = std::vector<char32_t>;

constexpr char32_t replacement = 0xFFFD, sigma = 0x3A3, small_sigma = 0x3C3, final_sigma = 0x3C2,
                   sharp_s = 0xDF;

locale_t unicode() {
  static const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  if (locale == nullptr) {
    fail(Code::unimplemented,
         "this system has no locale C.UTF-8: the case of letters other than A to Z is not known");
  }
  return locale;
}

// The letter at `at`, which moves behind it; of what is no UTF-8, a longest part that could have
// begun a letter counts as one.
char32_t next_letter(std::string_view text, size_t& at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at++);
  if (first < 0x80) return first;
  if (first < 0xC2 || first > 0xF4) return replacement;
  const int more = first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;
  char32_t letter = first & (0x3F >> more);
  for (int i = 0; i < more; ++i) {
    if (at == text.size()) return replacement;
    const unsigned char next = byte(at);
    const bool is_first = i == 0;
    const int least = !is_first ? 0x80 : first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    const int most = !is_first ? 0xBF : first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    if (next < least || next > most) return replacement;
    letter = letter << 6 | (next & 0x3F);
    ++at;
  }
  return letter;
}

Letters letters_of(std::string_view text) {
  Letters out;
  for (size_t at = 0; at < text.size();) out.push_back(next_letter(text, at));
  return out;
}

void append(std::string& out, char32_t letter) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | (letter >> shift & 0x3F)); };
  if (letter < 0x80) {
    out += static_cast<char>(letter);
  } else if (letter < 0x800) {
    out += static_cast<char>(0xC0 | letter >> 6);
    tail(0);
  } else if (letter < 0x10000) {
    out += static_cast<char>(0xE0 | letter >> 12);
    tail(6), tail(0);
  } else {
    out += static_cast<char>(0xF0 | letter >> 18);
    tail(12), tail(6), tail(0);
  }
}

bool becomes_several(char32_t c) {
  return c == 0x149 || c == 0x1F0 || c == 0x390 || c == 0x3B0 || c == 0x587 ||
         (c >= 0x1E96 && c <= 0x1E9A) || (c >= 0x1F50 && c <= 0x1F56 && c % 2 == 0) ||
         (c >= 0x1F80 && c <= 0x1FAF) ||
         (c >= 0x1FB2 && c <= 0x1FBC && c != 0x1FB5 && c != 0x1FB8 && c != 0x1FB9 && c != 0x1FBA &&
          c != 0x1FBB) ||
         (c >= 0x1FC2 && c <= 0x1FCC && (c <= 0x1FC7 || c == 0x1FCC)) ||
         (c >= 0x1FD2 && c <= 0x1FD7) || (c >= 0x1FE2 && c <= 0x1FE7 && c != 0x1FE5) ||
         (c >= 0x1FF2 && c <= 0x1FFC && (c <= 0x1FF7 || c == 0x1FFC)) ||
         (c >= 0xFB00 && c <= 0xFB06) || (c >= 0xFB13 && c <= 0xFB17);
}

void refuse(std::string_view text, char32_t letter) {
  std::string shown;
  append(shown, letter);
  fail(Code::unimplemented, "the case of '", shown, "' is not supported: \"", text, "\"");
}

bool has_case(char32_t c) {
  const auto letter = static_cast<wint_t>(c);
  return iswupper_l(letter, unicode()) != 0 || iswlower_l(letter, unicode()) != 0;
}

bool ends_word(const Letters& letters, size_t i) {
  return i > 0 && has_case(letters[i - 1]) &&
         (i + 1 == letters.size() || !has_case(letters[i + 1]));
}

}  // namespace

std::string lower_case(std::string_view text) {
  const Letters letters = letters_of(text);
  std::string out;
  for (size_t i = 0; i < letters.size(); ++i) {
    const char32_t c = letters[i];
    if (c == 0x130) refuse(text, c);
    if (c == sigma) {
      append(out, ends_word(letters, i) ? final_sigma : small_sigma);
    } else {
      append(out, static_cast<char32_t>(towlower_l(static_cast<wint_t>(c), unicode())));
    }
  }
  return out;
}

std::string upper_case(std::string_view text) {
  std::string out;
  for (const char32_t c : letters_of(text)) {
    if (becomes_several(c)) refuse(text, c);
    if (c == sharp_s) {
      out += "SS";
    } else {
      append(out, static_cast<char32_t>(towupper_l(static_cast<wint_t>(c), unicode())));
    }
  }
  return out;
}

}  // namespace leat
