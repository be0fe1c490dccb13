#include "graph/formats/gif_file.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/error.h"

namespace leat {
namespace {

constexpr int64_t most_values = int64_t{1} << 31;

// What makes a frame unreadable.
struct Damage {
  const char* what;
};

class GifReader {
 public:
  explicit GifReader(std::string_view file) : left_(file) {}

  std::string_view bytes(size_t count) {
    if (count > left_.size()) throw Damage{"the file is truncated"};
    const std::string_view out = left_.substr(0, count);
    left_.remove_prefix(count);
    return out;
  }
  uint8_t byte() { return static_cast<uint8_t>(bytes(1)[0]); }
  int64_t number() {  // low byte first
    const int64_t low = byte();
    return low + 256 * byte();
  }
  // A block of up to 255 bytes; an empty one is the last of its kind.
  std::string_view block() { return bytes(byte()); }

 private:
  std::string_view left_;
};

// T. Welch, "A technique for high-performance data compression", 1984, with codes that grow to 12
// bits.
class Lzw {
 public:
  Lzw(GifReader& reader, int bits)
      : reader_(reader), bits_(bits), clear_(1 << bits), end_(clear_ + 1) {
    for (int i = 0; i < clear_; ++i) entries_[i] = {none, 1, static_cast<uint8_t>(i)};
    reset();
  }

  // The next `count` values; all blocks are read then.
  std::vector<uint8_t> read(int64_t count) {
    std::vector<uint8_t> out;
    while (static_cast<int64_t>(out.size()) < count) {
      const int code = next_code();
      if (code == end_) throw Damage{"it ends before its image is complete"};
      if (code == clear_) {
        reset();
        continue;
      }
      const bool is_new = code == next_ && previous_ != none;
      if (code >= next_ && !is_new) throw Damage{"image defect, decoding aborted"};
      const uint8_t first = first_of(is_new ? previous_ : code);
      if (previous_ != none && next_ < size) {
        entries_[next_] = {previous_, entries_[previous_].length + 1, first};
        ++next_;
      } else if (is_new) {
        throw Damage{"image defect, decoding aborted"};
      }
      append(code, count, out);
      previous_ = code;
      if (next_ >= 1 << width_ && width_ < 12) ++width_;
    }
    while (!reader_.block().empty()) {
    }
    return out;
  }

 private:
  static constexpr int size = 4096, none = -1;
  struct Entry {
    int prefix = none;
    int length = 0;
    uint8_t last = 0;
  };

  void reset() {
    next_ = end_ + 1;
    width_ = bits_ + 1;
    previous_ = none;
  }
  int next_code() {
    while (held_ < width_) {
      if (block_.empty()) {
        block_ = reader_.block();
        if (block_.empty()) throw Damage{"image defect, decoding aborted"};
      }
      buffer_ |= static_cast<uint32_t>(static_cast<uint8_t>(block_[0])) << held_;
      held_ += 8;
      block_.remove_prefix(1);
    }
    const auto code = static_cast<int>(buffer_ & ((1U << width_) - 1));
    buffer_ >>= width_;
    held_ -= width_;
    return code;
  }
  uint8_t first_of(int code) const {
    while (entries_[code].prefix != none) code = entries_[code].prefix;
    return entries_[code].last;
  }
  // No more than `count` values in all.
  void append(int code, int64_t count, std::vector<uint8_t>& out) const {
    const size_t begin = out.size();
    out.resize(begin + entries_[code].length);
    for (size_t i = out.size(); i-- > begin; code = entries_[code].prefix)
      out[i] = entries_[code].last;
    out.resize(std::min(out.size(), static_cast<size_t>(count)));
  }

  GifReader& reader_;
  const int bits_, clear_, end_;
  std::array<Entry, size> entries_;
  int next_ = 0, width_ = 0, previous_ = none;
  uint32_t buffer_ = 0;
  int held_ = 0;  // bits in buffer_
  std::string_view block_;
};

constexpr int no_color = -1, not_told = -2;  // for an index

struct Frame {
  int64_t left = 0, top = 0, width = 0, height = 0;
  std::string_view colors;  // three bytes each
  int transparent = no_color;
  std::vector<uint8_t> indices;  // by rows
};

std::string_view read_colors(GifReader& reader, int packed) {
  return (packed & 0x80) != 0 ? reader.bytes(size_t{3} << ((packed & 7) + 1)) : std::string_view();
}

// From the order of the file, in which every eighth row comes first.
void deinterlace(Frame& frame) {
  std::vector<uint8_t> rows(frame.indices.size());
  const uint8_t* from = frame.indices.data();
  for (const auto& [first, step] : {std::pair(0, 8), {4, 8}, {2, 4}, {1, 2}}) {
    for (int64_t y = first; y < frame.height; y += step, from += frame.width)
      std::memcpy(rows.data() + y * frame.width, from, frame.width);
  }
  frame.indices = std::move(rows);
}

// Behind its mark. The transparent colour is told before; `pixels` counts those of all frames.
Frame read_frame(GifReader& reader, std::string_view colors, int transparent, int64_t& pixels) {
  Frame frame;
  frame.left = reader.number();
  frame.top = reader.number();
  frame.width = reader.number();
  frame.height = reader.number();
  const int packed = reader.byte();
  frame.colors = read_colors(reader, packed);
  if (frame.colors.empty()) frame.colors = colors;
  frame.transparent = transparent;
  const int bits = reader.byte();
  if (bits > 8) throw Damage{"a frame has a wrong code size"};
  if (frame.width == 0 || frame.height == 0) throw Damage{"a frame is empty"};
  pixels += frame.width * frame.height;
  if (pixels > most_values / 3) {
    fail(Code::resource_exhausted, "frames of ", pixels, " pixels in all exceed the limit of ",
         most_values, " decoded values");
  }
  frame.indices = Lzw(reader, bits).read(frame.width * frame.height);
  if ((packed & 0x40) != 0) deinterlace(frame);
  return frame;
}

// Behind its mark: the transparent colour if it is a graphic control, the first before its frame.
void read_extension(GifReader& reader, int& transparent) {
  const bool is_control = reader.byte() == 0xf9;
  std::string_view block = reader.block();
  if (is_control && !block.empty() && transparent == not_told) {
    const bool has_color = block.size() == 4 && (block[0] & 1) != 0;
    transparent = has_color ? static_cast<uint8_t>(block[3]) : no_color;
  }
  while (!block.empty()) block = reader.block();
}

std::vector<Frame> read_frames(std::string_view file) {
  std::vector<Frame> out;
  try {
    GifReader reader(file);
    reader.bytes(10);  // the version, and the size of a canvas that nobody minds
    const int packed = reader.byte();
    reader.bytes(2);
    const std::string_view colors = read_colors(reader, packed);
    int transparent = not_told;
    int64_t pixels = 0;  // of all frames
    for (uint8_t mark = reader.byte(); mark != ';'; mark = reader.byte()) {
      if (mark == '!') {
        read_extension(reader, transparent);
      } else if (mark == ',') {
        out.push_back(read_frame(reader, colors, transparent, pixels));
        transparent = not_told;
      } else {
        throw Damage{"wrong record type"};
      }
    }
    check(!out.empty(), "Invalid GIF data (size ", file.size(), "), it has no images");
  } catch (const Damage& damage) {
    check(!out.empty(), "Invalid GIF data (size ", file.size(), "), ", damage.what);
  }
  return out;
}

void draw(const Frame& frame, int64_t width, int64_t height, uint8_t* canvas) {
  check(!frame.colors.empty(), "Invalid GIF data: missing color map for a frame");
  const auto* colors = reinterpret_cast<const uint8_t*>(frame.colors.data());
  for (int64_t y = frame.top; y < std::min(frame.top + frame.height, height); ++y) {
    for (int64_t x = frame.left; x < std::min(frame.left + frame.width, width); ++x) {
      const int index = frame.indices[(y - frame.top) * frame.width + x - frame.left];
      if (index == frame.transparent) continue;
      check(3 * static_cast<size_t>(index) < frame.colors.size(),
            "Invalid GIF data: found color index ", index, " outside of color map range ",
            frame.colors.size() / 3);
      std::memcpy(canvas + 3 * (y * width + x), colors + 3 * index, 3);
    }
  }
}

}  // namespace

Animation decode_gif(std::string_view file, bool only_first) {
  const std::vector<Frame> frames = read_frames(file);
  int64_t width = 0, height = 0;
  for (const Frame& frame : frames) {
    width = std::max(width, frame.width);
    height = std::max(height, frame.height);
  }
  Animation out{.frames = only_first ? 1 : static_cast<int64_t>(frames.size())};
  const int64_t size = 3 * width * height;
  if (out.frames > most_values / size) {
    fail(Code::resource_exhausted, out.frames, " frames of ", height, " x ", width,
         " pixels exceed the limit of ", most_values, " decoded values");
  }
  out.image = {.height = out.frames * height, .width = width, .channels = 3, .contents = {}};
  std::vector<uint8_t>& pixels = out.image.contents;
  pixels.resize(out.frames * size);
  for (int64_t i = 0; i < out.frames; ++i) {
    uint8_t* canvas = pixels.data() + i * size;
    if (i > 0) std::memcpy(canvas, canvas - size, size);
    draw(frames[i], width, height, canvas);
  }
  return out;
}

}  // namespace leat
