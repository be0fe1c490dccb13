// Ops on the text of strings, one element at a time: strip, case, length, parts.
#include <cctype>

#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/broadcast.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/text/letter_case.h"

namespace leat {
namespace {

// output[i] = f(input[i]), f returning a string.
template <class F>
BoundKernel bind_each(const KernelRequest& r, F f) {
  return BoundKernel::of([f, n = r.outputs[0].shape.elements()](const Arguments& a) {
    for (int64_t i = 0; i < n; ++i) a.output<std::string>()[i] = f(a.input<std::string>(0)[i]);
  });
}

bool is_ascii_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

std::string stripped(const std::string& text) {
  size_t begin = 0, end = text.size();
  while (begin < end && is_ascii_space(text[begin])) ++begin;
  while (end > begin && is_ascii_space(text[end - 1])) --end;
  return text.substr(begin, end - begin);
}

const Op strip_op{{
    .name = "StringStrip",
    .doc = "output = input without the white space at its ends.",
    .inputs = {"input: string"},
    .outputs = {"output: string"},
    .shape = shapes::same_as(0),
    .kernels = {cpu_kernel([](const KernelRequest& r) { return bind_each(r, stripped); })},
    .examples = {{.inputs = {texts({" a b\n", ""})}, .outputs = {texts({"a b", ""})}}},
    .is_not_differentiable = true,
}};

// ---- Case: of A to Z, or of all letters

template <int (*convert)(int), std::string (*convert_unicode)(std::string_view)>
BoundKernel prepare_case(const KernelRequest& r) {
  const std::string& encoding = r.attr<std::string>("encoding");
  check(encoding.empty() || encoding == "utf-8",
        "only utf-8 or '' (no encoding) is supported, received ", encoding);
  if (!encoding.empty()) return bind_each(r, convert_unicode);
  return bind_each(r, [](const std::string& text) {
    std::string out = text;
    for (char& c : out) {
      if (static_cast<unsigned char>(c) < 0x80) c = static_cast<char>(convert(c));
    }
    return out;
  });
}

const Op lower_op{{
    .name = "StringLower",
    .doc = "output = input with the letters A to Z made lower case; with the encoding utf-8 all "
           "letters.",
    .inputs = {"input: string"},
    .outputs = {"output: string"},
    .attrs = {"encoding: string = ''"},
    .shape = shapes::same_as(0),
    .kernels = {cpu_kernel(prepare_case<std::tolower, lower_case>)},
    .examples = {{.inputs = {texts({"aB1"})}, .outputs = {texts({"ab1"})}}},
    .is_not_differentiable = true,
}};

const Op upper_op{{
    .name = "StringUpper",
    .doc = "output = input with the letters a to z made upper case.",
    .inputs = {"input: string"},
    .outputs = {"output: string"},
    .attrs = {"encoding: string = ''"},
    .shape = shapes::same_as(0),
    .kernels = {cpu_kernel(prepare_case<std::toupper, upper_case>)},
    .examples = {{.inputs = {texts({"aB1"})}, .outputs = {texts({"AB1"})}}},
    .is_not_differentiable = true,
}};

// ---- Characters: bytes, or those of UTF-8

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

int64_t characters(const std::string& text) {
  return std::count_if(text.begin(), text.end(), begins_character);
}

bool counts_characters(const NodeView& node) {
  return node.attr<std::string>("unit") == "UTF8_CHAR";
}

const Op length_op{{
    .name = "StringLength",
    .doc = "output = the number of bytes, or of UTF-8 characters, of input.",
    .inputs = {"input: string"},
    .outputs = {"output: int32"},
    .attrs = {"unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'"},
    .shape = shapes::same_as(0),
    .kernels = {cpu_kernel([](const KernelRequest& r) {
      return BoundKernel::of([is_utf8 = counts_characters(r.node),
                              n = r.outputs[0].shape.elements()](const Arguments& a) {
        for (int64_t i = 0; i < n; ++i) {
          const std::string& text = a.input<std::string>(0)[i];
          a.output<int32_t>()[i] =
              static_cast<int32_t>(is_utf8 ? characters(text) : static_cast<int64_t>(text.size()));
        }
      });
    })},
    .examples = {{.inputs = {texts({"abc", "\xC3\xA4"})}, .outputs = {ints({3, 2})}},
                 {.inputs = {texts({"abc", "\xC3\xA4"})},
                  .attrs = {{"unit", "UTF8_CHAR"}},
                  .outputs = {ints({3, 1})}}},
    .is_not_differentiable = true,
}};

// The byte where character `i` begins; the end of the text for one after the last.
int64_t byte_of_character(const std::string& text, int64_t i) {
  for (size_t at = 0; at < text.size(); ++at) {
    if (begins_character(text[at]) && i-- == 0) return static_cast<int64_t>(at);
  }
  return static_cast<int64_t>(text.size());
}

std::string part(const std::string& text, int64_t position, int64_t length, bool is_utf8) {
  const int64_t n = is_utf8 ? characters(text) : static_cast<int64_t>(text.size());
  check(position >= -n && position <= n, "pos ", position, " out of range for string of length ",
        n);
  const int64_t begin = position < 0 ? position + n : position;
  // A negative length takes all bytes, but no characters.
  const int64_t most = length >= 0 ? length : is_utf8 ? 0 : n;
  const int64_t end = begin + std::min(most, n - begin);
  if (!is_utf8) return text.substr(begin, end - begin);
  const int64_t first = byte_of_character(text, begin);
  return text.substr(first, byte_of_character(text, end) - first);
}

void infer_part(ShapeContext& c) {
  const Shape &position = c.input(1), &length = c.input(2);
  check(position.is_compatible(length), "pos and len must have the same shape, got ", position,
        " and ", length);
  c.set_output(0, broadcast(c.input(0), position));
}

// The position of operand `input` for element `i` of the output.
int64_t operand_of(const BroadcastPlan& plan, int input, int64_t i) {
  int64_t at = 0;
  for (int axis = plan.rank; axis-- > 0; i /= plan.extents[axis])
    at += i % plan.extents[axis] * plan.strides[input][axis];
  return at;
}

template <class T>
BoundKernel prepare_part(TypeTag<T>, const KernelRequest& r) {
  return BoundKernel::of(
      [plan = plan_broadcast(r), is_utf8 = counts_characters(r.node)](const Arguments& a) {
        for (int64_t i = 0; i < plan.elements; ++i) {
          const int64_t at = operand_of(plan, 1, i);
          a.output<std::string>()[i] = part(a.input<std::string>(0)[operand_of(plan, 0, i)],
                                            a.input<T>(1)[at], a.input<T>(2)[at], is_utf8);
        }
      });
}

const Op part_op{{
    .name = "Substr",
    .doc = "output = len bytes (or UTF-8 characters) of input from pos on, fewer at its end; a "
           "negative pos counts from the end.",
    .inputs = {"input: string", "pos: T", "len: T"},
    .outputs = {"output: string"},
    .attrs = {"T: {int32, int64}", "unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'"},
    .shape = infer_part,
    .kernels = {cpu_kernel(
        "T", Types<int32_t, int64_t>{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_part(t, r); })},
    .examples = {{.inputs = {texts({"abcd", "efg"}), Tensor::scalar(1), Tensor::scalar(2)},
                  .outputs = {texts({"bc", "fg"})}},
                 {.inputs = {texts({"abcd", "efg"}), ints({-1, 0}), ints({9, 1})},
                  .outputs = {texts({"d", "e"})}}},
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
