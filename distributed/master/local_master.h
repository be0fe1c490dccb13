// The masters of the tasks in this process. A program that is a task itself (frontends/cpp/
// cluster_member.h) asks its master directly: nothing is encoded, feeds and fetches are shared.
#pragma once

#include <memory>
#include <string>

#include "distributed/master/master_client.h"

namespace leat {

class Master;

// From now on find_local_master(target) finds it, until the return value goes.
std::shared_ptr<const void> register_local_master(const std::string& target,
                                                  const std::shared_ptr<Master>& master);

// Null if no task of this process has this target ("grpc://host:port", as Task::target() says).
// After the task's end its calls are UNAVAILABLE; it must not end during one.
std::unique_ptr<MasterClient> find_local_master(const std::string& target);

}  // namespace leat
