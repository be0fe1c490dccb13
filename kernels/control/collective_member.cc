#include "kernels/control/collective_member.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "core/execution/blocking_work.h"

namespace leat {

struct CollectiveMember::Pending {
  CollectiveCall call;
  Tensor in, out;
  std::shared_ptr<const StreamMark> mark;  // of `in`
  Done done;
  std::atomic<bool> has_ended = false;
};

struct CollectiveMember::Part {
  std::shared_ptr<CollectiveMember> member;
  CommunicatorPointer communicator;
  int64_t number = 0, collectives = 0;
  Cancellation* cancellation = nullptr;  // set by watch()
  Cancellation::Token token = -1;
  std::atomic<int64_t> finished = 0;  // collectives
  // Guarded by the member's lock:
  int64_t next = 0;  // the position whose turn it is
  bool is_broken = false;
  std::map<int64_t, std::shared_ptr<Pending>> pending;  // by position
};

namespace {

// A ticket is the number of the step, 8 bytes, and the communicator's id.
std::string ticket_of(int64_t number, const std::string& id) {
  std::string out(sizeof(number), '\0');
  std::memcpy(out.data(), &number, sizeof(number));
  return out + id;
}

}  // namespace

CollectiveMember::CollectiveMember(const NodeView& join)
    : Resource(resource_name(join)),
      rank_(static_cast<int>(join.attr<int64_t>("rank"))),
      members_(static_cast<int>(join.attr<int64_t>("members"))),
      devices_(join.attr<std::string>("devices")) {}

// No part is left, for parts hold the member.
CollectiveMember::~CollectiveMember() = default;

std::string CollectiveMember::state() const {
  const std::lock_guard lock(mutex_);
  const std::string title = concat("collectives of ", devices_, ": ");
  if (!why_broken_.is_ok()) return title + concat("broken off: ", why_broken_.message);
  if (communicator_ == nullptr) return title + "no step yet";
  if (!is_ready_) return title + concat("member ", rank_, " waits until all have met");
  const auto found = parts_.find(turn_);
  if (found == parts_.end()) return title + concat(turn_, " steps have run");
  const Part& part = *found->second;
  return title + concat("member ", rank_, " has enqueued ", part.next, " of the ", part.collectives,
                        " of step ", turn_, " and finished ", part.finished.load());
}

std::pair<CollectiveMember::PartPointer, std::string> CollectiveMember::begin(
    CommunicatorLibrary& library, Device& device, int64_t collectives, Cancellation& cancellation) {
  PartPointer part;
  std::string ticket;
  {
    const std::lock_guard lock(mutex_);
    if (communicator_ == nullptr) meet(library, device, library.new_id());
    part = add_part(next_++, collectives);
    ticket = ticket_of(part->number, id_);
  }
  watch(part, cancellation);
  return {part, ticket};
}

CollectiveMember::PartPointer CollectiveMember::begin(CommunicatorLibrary& library, Device& device,
                                                      const std::string& ticket,
                                                      int64_t collectives,
                                                      Cancellation& cancellation) {
  int64_t number = 0;
  check(ticket.size() > sizeof(number), "a ticket for collectives of ", devices_, " has ",
        ticket.size(), " bytes");
  std::memcpy(&number, ticket.data(), sizeof(number));
  const std::string id = ticket.substr(sizeof(number));
  CommunicatorPointer former;
  {
    const std::lock_guard lock(mutex_);
    if (id_ != id) former = communicator_;
  }
  if (former != nullptr)
    break_up(former,
             {Code::aborted, "the first member has begun a new group after an error", true});
  PartPointer part;
  {
    const std::lock_guard lock(mutex_);
    if (id_ != id) meet(library, device, id);
    if (communicator_ == nullptr) {
      fail(Code::aborted, "collectives of ", devices_,
           " were broken off by an error: ", why_broken_.message, ": run the step again");
    }
    part = add_part(number, collectives);
  }
  watch(part, cancellation);
  return part;
}

void CollectiveMember::meet(CommunicatorLibrary& library, Device& device, const std::string& id) {
  stream_ = dynamic_cast<HasSideStreams&>(device).take_side_stream();
  communicator_ = library.make(device, id, rank_, members_);
  id_ = id;
  why_broken_ = {};
  is_ready_ = false;
  next_ = turn_ = 0;
  run_waiting([self = shared_from_this(), communicator = communicator_] {
    self->wait_for_members(communicator);
  });
}

CollectiveMember::PartPointer CollectiveMember::add_part(int64_t number, int64_t collectives) {
  auto part = std::make_shared<Part>();
  part->member = shared_from_this();
  part->communicator = communicator_;
  part->number = number;
  part->collectives = collectives;
  check(parts_.emplace(number, part).second, "step ", number, " of the collectives of ", devices_,
        " has begun before");
  return part;
}

void CollectiveMember::watch(const PartPointer& part, Cancellation& cancellation) {
  part->cancellation = &cancellation;
  part->token = cancellation.add([part](const Status& why) {
    if (part->finished == part->collectives) return;
    Status ended = why;
    ended.derived = true;  // the step has its own error
    part->member->break_up(part->communicator, ended);
  });
}

void CollectiveMember::run(const PartPointer& part, int64_t position, const CollectiveCall& call,
                           Tensor in, std::shared_ptr<const StreamMark> mark, Tensor out,
                           Done done) {
  CollectiveMember& member = *part->member;
  auto pending = std::make_shared<Pending>();
  pending->call = call;
  pending->in = std::move(in);
  pending->mark = std::move(mark);
  pending->out = std::move(out);
  pending->done = std::move(done);
  Status broken;
  {
    const std::lock_guard lock(member.mutex_);
    if (part->is_broken) {
      broken = {Code::aborted, concat("collectives of ", member.devices_, " were broken off"),
                true};
    } else {
      part->pending.emplace(position, pending);
    }
  }
  if (!broken.is_ok()) return end(*pending, broken);
  member.advance();
}

// Runs on a thread of its own until all members have met or the communicator is broken, which the
// end of the step sees to. It asks again and again because libraries do not call back.
void CollectiveMember::wait_for_members(const CommunicatorPointer& communicator) {
  using namespace std::chrono_literals;
  Status failure;
  for (auto pause = 50us; failure.is_ok(); pause = std::min(2 * pause, 5000us)) {
    {
      const std::lock_guard lock(mutex_);
      if (communicator_ != communicator) return;
      try {
        is_ready_ = communicator->is_ready();
      } catch (...) {
        failure = status_of_current_exception();
      }
      if (is_ready_) break;
    }
    std::this_thread::sleep_for(pause);
  }
  if (!failure.is_ok()) return break_up(communicator, failure);
  advance();
}

void CollectiveMember::advance() {
  Status failure;
  CommunicatorPointer communicator;
  {
    const std::lock_guard lock(mutex_);
    communicator = communicator_;
    try {
      while (is_ready_ && communicator_ != nullptr) {
        const auto found = parts_.find(turn_);
        if (found == parts_.end()) break;
        const PartPointer part = found->second;
        const auto next = part->pending.find(part->next);
        if (next == part->pending.end()) break;
        enqueue(part, next->second);
        if (++part->next == part->collectives) ++turn_;
      }
    } catch (...) {
      failure = status_of_current_exception();
    }
  }
  if (!failure.is_ok()) break_up(communicator, failure);
}

void CollectiveMember::enqueue(const PartPointer& part, const std::shared_ptr<Pending>& pending) {
  if (pending->mark == nullptr) {
    stream_->follow();
  } else {
    stream_->follow(*pending->mark, pending->out.raw());
  }
  communicator_->run(pending->call, pending->in.raw(), pending->out.raw(), stream_->stream());
  // It holds the tensors until the GPU has finished, even if the step ends before.
  stream_->when_finished([part, pending](const Status& status) { finish(part, *pending, status); });
}

void CollectiveMember::finish(const PartPointer& part, Pending& pending, const Status& status) {
  CollectiveMember& member = *part->member;
  {
    const std::lock_guard lock(member.mutex_);
    if (part->is_broken) return;  // break_up() has ended it
    if (++part->finished == part->collectives) member.parts_.erase(part->number);
  }
  // The step may use them again at once.
  pending.in = Tensor();
  pending.out = Tensor();
  if (part->finished == part->collectives) part->cancellation->remove(part->token);
  end(pending, status);
}

void CollectiveMember::break_up(const CommunicatorPointer& communicator, const Status& why) {
  communicator->abort();  // also ends a call that is held up
  std::map<int64_t, PartPointer> parts;
  {
    const std::lock_guard lock(mutex_);
    if (communicator_ != communicator) return;
    communicator_ = nullptr;
    why_broken_ = why;
    parts.swap(parts_);
    for (auto& [number, part] : parts) part->is_broken = true;
  }
  const Status status = {why.code,
                         concat("collectives of ", devices_, " were broken off: ", why.message),
                         why.derived};
  for (auto& [number, part] : parts) {
    for (auto& [position, pending] : part->pending) end(*pending, status);
  }
}

void CollectiveMember::end(Pending& pending, const Status& status) {
  if (!pending.has_ended.exchange(true)) pending.done(status);
}

}  // namespace leat
