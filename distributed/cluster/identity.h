// Who a task is, and the greeting in which two tasks find out that they mean each other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/error.h"
#include "distributed/cluster/cluster_spec.h"

namespace leat {

// Of what tasks say to each other on streams. Tasks with different versions refuse each other.
inline constexpr uint32_t protocol_version = 4;

// A task of a cluster, as one process. Two processes that are started for the same task differ in
// their incarnation.
struct TaskIdentity {
  std::string cluster_id;  // "" fits every cluster (a sparse spec does not know); never sent
  // The cluster's description gives the id: who does not know it is refused. One that is made of
  // the addresses is no secret, and who knows not all of them does not know it.
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

// Any task answers this call, whose request is a Hello: with a Hello if the caller knows the
// cluster's id, else with one that tells no more than the version.
inline constexpr const char* identify_method = "/leat.Channel/Identify";

// What the dialling task says first.
struct Hello {
  TaskIdentity from;
  TaskName to;            // whom it wants to reach
  uint64_t window = 0;    // bytes that may be under way to it (channel.h)
  std::string why_again;  // why it had lost the task that it greets anew; "" if it had not
  // That `from` knows the cluster's id, told to `to` alone: of no use to say it to another task, or
  // of another process. "" if it does not know one. encode() makes it.
  std::string proof;
};

std::string encode(const Hello& hello);
Hello decode_hello(std::string_view bytes);  // INVALID_ARGUMENT if it is none

// What a task says of its cluster to masters, who know the id: of no use for a greeting.
std::string cluster_mark(const std::string& cluster_id, const TaskName& task, uint64_t incarnation);

// The answer to identify_method.
Hello answer_to_identify(std::string_view request, const TaskIdentity& self);

// Is `hello` from a task that `self` may talk to? OK, or FAILED_PRECONDITION with both sides named:
// another version, another cluster, or meant for another task. Whether the sender's task has an
// owner already is membership's matter.
Status check_hello(const Hello& hello, const TaskIdentity& self);
// Is the one who answered the task that was dialled at `address`?
Status check_answer(const Hello& answer, const TaskName& dialled, const std::string& address,
                    const TaskIdentity& self);

}  // namespace leat
