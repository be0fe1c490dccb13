// _CollectiveMeet: where the members of a TensorFlow collective meet that belong to several
// programs (expand_collectives, in graph/passes/, makes it, on the task of the leader). Every
// member sends its value there and gets the result: 2 trips, and the values of all on the leader.
#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <vector>

#include "core/state/waiting_state.h"
#include "core/visit_dtype.h"
#include "graph/shape_inference.h"
#include "kernels/named_resource.h"
#include "kernels/types.h"

namespace leat {
namespace {

using Numbers = Types<float, double, half, bfloat16, int32_t, int64_t>;

// What one member brings to a round.
struct Entry {
  explicit Entry(const NodeView& node)
      : member(node.attr<std::string>("member")),
        op(node.attr<std::string>("op")),
        merge_op(node.attr<std::string>("merge_op")),
        final_op(node.attr<std::string>("final_op")),
        size(node.attr<int64_t>("group_size")),
        dtype(node.attr<DType>("T")),
        shape(node.attr<Shape>("shape")) {}

  const std::string member, op, merge_op, final_op;
  const int64_t size;  // of the group
  const DType dtype;
  const Shape shape;  // of the result, as far as the member knows it
  Tensor value;       // invalid: it receives a broadcast
  Tensor result;
  Status failure;
};
using EntryPointer = std::shared_ptr<Entry>;
using Round = std::vector<EntryPointer>;  // in the order of the members' names

template <class T>
void merge(const std::string& how, const T* from, T* into, int64_t n) {
  using C = ComputeType<T>;
  for (int64_t i = 0; i < n; ++i) {
    const C a = static_cast<C>(into[i]), b = static_cast<C>(from[i]);
    C out = a + b;
    if (how == "Mul") out = a * b;
    if (how == "Min") out = std::min(a, b);
    if (how == "Max") out = std::max(a, b);
    into[i] = static_cast<T>(out);
  }
}

Tensor reduced(const Round& round) {
  const Entry& first = *round[0];
  Tensor out(first.dtype, first.value.shape());
  std::memcpy(out.raw(), first.value.raw(), out.bytes());
  visit_type(Numbers{}, first.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* const to = out.data<T>();
    for (size_t k = 1; k < round.size(); ++k)
      merge(first.merge_op, round[k]->value.template span<T>().data(), to, out.elements());
    const auto count = static_cast<ComputeType<T>>(static_cast<int32_t>(round.size()));
    for (int64_t i = 0; first.final_op == "Div" && i < out.elements(); ++i)
      to[i] = static_cast<T>(static_cast<ComputeType<T>>(to[i]) / count);
    return 0;
  });
  return out;
}

Tensor gathered(const Round& round) {
  Shape shape = round[0]->value.shape();
  int64_t rows = 0;
  for (const EntryPointer& each : round) rows += each->value.shape()[0];
  shape.set(0, rows);
  Tensor out(round[0]->dtype, shape);
  auto* to = static_cast<char*>(out.raw());
  for (const EntryPointer& each : round) {
    std::memcpy(to, each->value.raw(), each->value.bytes());
    to += each->value.bytes();
  }
  return out;
}

// The extents that members of a gather share: all but the first.
Shape without_rows(Shape shape) {
  if (shape.rank() > 0) shape.set(0, 0);
  return shape;
}

// One collective, step after step. A member that is ahead of the others waits with its value for
// their next round.
class CollectiveMeeting : public WaitingState {
 public:
  using WaitingState::WaitingState;

  std::string state() const override {
    const std::lock_guard lock(mutex_);
    std::set<std::string> members;
    for (const EntryPointer& each : entries_) members.insert(each->member);
    std::string list;
    for (const std::string& each : members) list += concat(list.empty() ? "" : ", ", each);
    if (list.empty()) return concat(name(), " waits for nobody");
    return concat(name(), " has ", members.size(), " of ", entries_[0]->size, " members (", list,
                  ") and waits for the others");
  }

  using Met = std::function<void(const Status&)>;
  void bring(const EntryPointer& entry, Cancellation& cancellation, Met met) {
    when_possible(
        [this, entry, is_here = false]() mutable {
          if (!std::exchange(is_here, true)) entries_.push_back(entry);
          meet(entry->size);
          if (!entry->failure.is_ok()) throw Error(entry->failure);
          return entry->result.is_valid();
        },
        cancellation,
        [this, entry, met = std::move(met)](const Status& status) {
          if (!status.is_ok()) {
            const std::lock_guard lock(mutex_);
            std::erase(entries_, entry);
          }
          met(status);
        });
  }

 private:
  // With the lock held: if all members are here, a round of the first entry of each.
  void meet(int64_t size) {
    std::map<std::string, EntryPointer> first;
    for (const EntryPointer& each : entries_) first.emplace(each->member, each);
    if (std::ssize(first) < size) return;
    Round round;
    for (const auto& [member, entry] : first) {
      round.push_back(entry);
      std::erase(entries_, entry);
    }
    Tensor result;
    Status failure;
    try {
      result = result_of(round);
    } catch (...) {
      failure = status_of_current_exception();
    }
    for (const EntryPointer& each : round) {
      each->result = result;
      each->failure = failure;
    }
  }

  Tensor result_of(const Round& round) const {
    for (const EntryPointer& each : round) check_fits(*each, *round[0]);
    if (round[0]->op == "reduce") return reduced(round);
    if (round[0]->op == "gather") return gathered(round);
    const auto is_sender = [](const EntryPointer& each) { return each->value.is_valid(); };
    const auto senders = std::count_if(round.begin(), round.end(), is_sender);
    check(senders == 1, name(), " has ", senders, " senders; it needs one");
    const Tensor sent = (*std::find_if(round.begin(), round.end(), is_sender))->value;
    for (const EntryPointer& each : round) {
      check(each->shape.is_compatible(sent.shape()), name(), ": ", each->member, " expects ",
            each->shape, ", but ", sent.shape(), " is sent");
    }
    return sent;
  }

  void check_fits(const Entry& own, const Entry& first) const {
    const auto equal = [&](const char* what, const auto& a, const auto& b) {
      check(a == b, name(), ": ", own.member, " has ", what, " ", a, ", but ", first.member,
            " has ", b);
    };
    equal("the op", own.op, first.op);
    equal("group_size", own.size, first.size);
    equal("dtype", own.dtype, first.dtype);
    equal("merge_op", own.merge_op, first.merge_op);
    equal("final_op", own.final_op, first.final_op);
    if (own.op == "broadcast") return;
    const bool is_gather = own.op == "gather";
    const Shape &shape = own.value.shape(), &other = first.value.shape();
    check(!is_gather || shape.rank() > 0, name(), ": ", own.member, " brings a scalar to a gather");
    if (is_gather ? without_rows(shape) != without_rows(other) : shape != other)
      equal("shape", shape, other);
  }
  using WaitingState::check_fits;

  std::vector<EntryPointer> entries_;  // that have met nobody yet, in order of arrival
};

void meet(ExecuteContext& c, std::function<void(Status)> done) {
  const auto entry = std::make_shared<Entry>(c.node());
  if (c.num_inputs() > 0) entry->value = c.input(0);
  own_resource<CollectiveMeeting>(c).bring(
      entry, c.cancellation(), [&c, entry, done = std::move(done)](const Status& status) {
        if (status.is_ok()) c.set_output(0, entry->result);
        done(status);
      });
}

const Op collective_meet_op{{
    .name = "_CollectiveMeet",
    .doc = "result = the collective's, once all group_size members have brought their values, in "
           "the order of the members' names.",
    .inputs = {"value: N * T"},
    .outputs = {"result: T"},
    .attrs = {"T: type", "N: int >= 0", "op: {'reduce', 'gather', 'broadcast'}",
              "merge_op: string = ''", "final_op: string = ''", "group_size: int >= 1",
              "member: string", "shape: shape", "container: string = ''", "shared_name: string"},
    .shape = shapes::from_attr("shape"),
    .kernels = {{.execute_async = meet}},
    .is_stateful = true,
    .make_resource = make_named<CollectiveMeeting>,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
