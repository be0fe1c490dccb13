// Conversions between strings and numbers: AsString and StringToNumber by text, DecodeRaw and
// DecodePaddedRaw by bytes.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/bools.h"
#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/execute.h"
#include "kernels/text/number_text.h"

namespace leat {
namespace {

// ---- AsString

// A printf format without the conversion, such as "%-8.3", and the conversion of a float.
struct Format {
  std::string prefix;
  char conversion;
  size_t width, longest;  // for strings, which may contain NUL
  bool is_left_justified;
};

Format format_of(const KernelRequest& r) {
  const int64_t precision = r.attr<int64_t>("precision"), width = r.attr<int64_t>("width");
  const bool scientific = r.attr<bool>("scientific"), shortest = r.attr<bool>("shortest");
  const std::string& fill = r.attr<std::string>("fill");
  const DType dtype = r.inputs[0].dtype;
  const bool is_integral = !is_floating(dtype) && !is_complex(dtype);
  // For a string with a width, precision is the maximum length; the other attributes have no
  // effect.
  const bool is_text = dtype == DType::string;
  check(!is_integral || is_text || (!scientific && !shortest && precision < 0),
        "scientific, shortest and precision not supported for datatype ", dtype);
  check(!scientific || !shortest, "Cannot select both scientific and shortest notation");
  check(fill.size() <= 1, "Fill string must be one or fewer characters");
  check(fill.empty() || std::strchr("+- 0#", fill[0]) != nullptr, "Fill argument not supported: \"",
        fill, "\"");
  check(fill != "#" || !is_integral, "Fill argument not supported: \"", fill, "\"");
  check(width <= 10000 && precision <= 10000, "width and precision must be at most 10000, got ",
        width, " and ", precision);
  Format format{
      .prefix = "%" + fill,
      .conversion = scientific ? 'e'
                    : shortest ? 'g'
                               : 'f',
      .width = static_cast<size_t>(std::max<int64_t>(0, width)),
      .longest = width > 0 && precision >= 0 ? static_cast<size_t>(precision) : std::string::npos,
      .is_left_justified = fill == "-"};
  if (width >= 0) format.prefix += std::to_string(width);
  if (precision >= 0) format.prefix += "." + std::to_string(precision);
  return format;
}

template <class... Value>
std::string printed(const std::string& format, Value... value) {
  const int size = std::snprintf(nullptr, 0, format.c_str(), value...);
  check(size >= 0, "a text of AsString would have more than 2^31 bytes");
  std::string text(static_cast<size_t>(size), ' ');
  std::snprintf(text.data(), text.size() + 1, format.c_str(), value...);
  return text;
}

template <class T>
std::string as_text(const Format& format, const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    const std::string text = value.substr(0, format.longest);
    const std::string padding(format.width - std::min(format.width, text.size()), ' ');
    return format.is_left_justified ? text + padding : padding + text;
  } else if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (is_complex_type<T>) {
    return "(" + as_text(format, value.real()) + "," + as_text(format, value.imag()) + ")";
  } else if constexpr (!std::is_integral_v<T>) {
    return printed(format.prefix + format.conversion, static_cast<double>(value));
  } else if constexpr (std::is_signed_v<T>) {
    return printed(format.prefix + "lld", static_cast<long long>(value));
  } else {
    return printed(format.prefix + "llu", static_cast<unsigned long long>(value));
  }
}

template <class T>
BoundKernel prepare_as_string(TypeTag<T>, const KernelRequest& r) {
  return BoundKernel::of(
      [format = format_of(r), n = r.outputs[0].shape.elements()](const Arguments& a) {
        for (int64_t i = 0; i < n; ++i) {
          StepEnd::pace(64);
          a.output<std::string>()[i] = as_text(format, a.input<T>(0)[i]);
        }
      });
}

const Op as_string_op{{
    .name = "AsString",
    .doc = "output = the text of each input, as printf writes it: %f (%e if scientific, %g if "
           "shortest) with `precision` digits, filled to `width` in the way of the flag `fill`.",
    .inputs = {"input: T"},
    .outputs = {"output: string"},
    .attrs = {"T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, "
              "uint32, uint64, complex64, complex128, bool, variant, string}",
              "precision: int = -1", "scientific: bool = false", "shortest: bool = false",
              "width: int = -1", "fill: string = ''"},
    .shape = shapes::same_as(0),
    .kernels = {cpu_kernel(
        "T", AllTypes{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_as_string(t, r); })},
    .examples = {{.inputs = {floats({1.5, -2})},
                  .attrs = {{"precision", 2}, {"width", 6}, {"fill", "0"}},
                  .outputs = {texts({"001.50", "-02.00"})}},
                 {.inputs = {ints({3, -7})}, .outputs = {texts({"3", "-7"})}}},
    .is_not_differentiable = true,
}};

// ---- StringToNumber

template <class T>
BoundKernel prepare_to_number(TypeTag<T>, const KernelRequest& r) {
  return BoundKernel::of([n = r.outputs[0].shape.elements()](const Arguments& a) {
    for (int64_t i = 0; i < n; ++i) {
      StepEnd::pace(64);
      const std::string& text = a.input<std::string>(0)[i];
      check(parse_number(text, a.output<T>()[i]),
            "StringToNumberOp could not correctly convert string: ", text);
    }
  });
}

const Op to_number_op{{
    .name = "StringToNumber",
    .doc = "output = the number that each string represents.",
    .inputs = {"string_tensor: string"},
    .outputs = {"output: out_type"},
    .attrs = {"out_type: {float, double, int32, int64, uint32, uint64} = float"},
    .shape = shapes::same_as(0),
    .kernels = {cpu_kernel(
        "out_type", Types<float, double, int32_t, int64_t, uint32_t, uint64_t>{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_to_number(t, r); })},
    .examples = {{.inputs = {texts({"1.5", " -2e3 "})}, .outputs = {floats({1.5, -2000})}}},
    .is_not_differentiable = true,
}};

// ---- DecodeRaw

template <class T>
void decode(ExecuteContext& c) {
  const Tensor& bytes = c.input(0);
  const bool is_little = c.node().attr<bool>("little_endian");
  const auto strings = bytes.span<std::string>();
  const size_t size = strings.empty() ? 0 : strings[0].size();
  for (const std::string& text : strings) {
    check(text.size() == size,
          "DecodeRaw requires input strings to all be the same size, but "
          "they are ",
          size, " and ", text.size(), " bytes long");
  }
  check(size % sizeof(T) == 0, "Input to DecodeRaw has length ", size,
        " that is not a multiple of ", sizeof(T), ", the size of ", dtype_of<T>);
  Shape shape = bytes.shape();
  shape.push_back(static_cast<int64_t>(size / sizeof(T)));
  Tensor out(dtype_of<T>, shape);
  auto* to = static_cast<char*>(out.raw());
  for (const std::string& text : strings) {
    if (size > 0) std::memcpy(to, text.data(), size);
    constexpr size_t number = is_complex_type<T> ? sizeof(T) / 2 : sizeof(T);
    for (size_t i = 0; i < size && !is_little; i += number) std::reverse(to + i, to + i + number);
    to += size;
  }
  normalise_bools(out);
  c.set_output(0, std::move(out));
}

using RawTypes = Types<half, float, double, int32_t, uint16_t, uint8_t, int16_t, int8_t, int64_t,
                       bool, bfloat16, complex64, complex128>;

const Op decode_raw_op{{
    .name = "DecodeRaw",
    .doc = "output[i…, j] = element j of the bytes of string i…, taken as numbers in memory.",
    .inputs = {"bytes: string"},
    .outputs = {"output: out_type"},
    .attrs = {"out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, "
              "complex64, complex128, bool, bfloat16}",
              "little_endian: bool = true"},
    .shape =
        [](ShapeContext& c) {
          Shape out = c.input(0);
          if (out.has_rank()) out.push_back(any);
          c.set_output(0, out);
        },
    .kernels = {execute_kernel("out_type", RawTypes{},
                               []<class T>(TypeTag<T>, ExecuteContext& c) { decode<T>(c); })},
    .examples = {{.inputs = {texts({"abcd"})},
                  .attrs = {{"out_type", DType::u8}},
                  .outputs = {Tensor::of<uint8_t>({1, 4}, {97, 98, 99, 100})}},
                 {.inputs = {texts({std::string("\x01\x02", 2)})},
                  .attrs = {{"out_type", DType::i16}, {"little_endian", false}},
                  .outputs = {Tensor::of<int16_t>({1, 1}, {0x0102})}}},
    .has_data_dependent_shape = true,
    .is_not_differentiable = true,
}};

// ---- DecodePaddedRaw

// The elements in a row of the output; input 1 is the number of its bytes.
int64_t padded_width(const Tensor& fixed_length, DType dtype) {
  const int64_t length = to_int64s(fixed_length)[0], size = static_cast<int64_t>(dtype_size(dtype));
  check(length > 0, "fixed_length (", length, ") must be greater than zero.");
  check(length % size == 0, "fixed_length (", length,
        ") must be a multiple of the size of out_type (", size, ")");
  return length / size;
}

BoundKernel prepare_decode_padded(const KernelRequest& r) {
  const size_t number = dtype_size(r.outputs[0].dtype);
  const size_t row = number * padded_width(*r.inputs[1].value, r.outputs[0].dtype);
  return BoundKernel::of([=, n = r.inputs[0].shape.elements(),
                          is_little = r.attr<bool>("little_endian")](const Arguments& a) {
    for (int64_t i = 0; i < n; ++i) {
      StepEnd::pace(64);
      const std::string& text = a.input<std::string>(0)[i];
      char* to = a.output<char>() + i * static_cast<int64_t>(row);
      const size_t taken = std::min(text.size(), row);
      std::memcpy(to, text.data(), taken);
      std::memset(to + taken, 0, row - taken);
      for (size_t at = 0; at < taken && !is_little; at += number)
        std::reverse(to + at, to + at + number);
    }
  });
}

const Op decode_padded_op{{
    .name = "DecodePaddedRaw",
    .doc = "output[i…, j] = element j of the first fixed_length bytes of string i…, taken as "
           "numbers in memory; bytes of 0 follow a shorter string.",
    .inputs = {"input_bytes: string", "fixed_length: int32"},
    .outputs = {"output: out_type"},
    .attrs = {"out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, bfloat16}",
              "little_endian: bool = true"},
    .shape =
        [](ShapeContext& c) {
          c.with_rank(1, 0);
          Shape out = c.input(0);
          if (out.has_rank()) {
            const Tensor* length = c.value(1);
            out.push_back(length ? padded_width(*length, c.attr<DType>("out_type")) : any);
          }
          c.set_output(0, out);
        },
    .kernels = {cpu_kernel(prepare_decode_padded)},
    .examples = {{.inputs = {texts({"ab", "", "cdefg"}), Tensor::scalar(4)},
                  .attrs = {{"out_type", DType::u8}},
                  .outputs = {Tensor::of<uint8_t>({3, 4},
                                                  {97, 98, 0, 0, 0, 0, 0, 0, 99, 100, 101, 102})}},
                 {.inputs = {texts({std::string("\x01\x02\x03", 3)}), Tensor::scalar(4)},
                  .attrs = {{"out_type", DType::i16}, {"little_endian", false}},
                  .outputs = {Tensor::of<int16_t>({1, 2}, {0x0102, 0x0300})}}},
    .value_inputs = {1},
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
