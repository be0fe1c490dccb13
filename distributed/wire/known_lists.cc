#include "distributed/wire/known_lists.h"

#include <algorithm>
#include <cstring>

namespace leat {
namespace {

constexpr size_t most_lists = 64;  // so a search is short

}  // namespace

std::optional<uint64_t> KnownLists::find(uint32_t checksum, const void* data, uint64_t bytes) {
  const auto found = std::find_if(lists_.begin(), lists_.end(), [&](const List& each) {
    return each.checksum == checksum && each.bytes->size() == bytes &&
           std::memcmp(each.bytes->data(), data, bytes) == 0;
  });
  if (found == lists_.end()) return {};
  lists_.splice(lists_.begin(), lists_, found);
  return found->number;
}

std::shared_ptr<const std::string> KnownLists::find(uint64_t number) {
  const auto found = std::find_if(lists_.begin(), lists_.end(),
                                  [&](const List& each) { return each.number == number; });
  if (found == lists_.end()) return nullptr;
  lists_.splice(lists_.begin(), lists_, found);
  return found->bytes;
}

uint64_t KnownLists::add(uint32_t checksum, std::shared_ptr<const std::string> list) {
  const uint64_t number = next_++;
  if (list == nullptr || list->size() > capacity_) return number;
  size_ += list->size();
  lists_.push_front({number, checksum, std::move(list)});
  while (size_ > capacity_ || lists_.size() > most_lists) {
    size_ -= lists_.back().bytes->size();
    lists_.pop_back();
  }
  return number;
}

}  // namespace leat
