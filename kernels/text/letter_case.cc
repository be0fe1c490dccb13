// Single letters use glibc's mapping in the locale C.UTF-8, which glibc includes; for the others
// see SpecialCasing.txt of Unicode.
#include "kernels/text/letter_case.h"

#include <locale.h>
#include <wctype.h>

#include <vector>

#include "core/error.h"
#include "core/utf8.h"

namespace leat {
namespace {

using Letters = std::vector<char32_t>;

constexpr char32_t replacement = 0xFFFD, sigma = 0x3A3, small_sigma = 0x3C3, final_sigma = 0x3C2,
                   sharp_s = 0xDF;

locale_t unicode() {
  static const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  if (locale == nullptr) {
    fail(Code::unimplemented,
         "this system has no locale C.UTF-8, so the case of letters other than A to Z is unknown");
  }
  return locale;
}

Letters letters_of(std::string_view text) {
  Letters out;
  while (!text.empty()) {
    const Utf8Character next = next_utf8(text);
    out.push_back(next.value.value_or(replacement));
    text.remove_prefix(next.bytes);
  }
  return out;
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
  append_utf8(letter, shown);
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
      append_utf8(ends_word(letters, i) ? final_sigma : small_sigma, out);
    } else {
      append_utf8(static_cast<char32_t>(towlower_l(static_cast<wint_t>(c), unicode())), out);
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
      append_utf8(static_cast<char32_t>(towupper_l(static_cast<wint_t>(c), unicode())), out);
    }
  }
  return out;
}

}  // namespace leat
