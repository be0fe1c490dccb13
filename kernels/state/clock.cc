// Clock and its operations, Leat's own: workers at their own pace, none of which gets more than a
// given number of steps ahead of the slowest. Stale synchronous parallel (Ho et al., "More
// Effective Distributed ML via a Stale Synchronous Parallel Parameter Server", NIPS 2013).
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/state/waiting_state.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/extents.h"
#include "kernels/named_resource.h"

namespace leat {
namespace {

// A counter per member. Thread-safe.
class MemberClocks : public WaitingState {
 public:
  explicit MemberClocks(const NodeView& node)
      : WaitingState(resource_name(node)), members_(members_of(node)) {}

  void check_fits(const NodeView& node) const override {
    check(members_of(node) == size(), "clock '", name(), "' has ", size(), " members; node '",
          node.name, "' expects ", members_of(node));
  }

  // "clock 'c': member 0, at 7, waits for member 2, at 4 (staleness 2)"
  std::string state() const override {
    const std::lock_guard lock(mutex_);
    std::string out;
    size_t shown = 0, more = 0;
    for (const auto& wait : waits_) {
      const std::string text = text_of(*wait);
      if (text.empty()) continue;
      if (shown == most_shown) {
        ++more;
      } else {
        out += concat(shown++ > 0 ? "; " : "", text);
      }
    }
    if (more > 0) out += concat("; ", more, " more wait");
    return concat("clock '", name(), "': ", out.empty() ? "nobody waits" : out);
  }

  // Each returns the member's clock.
  int64_t tick(int64_t rank) {
    int64_t out = 0;
    change_member(rank, [&](Member& member) {
      member.is_present = true;
      out = ++member.clock;
    });
    return out;
  }
  // Whoever starts again neither holds up the others nor is held up by what it had counted.
  int64_t join(int64_t rank) {
    int64_t out = 0;
    change_member(rank, [&](Member& member) {
      member.is_present = false;
      member.clock = slowest().value_or(member.clock);
      member.is_present = true;
      out = member.clock;
    });
    return out;
  }
  void leave(int64_t rank) {
    change_member(rank, [](Member& member) { member.is_present = false; });
  }

  using Waited = std::function<void(const Status&, int64_t slowest)>;

  // Waits until the member is at most `staleness` ahead of the slowest that is present, and gives
  // the clock of that one: of the member itself if nobody is present.
  void wait(int64_t rank, int64_t staleness, Cancellation& cancellation, Waited waited) {
    check_rank(rank);
    check(staleness >= 0, "the staleness of member ", rank, " of clock '", name(),
          "' must not be negative, got ", staleness);
    const auto wait = std::make_shared<Wait>(Wait{rank, staleness});
    when_possible(
        [this, wait] {
          const int64_t clock = members_[wait->rank].clock;
          wait->slowest = slowest().value_or(clock);
          if (clock - wait->slowest > wait->staleness) {
            if (std::find(waits_.begin(), waits_.end(), wait) == waits_.end())
              waits_.push_back(wait);
            return false;
          }
          std::erase(waits_, wait);
          return true;
        },
        cancellation,
        [this, wait, waited = std::move(waited)](const Status& status) {
          if (!status.is_ok()) {
            const std::lock_guard lock(mutex_);
            std::erase(waits_, wait);
          }
          waited(status, wait->slowest);
        });
  }

  // -1: the member has left.
  Tensor read() const {
    Tensor out(DType::i64, {size()});
    const std::lock_guard lock(mutex_);
    std::transform(members_.begin(), members_.end(), out.data<int64_t>(),
                   [](const Member& m) { return m.is_present ? m.clock : -1; });
    return out;
  }

 private:
  static constexpr size_t most_shown = 8;  // waits, and members that one waits for

  struct Member {
    int64_t clock = 0;
    bool is_present = true;
  };
  struct Wait {
    int64_t rank = 0, staleness = 0;
    int64_t slowest = 0;
  };

  static int64_t members_of(const NodeView& node) {
    const auto members = node.attr<int64_t>("members");
    check_memory_for(members, sizeof(Member));
    return members;
  }

  int64_t size() const { return std::ssize(members_); }

  void check_rank(int64_t rank) const {
    check(rank >= 0 && rank < size(), "clock '", name(), "' has no member ", rank,
          ": its members are 0 to ", size() - 1);
  }

  template <class Change>
  void change_member(int64_t rank, Change&& change_it) {
    check_rank(rank);
    change([&] { change_it(members_[rank]); });
  }

  // ---- With the lock held

  std::optional<int64_t> slowest() const {
    std::optional<int64_t> out;
    for (const Member& member : members_) {
      if (member.is_present) out = std::min(out.value_or(member.clock), member.clock);
    }
    return out;
  }

  // "member 0, at 7, waits for member 2, at 4 (staleness 2)", the slowest first. Empty if a change
  // lets it go on.
  std::string text_of(const Wait& wait) const {
    const int64_t clock = members_[wait.rank].clock;
    std::vector<std::pair<int64_t, int64_t>> awaited;  // clock, rank
    for (int64_t rank = 0; rank < size(); ++rank) {
      const Member& member = members_[rank];
      if (member.is_present && clock - member.clock > wait.staleness)
        awaited.emplace_back(member.clock, rank);
    }
    if (awaited.empty()) return "";
    const size_t shown = std::min(awaited.size(), most_shown);
    std::partial_sort(awaited.begin(), awaited.begin() + static_cast<std::ptrdiff_t>(shown),
                      awaited.end());
    std::string out = concat("member ", wait.rank, ", at ", clock, ", waits for ");
    for (size_t i = 0; i < shown; ++i) {
      out += concat(i > 0 ? " and " : "", "member ", awaited[i].second, ", at ", awaited[i].first);
    }
    if (awaited.size() > shown) out += concat(" and ", awaited.size() - shown, " more");
    return out + concat(" (staleness ", wait.staleness, ")");
  }

  std::vector<Member> members_;               // their number never changes
  std::vector<std::shared_ptr<Wait>> waits_;  // those that had to wait, the longest first
};

// ---- Kernels

MemberClocks& clock_of(const ExecuteContext& c) {
  auto* out = dynamic_cast<MemberClocks*>(c.resource(0).get());
  check(out != nullptr, "'", c.resource(0)->name(), "' is not a clock");
  return *out;
}

template <class T>
T scalar_of(const ExecuteContext& c, int i, const char* what) {
  check(c.input(i).shape().rank() == 0, what, " must be a scalar, got shape ", c.input(i).shape());
  return c.input(i).item<T>();
}

int64_t rank_of(const ExecuteContext& c) { return scalar_of<int32_t>(c, 1, "rank"); }

template <int64_t (MemberClocks::*change)(int64_t)>
void change_clock(ExecuteContext& c) {
  c.set_output(0, Tensor::scalar((clock_of(c).*change)(rank_of(c))));
}

void leave(ExecuteContext& c) { clock_of(c).leave(rank_of(c)); }

void read(ExecuteContext& c) { c.set_output(0, clock_of(c).read()); }

void wait(ExecuteContext& c, std::function<void(Status)> done) {
  clock_of(c).wait(rank_of(c), scalar_of<int64_t>(c, 2, "staleness"), c.cancellation(),
                   [&c, done = std::move(done)](const Status& status, int64_t slowest) {
                     if (status.is_ok()) c.set_output(0, Tensor::scalar(slowest));
                     done(status);
                   });
}

// ---- Ops

void all_scalars(ShapeContext& c) {
  for (int i = 1; i < c.num_inputs(); ++i) c.with_rank(i, 0);
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, {});
}

OpDef operation(OpDef op, Kernel kernel) {
  op.inputs.insert(op.inputs.begin(), "handle: resource");
  if (!op.shape) op.shape = all_scalars;
  op.kernels = {std::move(kernel)};
  op.is_stateful = true;
  op.is_not_differentiable = true;
  return op;
}

const Op clock_op{{
    .name = "Clock",
    .doc = "handle = the clock called shared_name in `container`, or the session's own: a counter "
           "for each of `members` workers, all present and at 0. Leat's own op.",
    .outputs = {"handle: resource"},
    .attrs = {"members: int >= 1", "container: string = ''", "shared_name: string = ''"},
    .shape = shapes::scalar(),
    .kernels = {cpu_kernel([](const KernelRequest&) { return BoundKernel{}; })},
    .is_stateful = true,
    .make_resource = [](const NodeView& node) { return std::make_shared<MemberClocks>(node); },
    .is_private_resource = true,
    .is_not_differentiable = true,
}};

const Op tick_op(operation({.name = "ClockTick",
                            .doc = "clock = the count of member `rank`, which goes up by 1; if it "
                                   "had left, it is present again. Leat's own op.",
                            .inputs = {"rank: int32"},
                            .outputs = {"clock: int64"}},
                           {.execute = change_clock<&MemberClocks::tick>}));
const Op wait_op(
    operation({.name = "ClockWait",
               .doc = "slowest = the lowest count of those present; waits until that of member "
                      "`rank` is at most `staleness` above it. Leat's own op.",
               .inputs = {"rank: int32", "staleness: int64"},
               .outputs = {"slowest: int64"}},
              {.execute_async = wait}));
const Op join_op(operation({.name = "ClockJoin",
                            .doc = "clock = the count of member `rank`, which is present from now "
                                   "on: the lowest count of the others present, or its own if "
                                   "there are none. Leat's own op.",
                            .inputs = {"rank: int32"},
                            .outputs = {"clock: int64"}},
                           {.execute = change_clock<&MemberClocks::join>}));
const Op leave_op(operation({.name = "ClockLeave",
                             .doc = "Nobody waits for member `rank` any more, until it ticks or "
                                    "joins. Leat's own op.",
                             .inputs = {"rank: int32"}},
                            {.execute = leave}));
const Op read_op(
    operation({.name = "ClockRead",
               .doc = "clocks = the count of each member, -1 for one that has left. Leat's own op.",
               .outputs = {"clocks: int64"},
               .shape = [](ShapeContext& c) { c.set_output(0, {any}); }},
              {.execute = read}));

}  // namespace
}  // namespace leat
