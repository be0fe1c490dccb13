// Lets other tasks' masters call a worker: its messages on a server.
#pragma once

#include <memory>

namespace leat {

class RpcServer;
class Worker;

// Adds the worker's methods to a server that has not been started. A RunGraph whose caller goes
// away aborts its step.
void serve_worker(RpcServer& server, std::shared_ptr<Worker> worker);

}  // namespace leat
