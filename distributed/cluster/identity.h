// A task's identity, and the greeting by which two tasks verify each other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/error.h"
#include "distributed/cluster/cluster_spec.h"

namespace leat {

// The version of the streams between tasks. Tasks with different versions refuse each other.
inline constexpr uint32_t protocol_version = 8;

// A task of a cluster, as one process. Two processes started for the same task differ in their
// incarnation.
struct TaskIdentity {
  std::string cluster_id;  // "" fits every cluster (a sparse spec does not know); never sent
  // The cluster's description gives the id: a task that does not know it is refused. An id made of
  // the addresses is no secret, and unknown to a task that does not know all addresses.
  bool is_id_given = false;
  TaskName task;
  uint64_t incarnation = 0;  // random, never 0
  uint32_t version = protocol_version;
  std::string process;  // "host:pid", for messages

  // "/job:ps/task:0 (incarnation 5f3a…, process host:1234)"
  std::string to_string() const;
  bool operator==(const TaskIdentity&) const = default;
};

// This process's identity as `task`, with a fresh incarnation.
TaskIdentity make_identity(std::string cluster_id, const TaskName& task, bool is_id_given = false);

// Any task answers this call. The request is a Hello. The answer is a Hello if the caller knows the
// cluster's id, else one with only the version.
inline constexpr const char* identify_method = "/leat.Channel/Identify";

// The dialling task's first message.
struct Hello {
  TaskIdentity from;
  TaskName to;            // the task it wants to reach
  uint64_t window = 0;    // bytes that may be under way to it (channel.h)
  std::string why_again;  // why it lost the task it greets again; "" if it did not
  // Proves to `to` alone that `from` knows the cluster's id: useless towards another task or from
  // another process. "" if it does not know an id. encode() computes it.
  std::string proof;
  // Of the dialling task: where peers on its host hand over shared memory (wire/host_link.h), "" if
  // it has none. In the answer: the number of the link that has been handed over, or "".
  std::string host_link = {};
};

std::string encode(const Hello& hello);
Hello decode_hello(std::string_view bytes);  // INVALID_ARGUMENT if it is none

// How a task identifies its cluster to masters that know the id; useless for a greeting.
std::string cluster_mark(const std::string& cluster_id, const TaskName& task, uint64_t incarnation);

// The answer to identify_method.
Hello answer_to_identify(std::string_view request, const TaskIdentity& self);

// OK if `self` may talk to the sender of `hello`. FAILED_PRECONDITION, naming both sides, for
// another version, another cluster, or a hello meant for another task. Membership checks whether
// the sender's task already has an owner.
Status check_hello(const Hello& hello, const TaskIdentity& self);
// OK if the answer comes from the task that was dialled at `address`.
Status check_answer(const Hello& answer, const TaskName& dialled, const std::string& address,
                    const TaskIdentity& self);

}  // namespace leat
