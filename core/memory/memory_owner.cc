#include "core/memory/memory_owner.h"

namespace leat {
namespace {

// Behind a function: the plug-in of GPUs is another library.
const MemoryOwner*& innermost() {
  thread_local const MemoryOwner* owner = nullptr;
  return owner;
}

}  // namespace

MemoryOwner::MemoryOwner(MemoryUse use, std::string_view name)
    : use_(use), name_(name), outer_(innermost()) {
  innermost() = this;
}

MemoryOwner::~MemoryOwner() { innermost() = outer_; }

const MemoryOwner* MemoryOwner::current() { return innermost(); }

}  // namespace leat
