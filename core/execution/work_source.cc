#include "core/execution/work_source.h"

#include <algorithm>
#include <functional>

namespace leat {

thread_local constinit WorkSource::Id WorkSource::id_ = WorkSource::none;

WorkSource::Id WorkSource::of(std::string_view session) {
  return std::max<Id>(requests + 1, std::hash<std::string_view>{}(session));
}

}  // namespace leat
