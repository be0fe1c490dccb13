// A master over the wire: the C++ client of TensorFlow's MasterService protocol, for the task at
// "grpc://host:port".
#pragma once

#include "distributed/master/master_client.h"

namespace leat {

// Every error says what is unreachable, and why. A task that is only starting is waited for up to a
// minute when the session is made. A call whose connection breaks is repeated for a second, with
// the id that makes the master answer it only once.
std::unique_ptr<MasterClient> make_remote_master(const std::string& target);

// Clears containers (none: the default one) on the tasks that pass the filters, and closes all
// sessions of the master at `target`.
void reset_containers(const std::string& target, const std::vector<std::string>& containers,
                      const std::vector<std::string>& device_filters = {});

// Closes a session of another client, one that has vanished: its handle is in `leat top`. ABORTED
// if the master at `target` has no such session.
void close_session(const std::string& target, const std::string& handle);

}  // namespace leat
