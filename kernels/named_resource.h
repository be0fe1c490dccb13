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

// The node's own: state of another kind may have the same name.
template <class R>
R& own_resource(ExecuteContext& c) {
  return dynamic_cast<R&>(*c.resource(-1));
}

}  // namespace leat
