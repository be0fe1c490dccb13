// A GPU's place in a group, over the steps of a session: who is in it, whose turn it is, and what
// happens when a step ends before its collectives have.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "core/execution/side_stream.h"
#include "core/state/resource.h"
#include "core/tensor.h"
#include "kernels/control/communicator.h"

namespace leat {

// Thread-safe. Collectives of one communicator must be enqueued in one order everywhere. So the
// steps have numbers, which rank 0 gives out, and the collectives of a step have positions; what
// comes early waits for its turn, and holds no thread. They run beside the GPU's compute stream:
// what follows them there may be what another member waits for before it takes part.
//
// A step that ends before its collectives have breaks the communicator: members may have enqueued
// different parts of it. Rank 0 then begins a new one with the next step; the others learn that
// from its ticket.
class CollectiveMember : public Resource, public std::enable_shared_from_this<CollectiveMember> {
 public:
  using Done = std::function<void(const Status&)>;

  explicit CollectiveMember(const NodeView& join);
  ~CollectiveMember() override;

  // A step's part in the group.
  struct Part;
  using PartPointer = std::shared_ptr<Part>;

  // Of rank 0: the next step, with so many collectives, and the ticket for the other members.
  std::pair<PartPointer, std::string> begin(CommunicatorLibrary& library, Device& device,
                                            int64_t collectives, Cancellation& cancellation);
  // Of the others. INVALID_ARGUMENT if the ticket is none; ABORTED if the group of the ticket is
  // broken.
  PartPointer begin(CommunicatorLibrary& library, Device& device, const std::string& ticket,
                    int64_t collectives, Cancellation& cancellation);

  // Collective number `position` of the step, once its turn has come. `done` is called when the GPU
  // has finished, or when the step ends; ABORTED or the step's own error if it ends first.
  // `mark`: where the GPU has computed `in`; null: at the end of what is enqueued. `out` is of
  // MemoryUse::copy.
  static void run(const PartPointer& part, int64_t position, const CollectiveCall& call, Tensor in,
                  std::shared_ptr<const StreamMark> mark, Tensor out, Done done);

  void check_fits(const NodeView&) const override {}
  std::string state() const override;

 private:
  struct Pending;
  using CommunicatorPointer = std::shared_ptr<Communicator>;

  // With the lock held.
  void meet(CommunicatorLibrary& library, Device& device, const std::string& id);
  PartPointer add_part(int64_t number, int64_t collectives);
  // Without it.
  static void watch(const PartPointer& part, Cancellation& cancellation);
  void wait_for_members(const CommunicatorPointer& communicator);
  void advance();
  void enqueue(const PartPointer& part, const std::shared_ptr<Pending>& pending);
  static void finish(const PartPointer& part, Pending& pending, const Status& status);
  // Ends all that is not finished of this communicator.
  void break_up(const CommunicatorPointer& communicator, const Status& why);
  static void end(Pending& pending, const Status& status);

  const int rank_, members_;
  const std::string devices_;  // of all members, in order of rank
  mutable std::mutex mutex_;
  CommunicatorPointer communicator_;    // null: none yet, or broken
  std::shared_ptr<SideStream> stream_;  // of the communicator
  std::string id_;                      // of the communicator, also if it is broken
  Status why_broken_;
  bool is_ready_ = false;                 // all members have met
  int64_t next_ = 0;                      // rank 0: the number of the next step
  int64_t turn_ = 0;                      // the step whose collectives are enqueued now
  std::map<int64_t, PartPointer> parts_;  // not finished, by number
};

}  // namespace leat
