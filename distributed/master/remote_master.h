// A master over the wire: the C++ client of TensorFlow's MasterService protocol, for the task at
// "grpc://host:port".
#pragma once

#include "distributed/master/master_client.h"

namespace leat {

// Errors say what is unreachable and why. Making a session waits up to a minute for a task that is
// starting. A call whose connection breaks is repeated for a second, with the id that makes the
// master answer it only once.
std::unique_ptr<MasterClient> make_remote_master(const std::string& target);

// Clears containers (none: the default one) on the tasks that pass the filters, and closes all
// sessions of the master at `target`.
void reset_containers(const std::string& target, const std::vector<std::string>& containers,
                      const std::vector<std::string>& device_filters = {});

// Closes the session of another client that has vanished: `leat top` shows its handle. ABORTED if
// the master at `target` has no session of that handle.
void close_session(const std::string& target, const std::string& handle);

}  // namespace leat
