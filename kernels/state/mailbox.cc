// Mailboxes and their operations, Leat's own: programs that train together post tensors to each
// other's tasks, by slot and step, and take what the others have posted.
#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "core/state/waiting_state.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/named_resource.h"

namespace leat {
namespace {

// What was posted and not yet taken: by slot and by the rank of the sender, in order. Thread-safe.
class Mailbox : public WaitingState {
 public:
  explicit Mailbox(const NodeView& node)
      : WaitingState(resource_name(node)), members_(node.attr<int64_t>("members")) {}

  void check_fits(const NodeView& node) const override {
    const auto members = node.attr<int64_t>("members");
    check(members == members_, "mailbox '", name(), "' is for ", members_, " members; node '",
          node.name, "' expects ", members);
  }

  // "mailbox 'm': step 17 waits for 'gradients_0' of member 1 and member 2"
  std::string state() const override {
    const std::lock_guard lock(mutex_);
    std::string out;
    if (!present_.empty()) out = concat("all begin together; not here yet: ", list_of(absent()));
    for (const auto& wait : waits_) {
      if (const std::string text = text_of(*wait); !text.empty())
        out += concat(out.empty() ? "" : "; ", text);
    }
    return concat("mailbox '", name(), "': ", out.empty() ? "nobody waits" : out);
  }

  void post(const std::string& slot, int64_t rank, int64_t step, Tensor value) {
    check_rank(rank);
    change([&] {
      std::deque<Letter>& letters = letters_[{slot, rank}];
      check(letters.size() < most_letters, "member ", rank, " has posted ", letters.size(),
            " values of '", slot, "' to mailbox '", name(),
            "' that nobody has taken, the first at step ", letters.front().step,
            ": every step that posts needs one that takes");
      letters.push_back({step, std::move(value)});
    });
  }

  // Nobody waits any more for what the member has not posted.
  void leave(int64_t rank, bool has_failed) {
    check_rank(rank);
    change([&] { left_.insert_or_assign(rank, has_failed); });
  }

  // Whoever starts again takes back what it had posted before.
  void join(int64_t rank) {
    check_rank(rank);
    change([&] {
      left_.erase(rank);
      started_.insert(rank);
      std::erase_if(letters_, [&](const auto& each) { return each.first.second == rank; });
    });
  }

  // Waits until all members wait here at the same time. OUT_OF_RANGE if one of those that have not
  // come has left, FAILED_PRECONDITION after an error.
  void meet(int64_t rank, Cancellation& cancellation, std::function<void(const Status&)> met) {
    check_rank(rank);
    const auto guest = std::make_shared<Guest>();
    when_possible(
        [this, rank, guest, is_here = false]() mutable {
          // The same member twice: of the first one nobody has said yet that it is gone.
          if (!std::exchange(is_here, true)) present_.insert_or_assign(rank, guest);
          if (guest->has_met) return true;
          const std::vector<int64_t> missing = absent();
          for (const int64_t other : missing) check_may_come(other);
          if (!missing.empty()) return false;
          for (auto& [of_rank, each] : present_) each->has_met = true;
          present_.clear();
          return true;
        },
        cancellation,
        [this, rank, guest, met = std::move(met)](const Status& status) {
          if (!status.is_ok()) {
            const std::lock_guard lock(mutex_);
            const auto found = present_.find(rank);
            if (found != present_.end() && found->second == guest) present_.erase(found);
          }
          met(status);
        });
  }

  using Taken = std::function<void(const Status&, std::vector<Tensor>)>;

  // Waits until all of `ranks` have posted, and takes the first letter of each. ABORTED if one is
  // of another step, or if one that is awaited has started again, which a take at a negative step
  // makes known; OUT_OF_RANGE if it has left, FAILED_PRECONDITION after an error.
  void take(const std::string& slot, std::vector<int64_t> ranks, int64_t step,
            Cancellation& cancellation, Taken taken) {
    for (const int64_t rank : ranks) check_rank(rank);
    const auto wait = std::make_shared<Wait>(Wait{slot, std::move(ranks), step, {}});
    when_possible(
        [this, wait] {
          check_possible(wait);
          if (!awaited(*wait).empty()) {
            if (std::find(waits_.begin(), waits_.end(), wait) == waits_.end())
              waits_.push_back(wait);
            return false;
          }
          for (const int64_t rank : wait->ranks) {
            const auto found = letters_.find({wait->slot, rank});
            wait->values.push_back(std::move(found->second.front().value));
            found->second.pop_front();
            if (found->second.empty()) letters_.erase(found);
            if (wait->step < 0) started_.erase(rank);
          }
          std::erase(waits_, wait);
          return true;
        },
        cancellation,
        [this, wait, taken = std::move(taken)](const Status& status) {
          if (!status.is_ok()) {
            const std::lock_guard lock(mutex_);
            std::erase(waits_, wait);
          }
          taken(status, std::move(wait->values));
        });
  }

 private:
  // Members that keep step are at most one step apart.
  static constexpr size_t most_letters = 8;

  struct Letter {
    int64_t step = 0;
    Tensor value;
  };
  struct Wait {
    std::string slot;
    std::vector<int64_t> ranks;
    int64_t step = 0;
    std::vector<Tensor> values;
  };

  struct Guest {
    bool has_met = false;
  };

  void check_rank(int64_t rank) const {
    check(rank >= 0 && rank < members_, "mailbox '", name(), "' has no member ", rank,
          ": its members are 0 to ", members_ - 1);
  }

  // ---- With the lock held

  // Null if there are none.
  const std::deque<Letter>* letters_of(const std::string& slot, int64_t rank) const {
    const auto found = letters_.find({slot, rank});
    return found == letters_.end() || found->second.empty() ? nullptr : &found->second;
  }
  std::vector<int64_t> awaited(const Wait& wait) const {
    std::vector<int64_t> out;
    for (const int64_t rank : wait.ranks) {
      if (letters_of(wait.slot, rank) == nullptr) out.push_back(rank);
    }
    return out;
  }
  void check_possible(const std::shared_ptr<Wait>& wait) {
    for (const int64_t rank : wait->ranks) {
      const std::deque<Letter>* const letters = letters_of(wait->slot, rank);
      const bool has_started = wait->step >= 0 && started_.contains(rank);
      if (letters == nullptr ? !left_.contains(rank) && !has_started
                             : letters->front().step == wait->step)
        continue;
      std::erase(waits_, wait);
      if (letters == nullptr && has_started) {
        fail(Code::aborted, "mailbox '", name(), "': member ", rank, " has started again before ",
             "its part of step ", wait->step, ": all must begin again");
      }
      if (letters == nullptr && left_.at(rank)) {
        fail(Code::failed_precondition, "mailbox '", name(), "': the program of member ", rank,
             " has failed before step ", std::max<int64_t>(wait->step, 0), ": see its own error");
      }
      if (letters == nullptr) {
        fail(Code::out_of_range, "mailbox '", name(), "': member ", rank, " has left before step ",
             wait->step, ": its data has ended, or it has stopped");
      }
      fail(Code::aborted, "mailbox '", name(), "': member ", rank, " has posted '", wait->slot,
           "' of step ", letters->front().step, ", but this program is at step ", wait->step,
           ": all must start again from the same step");
    }
  }
  std::vector<int64_t> absent() const {
    std::vector<int64_t> out;
    for (int64_t rank = 0; rank < members_; ++rank) {
      if (!present_.contains(rank)) out.push_back(rank);
    }
    return out;
  }
  void check_may_come(int64_t rank) const {
    const auto left = left_.find(rank);
    if (left == left_.end()) return;
    if (left->second) {
      fail(Code::failed_precondition, "mailbox '", name(), "': the program of member ", rank,
           " has failed before all had come: see its own error");
    }
    fail(Code::out_of_range, "mailbox '", name(), "': member ", rank,
         " has left before all had come: its data has ended, or it has stopped");
  }
  static std::string list_of(const std::vector<int64_t>& ranks) {
    std::string out;
    for (const int64_t rank : ranks) out += concat(out.empty() ? "" : " and ", "member ", rank);
    return out;
  }
  // Empty if a change lets it go on.
  std::string text_of(const Wait& wait) const {
    const std::string ranks = list_of(awaited(wait));
    if (ranks.empty()) return ranks;
    return concat("step ", wait.step, " waits for '", wait.slot, "' of ", ranks);
  }

  const int64_t members_;
  std::map<std::pair<std::string, int64_t>, std::deque<Letter>> letters_;
  std::map<int64_t, bool> left_;                       // who has left, and whether after an error
  std::set<int64_t> started_;                          // since the owner last met them
  std::vector<std::shared_ptr<Wait>> waits_;           // those that had to wait, the longest first
  std::map<int64_t, std::shared_ptr<Guest>> present_;  // waiting in meet(), by rank
};

// ---- Kernels

Mailbox& mailbox_of(const ExecuteContext& c) {
  auto* out = dynamic_cast<Mailbox*>(c.resource(0).get());
  check(out != nullptr, "'", c.resource(0)->name(), "' is not a mailbox");
  return *out;
}

void post(ExecuteContext& c) {
  mailbox_of(c).post(c.node().attr<std::string>("slot"), c.input(1).item<int32_t>(),
                     c.input(2).item<int64_t>(), c.input(3));
}

void join(ExecuteContext& c) { mailbox_of(c).join(c.input(1).item<int32_t>()); }

void leave(ExecuteContext& c) {
  mailbox_of(c).leave(c.input(1).item<int32_t>(), c.node().attr<bool>("has_failed"));
}

void meet(ExecuteContext& c, std::function<void(Status)> done) {
  mailbox_of(c).meet(c.input(1).item<int32_t>(), c.cancellation(), std::move(done));
}

void take(ExecuteContext& c, std::function<void(Status)> done) {
  const DType dtype = c.node().attr<DType>("T");
  mailbox_of(c).take(
      c.node().attr<std::string>("slot"), c.node().attr<std::vector<int64_t>>("ranks"),
      c.input(1).item<int64_t>(), c.cancellation(),
      [&c, dtype, done = std::move(done)](Status status, std::vector<Tensor> values) {
        for (size_t i = 0; status.is_ok() && i < values.size(); ++i) {
          if (values[i].dtype() != dtype) {
            status = {Code::invalid_argument,
                      concat("a member has posted ", values[i].dtype(), values[i].shape(),
                             " where ", dtype, " is taken")};
          } else {
            c.set_output(static_cast<int>(i), std::move(values[i]));
          }
        }
        done(status);
      });
}

// The first line in which two texts differ.
std::pair<std::string_view, std::string_view> first_difference(std::string_view a,
                                                               std::string_view b) {
  const auto line = [](std::string_view& text) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view out = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return out;
  };
  while (!a.empty() || !b.empty()) {
    const std::string_view x = line(a), y = line(b);
    if (x != y) return {x, y};
  }
  return {};
}

void check_plans(ExecuteContext& c) {
  const auto first = c.input(0).item<std::string>();
  for (int k = 1; k < c.num_inputs(); ++k) {
    const auto other = c.input(k).item<std::string>();
    if (other == first) continue;
    const auto [of_first, of_other] = first_difference(first, other);
    const auto shown = [](std::string_view line) {
      return line.empty() ? std::string("nothing more") : concat("'", line, "'");
    };
    fail(Code::invalid_argument, "the programs exchange different tensors: member 0 has ",
         shown(of_first), " where member ", k, " has ", shown(of_other),
         "; all must build the same model with the same options");
  }
}

// ---- Ops

const Op mailbox_op{{
    .name = "Mailbox",
    .doc = "handle = the mailbox called shared_name in `container`, or the session's own: what "
           "`members` programs post to each other, by slot, sender and step. Leat's own op.",
    .outputs = {"handle: resource"},
    .attrs = {"members: int >= 1", "container: string = ''", "shared_name: string = ''"},
    .shape = shapes::scalar(),
    .kernels = {cpu_kernel([](const KernelRequest&) { return BoundKernel{}; })},
    .is_stateful = true,
    .make_resource = [](const NodeView& node) { return std::make_shared<Mailbox>(node); },
    .is_private_resource = true,
    .is_not_differentiable = true,
}};

const Op post_op{{
    .name = "MailboxPost",
    .doc = "Leaves a value of member `rank` and of that step in a slot, until it is taken. "
           "Leat's own op.",
    .inputs = {"handle: resource", "rank: int32", "step: int64", "value: T"},
    .attrs = {"T: type", "slot: string"},
    .shape = shapes::none(),
    .kernels = {{.execute = post}},
    .is_stateful = true,
    .is_not_differentiable = true,
}};

const Op take_op{{
    .name = "MailboxTake",
    .doc = "values = what each of `ranks` has posted to the slot for that step, in that order, and "
           "removes it; waits until all have. Leat's own op.",
    .inputs = {"handle: resource", "step: int64"},
    .outputs = {"values: N * T"},
    .attrs = {"T: type", "N: int >= 1", "slot: string", "ranks: list(int) >= 1",
              "shape: shape = <unknown>"},
    .shape =
        [](ShapeContext& c) {
          for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, c.attr<Shape>("shape"));
        },
    .kernels = {{.execute_async = take}},
    .is_stateful = true,
    .is_not_differentiable = true,
}};

const Op join_op{{
    .name = "MailboxJoin",
    .doc = "Member `rank` starts, for the first time or again: what it had posted is removed. "
           "Leat's own op.",
    .inputs = {"handle: resource", "rank: int32"},
    .shape = shapes::none(),
    .kernels = {{.execute = join}},
    .is_stateful = true,
    .is_not_differentiable = true,
}};

const Op meet_op{{
    .name = "MailboxMeet",
    .doc = "Waits until all members wait at this mailbox at the same time. Who comes again after "
           "an error is not taken for the one who was there before. Leat's own op.",
    .inputs = {"handle: resource", "rank: int32"},
    .shape = shapes::none(),
    .kernels = {{.execute_async = meet}},
    .is_stateful = true,
    .is_not_differentiable = true,
}};

const Op leave_op{{
    .name = "MailboxLeave",
    .doc = "Member `rank` posts no more: a take that waits for it fails with OUT_OF_RANGE, or with "
           "FAILED_PRECONDITION if the member has failed. Leat's own op.",
    .inputs = {"handle: resource", "rank: int32"},
    .attrs = {"has_failed: bool = false"},
    .shape = shapes::none(),
    .kernels = {{.execute = leave}},
    .is_stateful = true,
    .is_not_differentiable = true,
}};

const Op check_op{{
    .name = "CheckEqualPlans",
    .doc = "Fails, with the first difference, unless all texts are equal: what each member of a "
           "group exchanges, a line for each tensor. Leat's own op.",
    .inputs = {"plans: N * string"},
    .attrs = {"N: int >= 1"},
    .shape = shapes::none(),
    .kernels = {{.execute = check_plans}},
    .is_stateful = true,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
