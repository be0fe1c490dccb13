// State that a task keeps under a name: how it is made, and how ops find it that have no handle on
// it (a staging area, a map of sparse tensors). These set OpDef::make_resource, too.
#pragma once

#include <memory>
#include <string>

#include "core/kernel.h"
#include "core/resource.h"

namespace leat {

// For make_resource.
template <class R>
std::shared_ptr<Resource> make_named(const NodeView& node) {
  return std::make_shared<R>(resource_name(node));
}

// The node's own. INVALID_ARGUMENT if its name belongs to state of another kind.
template <class R>
R& own_resource(ExecuteContext& c, const char* what) {
  const std::shared_ptr<Resource>& resource = c.resource(-1);
  auto* out = dynamic_cast<R*>(resource.get());
  check(out != nullptr, "'", resource->name(), "' is no ", what,
        ": choose another shared_name for one of them");
  return *out;
}

}  // namespace leat
