// Layout: data blocks, a block of metadata, a block that maps keys to data blocks, a footer with
// the handles of the last two. A block is its contents, a byte for the compression and a checksum;
// its contents are entries whose keys omit the prefix they share with the previous one, then the
// offsets of whole keys, and their number.
#include "graph/formats/table_reader.h"

#include <algorithm>
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
  if (count > bytes.size()) fail(Code::data_loss, "an entry ends outside its block");
  const std::string_view out = bytes.substr(0, count);
  bytes.remove_prefix(count);
  return out;
}

enum : char { stored_plain = 0, stored_by_snappy = 1 };

// Where a block lies: `size` bytes at `offset`, then its trailer.
struct Handle {
  uint64_t offset = 0, size = 0;
};

// Takes a handle from the front. What it leads to ends at byte `end` at the latest.
Handle take_handle(std::string_view& bytes, uint64_t end) {
  Handle out{take_varint(bytes), take_varint(bytes)};
  if (out.offset > end || out.size > end - out.offset ||
      trailer_bytes > end - out.offset - out.size) {
    fail(Code::data_loss, "a block of ", out.size, " bytes at ", out.offset,
         " ends outside the file");
  }
  return out;
}

// The handle of the block of keys, from the footer.
Handle keys_of(std::string_view footer, uint64_t end) {
  if (!ends_as_table(footer)) fail(Code::data_loss, "it does not end like a table");
  for (int number = 0; number < 2; ++number) take_varint(footer);  // the block of metadata
  return take_handle(footer, end);
}

// The contents of a block that is stored as these bytes, with its trailer; decompressed into
// `buffer` if need be.
std::string_view contents_of(const Handle& handle, std::string_view stored, std::string& buffer) {
  const std::string_view contents = stored.substr(0, handle.size);
  const std::string_view trailer = stored.substr(handle.size, trailer_bytes);
  if (fixed<uint32_t>(trailer.substr(1)) != masked_crc(crc32c(contents.data(), handle.size + 1)))
    fail(Code::data_loss, "the block at ", handle.offset, " has changed: its checksum is wrong");
  if (trailer[0] == stored_plain) return contents;
  if (trailer[0] != stored_by_snappy) {
    fail(Code::unimplemented, "the block at ", handle.offset,
         " has an unknown kind of compression: ", int{trailer[0]});
  }
  buffer = snappy_decompressed(contents);
  return buffer;
}

template <class Action>
void for_each_entry(std::string_view contents, const Action& action) {
  const auto bad = [] { fail(Code::data_loss, "a block is too short for its entries"); };
  if (contents.size() < sizeof(uint32_t)) bad();
  const size_t end = contents.size() - sizeof(uint32_t);
  const auto restarts = fixed<uint32_t>(contents.substr(end));
  if (restarts > end / sizeof(uint32_t)) bad();
  std::string_view rest = contents.substr(0, end - restarts * sizeof(uint32_t));
  std::string key;
  while (!rest.empty()) {
    const uint64_t shared = take_varint(rest), own = take_varint(rest), size = take_varint(rest);
    if (shared > key.size())
      fail(Code::data_loss, "a key shares more bytes than the key before it has");
    key.resize(shared);
    key += take(rest, own);
    action(std::string_view(key), take(rest, size));
  }
}

// What the views are of: `stored`, or `buffer`.
std::string_view read_block(const FileReader& file, const Handle& handle, std::string& stored,
                            std::string& buffer) {
  stored.resize(handle.size + trailer_bytes);
  file.read(handle.offset, stored.data(), stored.size());
  return contents_of(handle, stored, buffer);
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
  const auto contents = [&](const Handle& handle, std::string& buffer) {
    return contents_of(handle, table.substr(handle.offset, handle.size + trailer_bytes), buffer);
  };
  std::string keys, entries;
  size_t seen = 0;
  const Handle first = keys_of(bytes.substr(table.size()), table.size());
  for_each_entry(contents(first, keys), [&](std::string_view, std::string_view place) {
    const Handle handle = take_handle(place, table.size());
    seen += handle.size;
    if (seen > table.size()) fail(Code::data_loss, "its blocks overlap");
    for_each_entry(contents(handle, entries), on_entry);
  });
}

TableFile::TableFile(const std::string& path, const FileRoots& roots) : file_(path, roots) {
  if (file_.size() < footer_bytes) fail(Code::data_loss, "it is too short for a table");
  std::string footer(footer_bytes, '\0');
  file_.read(file_.size() - footer_bytes, footer.data(), footer.size());
  std::string stored, buffer;
  const Handle keys = keys_of(footer, file_.size() - footer_bytes);
  for_each_entry(read_block(file_, keys, stored, buffer),
                 [&](std::string_view key, std::string_view handle) {
                   blocks_.push_back({std::string(key), std::string(handle)});
                 });
}

std::optional<std::string> TableFile::find(std::string_view key) const {
  const auto block =
      std::lower_bound(blocks_.begin(), blocks_.end(), key,
                       [](const BlockPlace& a, std::string_view b) { return a.last_key < b; });
  if (block == blocks_.end()) return std::nullopt;
  std::string_view place = block->handle;
  const Handle handle = take_handle(place, file_.size() - footer_bytes);
  std::optional<std::string> out;
  std::string stored, buffer;
  for_each_entry(read_block(file_, handle, stored, buffer),
                 [&](std::string_view other, std::string_view value) {
                   if (other == key) out = value;
                 });
  return out;
}

}  // namespace leat
