// Layout: data blocks, a block of metadata, a block that maps keys to data blocks, a footer with
// the handles of the last two. A block is its contents, a byte for the compression and a checksum;
// its contents are entries whose keys leave out what they share with the one before, then the
// offsets of keys that are whole, and how many these are.
#include "graph/formats/table_reader.h"

#include <cstdint>
#include <cstring>
#include <string>

#include "core/crc32c.h"
#include "core/error.h"
#include "graph/formats/snappy.h"

namespace leat {
namespace {

constexpr size_t footer_bytes = 48, trailer_bytes = 5;
constexpr uint64_t magic = 0xdb4775248b80fb57;

template <class T>
T fixed(std::string_view bytes) {
  T out;
  std::memcpy(&out, bytes.data(), sizeof out);
  return out;
}

// Takes a number from the front.
uint64_t take_varint(std::string_view& bytes) {
  uint64_t out = 0;
  for (int shift = 0; shift <= 63 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    out |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return out;
  }
  fail(Code::data_loss, "a number in it does not end");
}

std::string_view take(std::string_view& bytes, uint64_t count) {
  if (count > bytes.size()) fail(Code::data_loss, "an entry leads out of its block");
  const std::string_view out = bytes.substr(0, count);
  bytes.remove_prefix(count);
  return out;
}

enum : char { stored_plain = 0, stored_by_snappy = 1 };

struct Block {
  size_t stored_bytes = 0;
  std::string decompressed;   // if it was compressed
  std::string_view contents;  // of the table, or of `decompressed`
};

// What the handle, taken from the front of `handle`, leads to.
void read_block(std::string_view table, std::string_view& handle, Block& out) {
  const uint64_t offset = take_varint(handle), size = take_varint(handle);
  if (offset > table.size() || size > table.size() - offset ||
      trailer_bytes > table.size() - offset - size)
    fail(Code::data_loss, "a block of ", size, " bytes at ", offset, " leads out of the file");
  out.stored_bytes = size;
  out.contents = table.substr(offset, size);
  const std::string_view trailer = table.substr(offset + size, trailer_bytes);
  if (fixed<uint32_t>(trailer.substr(1)) != masked_crc(crc32c(out.contents.data(), size + 1)))
    fail(Code::data_loss, "the block at ", offset, " has changed: its checksum is wrong");
  if (trailer[0] == stored_plain) return;
  if (trailer[0] != stored_by_snappy) {
    fail(Code::unimplemented, "the block at ", offset,
         " is compressed in a way that is not known: ", int{trailer[0]});
  }
  out.decompressed = snappy_decompressed(out.contents);
  out.contents = out.decompressed;
}

template <class Action>
void for_each_entry(std::string_view contents, const Action& action) {
  const auto bad = [] { fail(Code::data_loss, "a block is too short for what it says"); };
  if (contents.size() < sizeof(uint32_t)) bad();
  const size_t end = contents.size() - sizeof(uint32_t);
  const auto restarts = fixed<uint32_t>(contents.substr(end));
  if (restarts > end / sizeof(uint32_t)) bad();
  std::string_view rest = contents.substr(0, end - restarts * sizeof(uint32_t));
  std::string key;
  while (!rest.empty()) {
    const uint64_t shared = take_varint(rest), own = take_varint(rest), size = take_varint(rest);
    if (shared > key.size()) fail(Code::data_loss, "a key shares more than there is");
    key.resize(shared);
    key += take(rest, own);
    action(std::string_view(key), take(rest, size));
  }
}

}  // namespace

bool ends_as_table(std::string_view bytes) {
  return bytes.size() >= sizeof magic &&
         fixed<uint64_t>(bytes.substr(bytes.size() - sizeof magic)) == magic;
}

void read_table(std::string_view bytes,
                const std::function<void(std::string_view, std::string_view)>& on_entry) {
  if (bytes.size() < footer_bytes) fail(Code::data_loss, "it is too short for a table");
  const std::string_view table = bytes.substr(0, bytes.size() - footer_bytes);
  std::string_view footer = bytes.substr(table.size());
  if (!ends_as_table(footer)) fail(Code::data_loss, "it does not end as a table does");
  for (int number = 0; number < 2; ++number) take_varint(footer);  // the block of metadata
  Block keys, entries;
  read_block(table, footer, keys);
  size_t seen = 0;
  for_each_entry(keys.contents, [&](std::string_view, std::string_view handle) {
    read_block(table, handle, entries);
    seen += entries.stored_bytes;
    if (seen > table.size()) fail(Code::data_loss, "its blocks overlap");
    for_each_entry(entries.contents, on_entry);
  });
}

}  // namespace leat
