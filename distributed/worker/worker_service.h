// Serves a worker's messages, so that other tasks' masters can call it.
#pragma once

#include <memory>

namespace leat {

class RpcServer;
class Worker;

// Adds the worker's methods to a server that has not been started. If the caller of a RunGraph goes
// away, its step is aborted.
void serve_worker(RpcServer& server, std::shared_ptr<Worker> worker);

}  // namespace leat
