#include "core/memory/shared_region.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <limits>

#include "core/error.h"
#include "core/memory/memory_limit.h"

namespace leat {
namespace {

constexpr size_t unit = size_t{2} << 20;
constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

std::atomic<SharedRegion*> of_process{nullptr};

[[noreturn]] void fail_to(std::string_view what) {
  fail(Code::resource_exhausted, "cannot ", what, " shared memory: ", std::strerror(errno));
}

// Beyond it, setting a file's size ends the process (SIGXFSZ).
uint64_t file_size_limit() {
  rlimit size{};
  const bool is_limited = getrlimit(RLIMIT_FSIZE, &size) == 0 && size.rlim_cur != RLIM_INFINITY;
  return is_limited ? size.rlim_cur : std::numeric_limits<uint64_t>::max();
}

}  // namespace

SharedRegion::SharedRegion(size_t bytes) : bytes_((bytes + unit - 1) / unit * unit) {
  if (bytes_ > file_size_limit())
    fail(Code::resource_exhausted, "cannot make shared memory of ", bytes_,
         " bytes: the largest file may have ", file_size_limit(), " (ulimit -f)");
  file_ = Fd(memfd_create("leat-region", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file_ || ftruncate(file_.get(), static_cast<off_t>(bytes_)) != 0 ||
      fcntl(file_.get(), F_ADD_SEALS, seals) != 0)
    fail_to("make");
  for_reading_ = Fd(::open(concat("/proc/self/fd/", file_.get()).c_str(), O_RDONLY | O_CLOEXEC));
  if (!for_reading_) fail_to("open");
  // One unit more, so that the first address can be aligned.
  void* const addresses =
      mmap(nullptr, bytes_ + unit, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (addresses == MAP_FAILED) fail_to("map");
  char* const first = static_cast<char*>(addresses);
  const size_t before = -reinterpret_cast<uintptr_t>(first) % unit;
  if (before > 0) munmap(first, before);
  munmap(first + before + bytes_, unit - before);
  base_ = first + before;
  if (mmap(base_, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED,
           file_.get(), 0) == MAP_FAILED) {
    munmap(base_, bytes_);
    fail_to("map");
  }
  madvise(base_, bytes_, MADV_HUGEPAGE);  // where the system has such for shared memory
  madvise(base_, bytes_, MADV_DONTDUMP);  // a dump would give every page of it memory
  free_[0] = bytes_;
}

SharedRegion::~SharedRegion() { munmap(base_, bytes_); }

SharedRegion* SharedRegion::process() { return of_process.load(std::memory_order_acquire); }

void SharedRegion::open() {
  static std::mutex opening;
  std::lock_guard lock(opening);
  if (process() != nullptr) return;
  // Its addresses, and those of peers' regions, would count.
  if (address_space_limit() != std::numeric_limits<uint64_t>::max())
    fail(Code::resource_exhausted, "cannot share memory while the address space is limited to ",
         address_space_limit(), " bytes (ulimit -v)");
  of_process = new SharedRegion(2 * host_memory_limit());
}

void* SharedRegion::take(size_t bytes, size_t alignment) {
  std::lock_guard lock(mutex_);
  for (auto at = free_.begin(); at != free_.end(); ++at) {
    const auto [begin, size] = *at;
    const size_t from = (begin + alignment - 1) & ~(alignment - 1);
    if (from + bytes > begin + size) continue;
    if (from + bytes < begin + size) free_[from + bytes] = begin + size - from - bytes;
    if (from > begin) {
      at->second = from - begin;
    } else {
      free_.erase(at);
    }
    return base_ + from;
  }
  return nullptr;
}

void SharedRegion::give(void* data, size_t bytes) {
  madvise(data, bytes, MADV_REMOVE);
  std::lock_guard lock(mutex_);
  size_t begin = static_cast<size_t>(static_cast<char*>(data) - base_), end = begin + bytes;
  auto after = free_.lower_bound(begin);
  if (after != free_.end() && after->first == end) {
    end += after->second;
    after = free_.erase(after);
  }
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == begin) {
      before->second = end - before->first;
      return;
    }
  }
  free_[begin] = end - begin;
}

std::optional<uint64_t> SharedRegion::place_of(const void* data, size_t bytes) const {
  const auto address = reinterpret_cast<uintptr_t>(data), base = reinterpret_cast<uintptr_t>(base_);
  if (address < base || address - base > bytes_ || bytes > bytes_ - (address - base)) return {};
  return address - base;
}

PeerRegion::PeerRegion(const Fd& descriptor) {
  struct stat status {};
  if (fstat(descriptor.get(), &status) != 0 || status.st_size <= 0 ||
      (fcntl(descriptor.get(), F_GET_SEALS) & F_SEAL_SHRINK) == 0)
    fail(Code::data_loss, "the memory that a peer lets us read has no size or no seal");
  const auto bytes = static_cast<size_t>(status.st_size);
  void* const mapped =
      mmap(nullptr, bytes, PROT_READ, MAP_SHARED | MAP_NORESERVE, descriptor.get(), 0);
  if (mapped == MAP_FAILED) fail_to("map a peer's");
  madvise(mapped, bytes, MADV_DONTDUMP);
  base_ = static_cast<const char*>(mapped);
  bytes_ = bytes;
}

PeerRegion::~PeerRegion() { munmap(const_cast<char*>(base_), bytes_); }

const char* PeerRegion::at(uint64_t place, size_t bytes) const {
  return place <= bytes_ && bytes <= bytes_ - place ? base_ + place : nullptr;
}

}  // namespace leat
