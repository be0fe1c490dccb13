#include "distributed/cluster/identity.h"

#include <unistd.h>

#include <climits>
#include <cstring>
#include <sstream>
#include <vector>

#include "distributed/grpc/digest.h"
#include "distributed/random_id.h"

namespace leat {
namespace {

class Writer {
 public:
  void number(uint64_t value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(std::string_view value) {
    number(value.size());
    bytes_.append(value);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  uint64_t number() {
    uint64_t value = 0;
    const std::string_view from = take(sizeof value);
    std::memcpy(&value, from.data(), sizeof value);
    return value;
  }
  std::string text() { return std::string(take(number())); }

 private:
  std::string_view take(uint64_t size) {
    check(size <= bytes_.size(), "the greeting of a task is cut short");
    const std::string_view out = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return out;
  }
  std::string_view bytes_;
};

// The number of tasks that an id made of addresses tells: no secret, and needed to compare partial
// descriptions (may_be_one_cluster). "" of an id that was given.
std::string size_suffix(const std::string& id) {
  const size_t at = id.rfind(" of ");
  if (at == id.npos || at + 4 == id.size()) return {};
  return id.find_first_not_of("0123456789", at + 4) == id.npos ? id.substr(at) : std::string();
}

std::string proof_of(const TaskIdentity& from, const TaskName& to, const std::string& cluster_id) {
  if (cluster_id.empty()) return {};
  return sha256(concat("hello ", cluster_id.size(), " ", cluster_id, " ", from.task, " ",
                       from.incarnation, " ", to)) +
         size_suffix(cluster_id);
}

// Does who sent it know our cluster's id? `to`: whom it meant.
bool is_of_cluster(const Hello& hello, const TaskIdentity& self) {
  if (self.cluster_id.empty()) return true;
  if (hello.proof.empty()) return !self.is_id_given;
  const std::string expected = proof_of(hello.from, hello.to, self.cluster_id);
  return self.is_id_given ? hello.proof == expected : may_be_one_cluster(hello.proof, expected);
}

// Version and cluster: what must agree whoever talks to whom. `who` says who the other one is.
Status check_kind(const Hello& hello, const std::string& who, const TaskIdentity& self) {
  const TaskIdentity& other = hello.from;
  if (other.version != self.version) {
    return {Code::failed_precondition,
            concat(who, " speaks version ", other.version, " of the protocol, ", self.task,
                   " version ", self.version, ": use the same build of Leat on all tasks")};
  }
  if (!is_of_cluster(hello, self)) {
    return {Code::failed_precondition,
            hello.proof.empty()
                ? concat(who, " does not know the cluster_id that ", self.task, " has been given")
                : concat(who, " belongs to another cluster than ", self.task,
                         ": their cluster_id or their addresses differ")};
  }
  return {};
}

}  // namespace

std::string TaskIdentity::to_string() const {
  std::ostringstream out;
  out << task << " (incarnation " << std::hex << incarnation << std::dec << ", process " << process;
  out << ')';
  return out.str();
}

TaskIdentity make_identity(std::string cluster_id, const TaskName& task, bool is_id_given) {
  char host[HOST_NAME_MAX + 1] = {};
  gethostname(host, HOST_NAME_MAX);
  return {.cluster_id = std::move(cluster_id),
          .is_id_given = is_id_given,
          .task = task,
          .incarnation = random_id(),
          .version = protocol_version,
          .process = concat(host, ':', getpid())};
}

// The version comes first, for ever: whatever follows, two tasks can always tell that they do not
// match.
std::string encode(const Hello& hello) {
  Writer writer;
  writer.number(hello.from.version);
  writer.text(proof_of(hello.from, hello.to, hello.from.cluster_id));
  writer.text(hello.from.task.job);
  writer.number(static_cast<uint64_t>(hello.from.task.index));
  writer.number(hello.from.incarnation);
  writer.text(hello.from.process);
  writer.text(hello.to.job);
  writer.number(static_cast<uint64_t>(hello.to.index));
  writer.number(hello.window);
  writer.text(hello.why_again);
  writer.text(hello.host_link);
  return writer.take();
}

Hello decode_hello(std::string_view bytes) {
  Reader reader(bytes);
  Hello hello;
  hello.from.version = static_cast<uint32_t>(reader.number());
  if (hello.from.version != protocol_version) return hello;
  hello.proof = reader.text();
  hello.from.task.job = reader.text();
  hello.from.task.index = static_cast<int>(reader.number());
  hello.from.incarnation = reader.number();
  hello.from.process = reader.text();
  hello.to.job = reader.text();
  hello.to.index = static_cast<int>(reader.number());
  hello.window = reader.number();
  hello.why_again = reader.text();
  hello.host_link = reader.text();
  check(hello.from.incarnation != 0, "a task greeted without an incarnation");
  return hello;
}

Status check_hello(const Hello& hello, const TaskIdentity& self) {
  const bool is_known_version = hello.from.version == self.version;
  const std::string who = is_known_version
                              ? concat(hello.from.task, " (process ", hello.from.process, ")")
                              : "the caller";
  if (Status status = check_kind(hello, who, self); !status.is_ok()) return status;
  if (hello.to != self.task) {
    return {Code::failed_precondition,
            concat("another task answers there: ", who, " wants to reach ", hello.to,
                   ", and this is ", self.to_string())};
  }
  return {};
}

std::string cluster_mark(const std::string& cluster_id, const TaskName& task,
                         uint64_t incarnation) {
  if (cluster_id.empty()) return {};
  return sha256(
             concat("status ", cluster_id.size(), " ", cluster_id, " ", task, " ", incarnation)) +
         size_suffix(cluster_id);
}

Hello answer_to_identify(std::string_view request, const TaskIdentity& self) {
  Hello nobody;
  nobody.from.incarnation = random_id();
  nobody.from.version = self.version;
  if (request.empty()) return nobody;
  const Hello hello = decode_hello(request);
  if (hello.from.version != self.version || !is_of_cluster(hello, self)) return nobody;
  return {.from = self, .to = hello.from.task, .why_again = {}, .proof = {}};
}

Status check_answer(const Hello& hello, const TaskName& dialled, const std::string& address,
                    const TaskIdentity& self) {
  const std::string who = concat("the task at ", address);
  const TaskIdentity& answer = hello.from;
  if (answer.version == self.version && answer.task.job.empty()) {
    return {Code::failed_precondition, concat(who, " belongs to another cluster than ", self.task,
                                              ": their cluster_id or their addresses differ")};
  }
  if (Status status = check_kind(hello, who, self); !status.is_ok()) return status;
  if (answer.task != dialled) {
    return {Code::failed_precondition,
            concat("another task answers there: ", self.task, " dialled ", dialled, " at ", address,
                   ", and this is ", answer.to_string())};
  }
  return {};
}

}  // namespace leat
