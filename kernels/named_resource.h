// Makes state that a task keeps under a name, and finds it for ops without a handle to it (a
// staging area, a map of sparse tensors). These ops also set OpDef::make_resource.
#pragma once

#include <memory>
#include <string>

#include "core/kernel.h"
#include "core/state/resource.h"

namespace leat {

// For make_resource.
template <class R>
std::shared_ptr<Resource> make_named(const NodeView& node) {
  return std::make_shared<R>(resource_name(node));
}

// The node's own state: state of another kind may have the same name.
template <class R>
R& own_resource(ExecuteContext& c) {
  return dynamic_cast<R&>(*c.resource(-1));
}

}  // namespace leat
