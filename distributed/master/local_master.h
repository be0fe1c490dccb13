// The masters of the tasks in this process. A program that is itself a task (frontends/cpp/
// cluster.h) calls its master directly: nothing is encoded; feeds and fetches are shared.
#pragma once

#include <memory>
#include <string>

#include "distributed/master/master_client.h"

namespace leat {

class Master;

// find_local_master(target) finds the master until the returned handle goes.
std::shared_ptr<const void> register_local_master(const std::string& target,
                                                  const std::shared_ptr<Master>& master);

// Null if no task of this process has this target ("grpc://host:port", as in Task::target()). After
// the task's end its calls are UNAVAILABLE; the task must not end during one.
std::unique_ptr<MasterClient> find_local_master(const std::string& target);

}  // namespace leat
