// TensorFlow's MasterService on the wire, in front of a Master.
// tf.compat.v1.Session("grpc://host:port") and our own remote_master speak it. The traps are those
// of TensorFlow's clients: errors of a step travel in the body of an OK reply, fetches come back
// under exactly the requested names, a repeated request gets the first answer, and UNAVAILABLE,
// which makes clients repeat a call, is never reported for another task.
#pragma once

#include <memory>

namespace leat {

class Master;
class RpcServer;
class ThreadPool;
class Timer;

// Adds the methods to a server that has not been started. The pool and the timer must outlive the
// server.
void serve_master(RpcServer& server, std::shared_ptr<Master> master, ThreadPool& pool,
                  Timer& timer);

}  // namespace leat
