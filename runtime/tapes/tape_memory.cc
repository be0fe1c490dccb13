// Places the values of a tape in memory.
#include <algorithm>

#include "runtime/tapes/memory_plan.h"
#include "runtime/tapes/tape_draft.h"

namespace leat {
namespace {

using Root = TapeDraft::Root;

// First and last use of every root.
void find_lifetimes(TapeDraft& draft) {
  for (int at = 0; at < std::ssize(draft.sequence); ++at) {
    const int n = draft.sequence[at];
    for (int i = 0; i < draft.num_inputs(n); ++i) {
      const SegmentValue& value = draft.input(n, i);
      if (!value.known.is_valid())
        draft.roots[value.root].last = std::max(draft.roots[value.root].last, at);
    }
    for (const SegmentValue& value : draft.values.of_node(n)) {
      if (value.known.is_valid()) continue;
      Root& root = draft.roots[value.root];
      if (root.first < 0) root.first = at;
      root.last = std::max(root.last, at);
    }
  }
  for (const SegmentPlan::Result& result : draft.segment.results) {
    const SegmentValue& value = draft.result(result);
    if (!value.known.is_valid() && draft.roots[value.root].address.kind == Address::Kind::none)
      draft.roots[value.root].is_result = true;
  }
}

// Another input of this node lies in the same memory and may not be overwritten by this output.
bool is_read_otherwise(const TapeDraft& draft, int n, const Alias& share, int root) {
  const std::vector<Alias>& shares = draft.kernels[n].may_share;
  for (int i = 0; i < draft.num_inputs(n); ++i) {
    if (i == share.input) continue;
    const SegmentValue& other = draft.input(n, i);
    if (other.known.is_valid() || draft.resolved(other.root) != root) continue;
    const bool is_allowed = std::any_of(shares.begin(), shares.end(), [&](const Alias& a) {
      return a.output == share.output && a.input == i;
    });
    if (!is_allowed) return true;
  }
  return false;
}

// An output takes over the memory of an input that nobody needs any more. Not one that leaves the
// segment: its buffer changes from run to run, so the fewer instructions know it the better.
void share_memory(TapeDraft& draft, int at) {
  const int n = draft.sequence[at];
  if (draft.is_copied[n]) return;
  std::vector<int> taken;  // even by an output that nobody reads
  for (const Alias& share : draft.kernels[n].may_share) {
    const SegmentValue& input = draft.input(n, share.input);
    const SegmentValue& output = draft.values.of_node(n)[share.output];
    if (input.known.is_valid() || output.known.is_valid() || output.dtype == DType::string)
      continue;
    const int from = draft.resolved(input.root);
    if (contains(taken, from)) continue;
    Root &memory = draft.roots[from], &taker = draft.roots[output.root];
    const bool is_ours = memory.address.kind == Address::Kind::none && memory.first >= 0 &&
                         memory.last == at && memory.first < at;
    const bool leaves = memory.is_result || taker.is_result;
    const bool is_new = taker.merged_into < 0 && taker.first == at;
    const bool fits = memory.bytes == taker.bytes && memory.on_host == taker.on_host &&
                      memory.dtype != DType::string;
    if (!is_ours || leaves || !is_new || !fits || is_read_otherwise(draft, n, share, from))
      continue;
    taken.push_back(from);
    taker.merged_into = from;
    memory.last = taker.last;
  }
}

// Which results may have the memory of an input: both as share_memory() wants it. An input that is
// a result itself stays as it is.
void find_heirs(const TapeDraft& draft, Tape& tape) {
  tape.heirs.assign(tape.results_memory.size(), -1);
  if (!draft.is_on_host()) return;
  std::vector<bool> is_given(draft.values.inputs.size());
  for (const SegmentPlan::Result& result : draft.segment.results) {
    const Address& address = draft.roots[draft.result(result).root].address;
    const bool is_input =
        !draft.result(result).known.is_valid() && address.kind == Address::Kind::input;
    if (is_input) is_given[address.index] = true;
  }
  for (int at = 0; at < std::ssize(draft.sequence); ++at) {
    const int n = draft.sequence[at];
    if (draft.is_copied[n]) continue;
    for (const Alias& share : draft.kernels[n].may_share) {
      const SegmentValue& input = draft.input(n, share.input);
      const SegmentValue& output = draft.values.of_node(n)[share.output];
      if (input.known.is_valid() || output.known.is_valid() || output.dtype == DType::string)
        continue;
      const Root &from = draft.roots[input.root], &to = draft.roots[output.root];
      if (from.address.kind != Address::Kind::input || to.address.kind != Address::Kind::result)
        continue;
      const bool fits = input.dtype == output.dtype && input.offset == 0 && output.offset == 0 &&
                        to.bytes == output.bytes() && input.bytes() == output.bytes();
      if (!fits || from.last != at || to.first != at || is_given[from.address.index] ||
          tape.heirs[to.address.index] >= 0 || is_read_otherwise(draft, n, share, input.root))
        continue;
      tape.heirs[to.address.index] = from.address.index;
      is_given[from.address.index] = true;
    }
  }
}

}  // namespace

std::vector<Address> place_memory(TapeDraft& draft, Tape& tape, TapeHints& hints) {
  find_lifetimes(draft);
  for (int at = 0; at < std::ssize(draft.sequence); ++at) share_memory(draft, at);

  std::vector<MemoryBlock> blocks;
  std::vector<Address*> in_arena;  // by block
  for (Root& root : draft.roots) {
    if (root.merged_into >= 0 || root.first < 0 || root.address.kind != Address::Kind::none)
      continue;
    if (root.is_result) {
      root.address = {Address::Kind::result, static_cast<int>(tape.results_memory.size())};
      tape.results_memory.push_back({root.dtype, root.shape, root.on_host});
    } else if (root.dtype == DType::string || root.on_host != draft.is_on_host()) {
      root.address = {Address::Kind::owned, static_cast<int>(tape.owned.size())};
      tape.owned.push_back({root.dtype, root.shape, root.on_host});
    } else if (root.bytes > 0) {
      root.address.kind = Address::Kind::arena;
      blocks.push_back({root.bytes, root.first, root.last});
      in_arena.push_back(&root.address);
    }
  }
  std::vector<Address> workspaces(draft.sequence.size());
  for (int at = 0; at < std::ssize(draft.sequence); ++at) {
    const size_t bytes = draft.kernels[draft.sequence[at]].workspace_bytes;
    if (bytes == 0) continue;
    workspaces[at].kind = Address::Kind::arena;
    workspaces[at].bytes = bytes;
    blocks.push_back({bytes, at, at});
    in_arena.push_back(&workspaces[at]);
  }
  MemoryPlan memory = plan_memory(blocks, draft.is_on_host() ? 64 : 256, &hints.memory);
  for (size_t block = 0; block < blocks.size(); ++block)
    in_arena[block]->offset = memory.offsets[block];
  tape.arena_bytes = memory.bytes;
  tape.max_live_bytes = memory.max_live;
  find_heirs(draft, tape);
  return workspaces;
}

}  // namespace leat
