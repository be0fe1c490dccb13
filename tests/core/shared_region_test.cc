// Memory that other processes of the host may read.
#include "core/memory/shared_region.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/memory/block_memory.h"

namespace leat {
namespace {

constexpr size_t page = 4096, megabyte = size_t{1} << 20, huge_page = 2 * megabyte;

TEST(SharedRegion, HandsOutAlignedRangesThatDoNotOverlap) {
  SharedRegion region(16 * megabyte);
  auto* const first = static_cast<char*>(region.take(3 * page, page));
  auto* const huge = static_cast<char*>(region.take(4 * megabyte, huge_page));
  auto* const between = static_cast<char*>(region.take(page, page));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % page, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(huge) % huge_page, 0u);
  EXPECT_EQ(between, first + 3 * page) << "what the alignment skipped is used";
  EXPECT_EQ(region.take(11 * megabyte, page), nullptr) << "there is no room";
  std::memset(first, 1, 3 * page);
  std::memset(huge, 2, 4 * megabyte);
  std::memset(between, 3, page);
  EXPECT_EQ(first[3 * page - 1], 1);
  EXPECT_EQ(huge[4 * megabyte - 1], 2);
}

TEST(SharedRegion, JoinsWhatIsGivenBackAndEmptiesIt) {
  SharedRegion region(8 * megabyte);
  std::vector<char*> parts;
  for (int i = 0; i < 4; ++i) parts.push_back(static_cast<char*>(region.take(2 * megabyte, page)));
  EXPECT_EQ(region.take(page, page), nullptr);
  for (char* part : parts) std::memset(part, 5, 2 * megabyte);
  for (const size_t i : {2, 0, 3, 1}) region.give(parts[i], 2 * megabyte);
  auto* const whole = static_cast<char*>(region.take(8 * megabyte, page));
  ASSERT_NE(whole, nullptr) << "in one piece again";
  for (size_t at = 0; at < 8 * megabyte; at += page / 2) ASSERT_EQ(whole[at], 0) << at;
}

TEST(SharedRegion, PeersReadWhatLiesThereAndNothingElse) {
  SharedRegion region(4 * megabyte);
  auto* const data = static_cast<char*>(region.take(2 * page, page));
  std::memcpy(data + 10, "hello", 5);
  const PeerRegion peer(region.descriptor());
  const auto place = region.place_of(data + 10, 5);
  ASSERT_TRUE(place);
  const char* const seen = peer.at(*place, 5);
  EXPECT_NE(seen, data + 10) << "another mapping";
  EXPECT_EQ(std::string_view(seen, 5), "hello");
  std::memcpy(data + 10, "world", 5);
  EXPECT_EQ(std::string_view(seen, 5), "world");

  EXPECT_FALSE(region.place_of(&region, 1));
  EXPECT_FALSE(region.place_of(data, 5 * megabyte));
  EXPECT_FALSE(region.place_of(data - 1, 2)) << "it begins before the region";
  EXPECT_NE(peer.at(4 * megabyte - 5, 5), nullptr);
  EXPECT_EQ(peer.at(4 * megabyte - 4, 5), nullptr);
  EXPECT_EQ(peer.at(UINT64_MAX, 1), nullptr);
  EXPECT_EQ(peer.at(1, SIZE_MAX), nullptr);
  EXPECT_EQ(mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, region.descriptor().get(), 0),
            MAP_FAILED)
      << "for reading only";
}

TEST(SharedRegion, MemoryThatThePeerCouldCutShortIsRefused) {
  const Fd unsealed(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(unsealed.get(), 1 << 20), 0);
  const Fd none;
  for (const Fd* fd : {&unsealed, &none}) {
    try {
      const PeerRegion region(*fd);
      ADD_FAILURE() << "it was mapped";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::data_loss);
    }
  }
}

// A larger file than allowed would end the process.
TEST(SharedRegion, LimitOfFilesIsAnError) {
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit limit{megabyte, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &limit);
  try {
    SharedRegion region(4 * megabyte);
    ADD_FAILURE() << "it was made";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::resource_exhausted);
    EXPECT_NE(error.message().find("ulimit -f"), std::string::npos) << error.message();
  }
  setrlimit(RLIMIT_FSIZE, &before);
}

TEST(SharedRegion, BigBuffersOfTheProcessComeFromIt) {
  void* const before = BlockMemory::process().take(megabyte);
  SharedRegion::open();
  BlockMemory::process().give(before, megabyte);
  SharedRegion* const region = SharedRegion::process();
  SharedRegion::open();
  EXPECT_EQ(SharedRegion::process(), region) << "one for ever";
  for (const size_t bytes : {BlockMemory::least, megabyte, 5 * megabyte, BlockMemory::most}) {
    void* const data = BlockMemory::process().take(bytes);
    EXPECT_TRUE(region->place_of(data, bytes)) << bytes;
    std::memset(data, 1, bytes);
    BlockMemory::process().give(data, bytes);
  }
  BlockMemory other;
  void* const data = other.take(megabyte);
  EXPECT_FALSE(region->place_of(data, megabyte)) << "only those of the process";
  other.give(data, megabyte);
}

}  // namespace
}  // namespace leat
