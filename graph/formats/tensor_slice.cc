#include "graph/formats/tensor_slice.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "graph/formats/proto/tensor_bundle.pb.h"

namespace leat {
namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  for (;;) {
    const size_t at = text.find(separator);
    out.push_back(text.substr(0, at));
    if (at == text.npos) return out;
    text.remove_prefix(at + 1);
  }
}

int64_t number(std::string_view text, std::string_view whole) {
  int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  check(error == std::errc() && end == text.data() + text.size() && out >= 0, "'", text,
        "' is not a number in '", whole,
        "'; a shape and slice look like \"10 20 0,5:-\": extents, then start,length or - each");
  return out;
}

// One byte count, then big-endian without leading zeros.
void append_number(std::string& out, uint64_t value) {
  char bytes[8];
  int count = 0;
  for (uint64_t rest = value; rest > 0; rest >>= 8) bytes[count++] = static_cast<char>(rest);
  out.push_back(static_cast<char>(count));
  while (count > 0) out.push_back(bytes[--count]);
}

void append_string(std::string& out, std::string_view text) {
  for (const char c : text) {
    out.push_back(c);
    if (c == '\0') out.push_back('\xff');
    if (c == '\xff') out.push_back('\0');
  }
  out.push_back('\0');
  out.push_back('\1');
}

// L bytes for a number of 7 L bits: two's complement, its first bits flipped by a mask that tells
// L.
void append_signed(std::string& out, int64_t value) {
  const uint64_t magnitude = static_cast<uint64_t>(value < 0 ? ~value : value);
  int length = 1;
  while (length < 10 && (magnitude >> (7 * length - 1)) != 0) ++length;
  char bytes[10];
  for (int i = 0; i < length; ++i) {
    const int shift = 8 * (length - 1 - i);
    bytes[i] = static_cast<char>(shift >= 64 ? (value < 0 ? 0xff : 0) : value >> shift);
  }
  if (length <= 8) {
    bytes[0] ^= static_cast<char>(0xff << (8 - length));
  } else {
    bytes[0] ^= static_cast<char>(0xff);
    bytes[1] ^= static_cast<char>(0xff << (16 - length));
  }
  out.append(bytes, length);
}

}  // namespace

TensorSlice TensorSlice::parse(std::string_view text) {
  TensorSlice out;
  if (text.empty()) return out;
  for (const std::string_view part : split(text, ':')) {
    Extent& extent = out.extents.emplace_back();
    if (part == "-") continue;
    const std::vector<std::string_view> numbers = split(part, ',');
    check(numbers.size() == 2, "'", part, "' in slice '", text, "' is neither - nor start,length");
    extent = {number(numbers[0], text), number(numbers[1], text)};
    check(extent.length > 0, "'", part, "' in slice '", text, "' has no elements");
  }
  return out;
}

std::string TensorSlice::to_string() const {
  std::string out;
  for (const Extent& extent : extents) {
    if (!out.empty()) out += ":";
    out += extent.length < 0 ? "-" : concat(extent.start, ",", extent.length);
  }
  return out;
}

TensorSlice TensorSlice::resolved(const Shape& full) const {
  check(static_cast<int>(extents.size()) == full.rank(), "slice '", to_string(), "' has ",
        extents.size(), " ranges for the shape ", full);
  TensorSlice out = *this;
  for (int i = 0; i < full.rank(); ++i) {
    Extent& extent = out.extents[i];
    if (extent.length < 0) extent = {0, full[i]};
    check(extent.start >= 0 && extent.start <= full[i] && extent.length <= full[i] - extent.start,
          "slice '", to_string(), "' does not lie within ", full);
  }
  return out;
}

Shape TensorSlice::shape() const {
  Shape out;
  for (const Extent& extent : extents) out.push_back(extent.length);
  return out;
}

bool TensorSlice::covers(const Shape& full) const { return resolved(full).shape() == full; }

ShapeAndSlice ShapeAndSlice::parse(std::string_view text) {
  ShapeAndSlice out;
  if (text.empty()) return out;
  out.is_whole = false;
  std::vector<std::string_view> parts = split(text, ' ');
  out.slice = TensorSlice::parse(parts.back());
  parts.pop_back();
  for (const std::string_view part : parts) out.full.push_back(number(part, text));
  out.slice.resolved(out.full);  // it must fit
  return out;
}

std::string ShapeAndSlice::to_string() const {
  if (is_whole) return "";
  std::string out;
  for (const int64_t extent : full.dims()) out += concat(extent, " ");
  return out + slice.to_string();
}

TensorSlice read_slice(const tensorflow::TensorSliceProto& proto) {
  TensorSlice out;
  for (const auto& extent : proto.extent()) {
    const bool is_whole = extent.has_length_case() != extent.kLength;
    check(is_whole || extent.length() >= 0, "a part of negative length");
    out.extents.push_back({extent.start(), is_whole ? -1 : extent.length()});
  }
  return out;
}

void write_slice(const TensorSlice& slice, tensorflow::TensorSliceProto& proto) {
  for (const TensorSlice::Extent& extent : slice.extents) {
    auto* range = proto.add_extent();
    if (extent.length < 0) continue;
    range->set_start(extent.start);
    range->set_length(extent.length);
  }
}

std::string slice_key(std::string_view name, const TensorSlice& slice) {
  std::string out;
  append_number(out, 0);
  append_string(out, name);
  append_number(out, slice.extents.size());
  for (const TensorSlice::Extent& extent : slice.extents) {
    append_signed(out, extent.start);
    append_signed(out, extent.length);
  }
  return out;
}

std::string readable_key(std::string_view key) {
  if (!key.starts_with('\0')) return concat("'", key, "'");
  std::string name;
  for (size_t i = 1; i + 1 < key.size() && key.substr(i, 2) != std::string_view("\0\1", 2); ++i) {
    name += key[i];
    if (key[i] == '\0' || key[i] == '\xff') ++i;  // what append_string() has added
  }
  return concat("a part of '", name, "'");
}

int64_t common_elements(const TensorSlice& a, const TensorSlice& b) {
  int64_t out = 1;
  for (size_t i = 0; i < a.extents.size(); ++i) {
    const auto &x = a.extents[i], &y = b.extents[i];
    const int64_t begin = std::max(x.start, y.start);
    const int64_t length = std::min(x.start + x.length, y.start + y.length) - begin;
    if (length <= 0) return 0;
    out *= length;
  }
  return out;
}

void copy_common(const Tensor& from, const TensorSlice& from_slice, Tensor& to,
                 const TensorSlice& to_slice) {
  const int rank = static_cast<int>(from_slice.extents.size());
  std::vector<int64_t> begin(rank), length(rank);
  const int64_t common = common_elements(from_slice, to_slice);
  if (common == 0) return;
  for (int i = 0; i < rank; ++i) {
    const auto &a = from_slice.extents[i], &b = to_slice.extents[i];
    begin[i] = std::max(a.start, b.start);
    length[i] = std::min(a.start + a.length, b.start + b.length) - begin[i];
  }
  const int64_t run = rank == 0 ? 1 : length[rank - 1];
  const auto offset = [&](const TensorSlice& slice, const std::vector<int64_t>& at) {
    int64_t out = 0;
    for (int i = 0; i < rank; ++i)
      out = out * slice.extents[i].length + at[i] - slice.extents[i].start;
    return out;
  };
  std::vector<int64_t> at = begin;
  for (int64_t done = 0; done < common; done += run) {
    const int64_t source = offset(from_slice, at), target = offset(to_slice, at);
    if (from.dtype() == DType::string) {
      std::copy_n(from.data<std::string>() + source, run, to.data<std::string>() + target);
    } else {
      const size_t size = dtype_size(from.dtype());
      std::memcpy(static_cast<char*>(to.raw()) + target * size,
                  static_cast<const char*>(from.raw()) + source * size, run * size);
    }
    for (int i = rank - 2; i >= 0; --i) {
      if (++at[i] < begin[i] + length[i]) break;
      at[i] = begin[i];
    }
  }
}

}  // namespace leat
