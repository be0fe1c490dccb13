#include "distributed/identity.h"

#include <unistd.h>

#include <climits>
#include <cstring>
#include <sstream>
#include <vector>

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

// Version and cluster: what must agree whoever talks to whom. `who` says who the other one is.
Status check_kind(const TaskIdentity& other, const std::string& who, const TaskIdentity& self) {
  if (other.version != self.version) {
    return {Code::failed_precondition,
            concat(who, " speaks version ", other.version, " of the protocol, ", self.task,
                   " version ", self.version, ": use the same build of Leat on all tasks")};
  }
  if (!may_be_one_cluster(other.cluster_id, self.cluster_id)) {
    return {Code::failed_precondition,
            concat(who, " belongs to cluster \"", other.cluster_id, "\", ", self.task,
                   " to cluster \"", self.cluster_id, "\"")};
  }
  return {};
}

}  // namespace

std::string TaskIdentity::to_string() const {
  std::ostringstream out;
  out << task << " (incarnation " << std::hex << incarnation << std::dec << ", process " << process;
  if (!cluster_id.empty()) out << ", cluster \"" << cluster_id << '"';
  out << ')';
  return out.str();
}

TaskIdentity make_identity(std::string cluster_id, const TaskName& task) {
  char host[HOST_NAME_MAX + 1] = {};
  gethostname(host, HOST_NAME_MAX);
  return {.cluster_id = std::move(cluster_id),
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
  writer.text(hello.from.cluster_id);
  writer.text(hello.from.task.job);
  writer.number(static_cast<uint64_t>(hello.from.task.index));
  writer.number(hello.from.incarnation);
  writer.text(hello.from.process);
  writer.text(hello.to.job);
  writer.number(static_cast<uint64_t>(hello.to.index));
  writer.number(hello.window);
  writer.text(hello.why_again);
  return writer.take();
}

Hello decode_hello(std::string_view bytes) {
  Reader reader(bytes);
  Hello hello;
  hello.from.version = static_cast<uint32_t>(reader.number());
  if (hello.from.version != protocol_version) return hello;
  hello.from.cluster_id = reader.text();
  hello.from.task.job = reader.text();
  hello.from.task.index = static_cast<int>(reader.number());
  hello.from.incarnation = reader.number();
  hello.from.process = reader.text();
  hello.to.job = reader.text();
  hello.to.index = static_cast<int>(reader.number());
  hello.window = reader.number();
  hello.why_again = reader.text();
  check(hello.from.incarnation != 0, "a task greeted without an incarnation");
  return hello;
}

Status check_hello(const Hello& hello, const TaskIdentity& self) {
  const bool is_known_version = hello.from.version == self.version;
  const std::string who = is_known_version
                              ? concat(hello.from.task, " (process ", hello.from.process, ")")
                              : "the caller";
  if (Status status = check_kind(hello.from, who, self); !status.is_ok()) return status;
  if (hello.to != self.task) {
    return {Code::failed_precondition,
            concat("another task answers there: ", who, " wants to reach ", hello.to,
                   ", and this is ", self.to_string())};
  }
  return {};
}

Status check_answer(const TaskIdentity& answer, const TaskName& dialled, const std::string& address,
                    const TaskIdentity& self) {
  const std::string who = concat("the task at ", address);
  if (Status status = check_kind(answer, who, self); !status.is_ok()) return status;
  if (answer.task != dialled) {
    return {Code::failed_precondition,
            concat("another task answers there: ", self.task, " dialled ", dialled, " at ", address,
                   ", and this is ", answer.to_string())};
  }
  return {};
}

}  // namespace leat
