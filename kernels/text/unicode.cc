// UnicodeDecode, UnicodeDecodeWithOffsets, UnicodeEncode, UnicodeTranscode: convert strings from
// and to code points, in UTF-8, UTF-16-BE and UTF-32-BE.
#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/utf8.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/execute.h"
#include "kernels/extents.h"
#include "kernels/row_splits.h"

namespace leat {
namespace {

enum class Encoding { utf8, utf16_be, utf32_be };

// Finds the encoding by its name as ICU does: case, "-", "_" and " " do not matter.
Encoding encoding_of(const std::string& name) {
  std::string plain;
  for (const char c : name) {
    if (c != '-' && c != '_' && c != ' ')
      plain += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  if (plain == "UTF8") return Encoding::utf8;
  if (plain == "UTF16BE") return Encoding::utf16_be;
  check(plain == "UTF32BE", "Could not create converter for input encoding: ", name,
        "; supported are UTF-8, UTF-16-BE and UTF-32-BE");
  return Encoding::utf32_be;
}

constexpr char32_t last_code_point = 0x10FFFF;
bool is_surrogate(char32_t c) { return c >= 0xD800 && c <= 0xDFFF; }
bool is_high(char32_t c) { return c >= 0xD800 && c <= 0xDBFF; }
bool is_low(char32_t c) { return c >= 0xDC00 && c <= 0xDFFF; }
char32_t of_pair(char32_t high, char32_t low) {
  return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
}

// The attributes for invalid characters.
struct Errors {
  enum class Policy { strict, replace, ignore } policy;
  char32_t replacement;
  bool replaces_controls;

  explicit Errors(const NodeView& node)
      : replaces_controls(node.has("replace_control_characters") &&
                          node.attr<bool>("replace_control_characters")) {
    const std::string& name = node.attr<std::string>("errors");
    policy = name == "strict"   ? Policy::strict
             : name == "ignore" ? Policy::ignore
                                : Policy::replace;
    const int64_t given = node.attr<int64_t>("replacement_char");
    check(given >= 0 && given <= int64_t{last_code_point},
          "replacement_char out of unicode codepoint range: ", given);
    replacement = static_cast<char32_t>(given);
  }
};

// ---- Decoding

using Character = Utf8Character;  // for the other encodings, too

char32_t big_endian(std::string_view text, size_t bytes) {
  char32_t out = 0;
  for (size_t i = 0; i < bytes; ++i) out = out << 8 | static_cast<unsigned char>(text[i]);
  return out;
}

Character next_utf16(std::string_view text) {
  if (text.size() < 2) return {text.size(), {}};
  const char32_t first = big_endian(text, 2);
  if (!is_surrogate(first)) return {2, first};
  if (is_low(first)) return {2, {}};
  if (text.size() < 4) return {text.size(), {}};
  const char32_t second = big_endian(text.substr(2), 2);
  if (!is_low(second)) return {2, {}};
  return {4, of_pair(first, second)};
}

Character next_utf32(std::string_view text) {
  if (text.size() < 4) return {text.size(), {}};
  const char32_t value = big_endian(text, 4);
  if (value > last_code_point || is_surrogate(value)) return {4, {}};
  return {4, value};
}

Character next_of(std::string_view text, Encoding encoding) {
  return encoding == Encoding::utf8       ? next_utf8(text)
         : encoding == Encoding::utf16_be ? next_utf16(text)
                                          : next_utf32(text);
}

// Calls f(code point, byte where it begins), with replacements, for each that is kept.
template <class F>
void decode(std::string_view text, Encoding encoding, const Errors& errors, bool controls_fail,
            F f) {
  for (size_t at = 0; at < text.size();) {
    const Character c = next_of(text.substr(at), encoding);
    const bool is_control = c.value && *c.value <= 0x1F && errors.replaces_controls;
    const bool fails = !c.value || (is_control && controls_fail);
    check(!fails || errors.policy != Errors::Policy::strict, "Invalid formatting on input string");
    if (c.value && !is_control) {
      f(*c.value, at);
    } else if (errors.policy != Errors::Policy::ignore) {
      f(errors.replacement, at);
    }
    at += c.bytes;
  }
}

// ---- Encoding

void append(char32_t c, std::u16string& out) {
  if (c < 0x10000) {
    out += static_cast<char16_t>(c);
  } else {
    out += static_cast<char16_t>(0xD7C0 + (c >> 10));
    out += static_cast<char16_t>(0xDC00 + (c & 0x3FF));
  }
}

void append_big_endian(char32_t c, int bytes, std::string& out) {
  for (int i = bytes; i-- > 0;) out += static_cast<char>(c >> (8 * i) & 0xFF);
}

// Encodes through UTF-16, as in TensorFlow: two replacements may form a pair.
std::string encoded(const std::u16string& text, Encoding encoding) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (encoding == Encoding::utf16_be) {
      append_big_endian(text[i], 2, out);
      continue;
    }
    char32_t c = text[i];
    if (is_high(c) && i + 1 < text.size() && is_low(text[i + 1])) c = of_pair(c, text[++i]);
    if (encoding == Encoding::utf8) {
      append_utf8(c, out);
    } else {
      append_big_endian(c, 4, out);
    }
  }
  return out;
}

// ---- UnicodeDecode, UnicodeDecodeWithOffsets

void decode_all(ExecuteContext& c) {
  const Errors errors(c.node());
  const Encoding encoding = encoding_of(c.node().attr<std::string>("input_encoding"));
  const bool has_offsets = c.node().op == "UnicodeDecodeWithOffsets";
  std::vector<int64_t> splits = {0}, offsets;
  std::vector<int32_t> characters;
  for (const std::string& text : c.input(0).span<std::string>()) {
    decode(text, encoding, errors, false, [&](char32_t value, size_t at) {
      characters.push_back(static_cast<int32_t>(value));
      if (has_offsets) offsets.push_back(static_cast<int64_t>(at));
    });
    splits.push_back(std::ssize(characters));
  }
  const Shape shape{std::ssize(characters)};
  c.set_output(0, row_splits(splits, c.node().attr<DType>("Tsplits")));
  c.set_output(1, Tensor::of<int32_t>(shape, std::span<const int32_t>(characters)));
  if (has_offsets) c.set_output(2, Tensor::of<int64_t>(shape, std::span<const int64_t>(offsets)));
}

OpDef decode_op(bool has_offsets) {
  OpDef out{
      .name = has_offsets ? "UnicodeDecodeWithOffsets" : "UnicodeDecode",
      .doc =
          "The code points of every string, as row splits and values. What is not valid in "
          "input_encoding is an error, replacement_char or left out: errors = strict, replace "
          "or ignore; so are, with replace_control_characters, code points up to 31, which are "
          "no error.",
      .inputs = {"input: string"},
      .outputs = {"row_splits: Tsplits", "char_values: int32"},
      .attrs = {"input_encoding: string", "errors: {'strict', 'replace', 'ignore'} = 'replace'",
                "replacement_char: int = 65533", "replace_control_characters: bool = false",
                "Tsplits: {int32, int64} = int64"},
      .shape =
          [](ShapeContext& c) {
            const int64_t n = c.input(0).is_complete() ? c.input(0).elements() : any;
            c.set_output(0, {n == any ? any : sum_of_extents(n, 1)});
            for (int i = 1; i < c.num_outputs(); ++i) c.set_output(i, {any});
          },
      .kernels = {{.execute = decode_all}},
      .examples = {{.inputs = {texts({"a\xC3\xA4", "", "\xFFz"})},
                    .attrs = {{"input_encoding", "UTF-8"}},
                    .outputs = {longs({0, 2, 2, 4}), ints({97, 228, 65533, 122})}}},
      .has_data_dependent_shape = true,
      .is_not_differentiable = true,
  };
  if (has_offsets) {
    out.doc += " char_to_byte_starts has the byte where each begins in its string.";
    out.outputs.push_back("char_to_byte_starts: int64");
    out.examples[0].outputs.push_back(longs({0, 1, 0, 1}));
  }
  return out;
}

const Op unicode_decode_op(decode_op(false));
const Op unicode_decode_with_offsets_op(decode_op(true));

// ---- UnicodeEncode

void encode_all(ExecuteContext& c) {
  const Errors errors(c.node());
  const Encoding encoding = encoding_of(c.node().attr<std::string>("output_encoding"));
  const Tensor& values = c.input(0);
  check(values.shape().rank() == 1 && c.input(1).shape().rank() == 1,
        "Both the input_tensor and input_splits should be of rank 1, got shapes ", values.shape(),
        " and ", c.input(1).shape());
  const std::vector<int64_t> splits = to_int64s(c.input(1));
  check(!splits.empty(), "Input_splits should contain elements");
  check(splits.front() == 0, "First value in input_splits must be zero, got ", splits.front());
  check(std::is_sorted(splits.begin(), splits.end()),
        "Values in input_splits must be equal or in ascending order.");
  check(splits.back() == values.elements(),
        "Last value in input_splits must be equal to length of input_tensor. Got ", splits.back(),
        ", expected ", values.elements());
  Tensor out(DType::string, {std::ssize(splits) - 1});
  for (size_t row = 0; row + 1 < splits.size(); ++row) {
    std::u16string text;
    for (int64_t i = splits[row]; i < splits[row + 1]; ++i) {
      const auto value = static_cast<char32_t>(values.data<int32_t>()[i]);
      if (value <= last_code_point && !is_surrogate(value)) {
        append(value, text);
        continue;
      }
      check(
          errors.policy != Errors::Policy::strict,
          "Code point is out of range for Unicode, or is a surrogate: ", values.data<int32_t>()[i]);
      if (errors.policy == Errors::Policy::replace) append(errors.replacement, text);
    }
    out.data<std::string>()[row] = encoded(text, encoding);
  }
  c.set_output(0, std::move(out));
}

const Op encode_op{{
    .name = "UnicodeEncode",
    .doc = "A string for each row of code points. One that is none, or a surrogate, is an error, "
           "replacement_char or left out: errors = strict, replace or ignore.",
    .inputs = {"input_values: int32", "input_splits: Tsplits"},
    .outputs = {"output: string"},
    .attrs = {"errors: {'ignore', 'replace', 'strict'} = 'replace'",
              "output_encoding: {'UTF-8', 'UTF-16-BE', 'UTF-32-BE'}",
              "replacement_char: int = 65533", "Tsplits: {int32, int64} = int64"},
    .shape =
        [](ShapeContext& c) {
          c.with_rank(0, 1);
          const int64_t splits = c.with_rank(1, 1)[0];
          check(splits != 0, "Input_splits should contain elements");
          c.set_output(0, {splits == any ? any : splits - 1});
        },
    .kernels = {{.execute = encode_all}},
    .examples = {{.inputs = {ints({97, 228, 0x1F600, -1}), longs({0, 2, 2, 4})},
                  .attrs = {{"output_encoding", "UTF-8"}},
                  .outputs = {texts({"a\xC3\xA4", "", "\xF0\x9F\x98\x80\xEF\xBF\xBD"})}}},
    .is_not_differentiable = true,
}};

// ---- UnicodeTranscode

BoundKernel prepare_transcode(const KernelRequest& r) {
  return BoundKernel::of([errors = Errors(r.node),
                          from = encoding_of(r.attr<std::string>("input_encoding")),
                          to = encoding_of(r.attr<std::string>("output_encoding")),
                          n = r.outputs[0].shape.elements()](const Arguments& a) {
    for (int64_t i = 0; i < n; ++i) {
      std::u16string text;
      decode(a.input<std::string>(0)[i], from, errors, true,
             [&](char32_t value, size_t) { append(value, text); });
      a.output<std::string>()[i] = encoded(text, to);
    }
  });
}

const Op transcode_op{{
    .name = "UnicodeTranscode",
    .doc = "The strings in another encoding. What is not valid in input_encoding is an error, "
           "replacement_char or left out: errors = strict, replace or ignore; so are, with "
           "replace_control_characters, code points up to 31.",
    .inputs = {"input: string"},
    .outputs = {"output: string"},
    .attrs = {"input_encoding: string", "output_encoding: {'UTF-8', 'UTF-16-BE', 'UTF-32-BE'}",
              "errors: {'strict', 'replace', 'ignore'} = 'replace'",
              "replacement_char: int = 65533", "replace_control_characters: bool = false"},
    .shape = shapes::same_as(0),
    .kernels = {cpu_kernel(prepare_transcode)},
    .examples = {{.inputs = {texts({"a\xC3\xA4"})},
                  .attrs = {{"input_encoding", "UTF-8"}, {"output_encoding", "UTF-16-BE"}},
                  .outputs = {texts({std::string("\0a\0\xE4", 4)})}}},
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
