// The order of a tape's instructions, which keeps reads of variables before writes.
#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "runtime/tapes/tape_draft.h"

namespace leat {
namespace {

// The values of a tape that wait for nodes to read them.
class WaitingValues {
 public:
  explicit WaitingValues(const TapeDraft& draft)
      : draft_(draft), readers_(draft.roots.size()), sum_of_readers_(draft.roots.size()) {
    for (int n = 0; n < draft.count(); ++n) {
      if (!draft.is_live(n)) continue;
      for (const int root : roots_read_by(n)) {
        ++readers_[root];
        sum_of_readers_[root] += n;
      }
    }
    for (const SegmentPlan::Result& result : draft.segment.results) {
      const SegmentValue& value = draft.result(result);
      if (value.known.is_valid()) continue;
      ++readers_[value.root];
      sum_of_readers_[value.root] += whoever_gets_results;
    }
  }

  // The bytes of the values that node n makes, less those of the values that it is the last to
  // read.
  int64_t growth(int n) const {
    const std::vector<int> read = roots_read_by(n);
    int64_t bytes = 0;
    for (const int root : read) {
      if (readers_[root] == 1) bytes -= bytes_of(root);
    }
    for (const SegmentValue& value : draft_.values.of_node(n)) {
      const bool is_new =
          !value.known.is_valid() && !std::binary_search(read.begin(), read.end(), value.root);
      if (is_new) bytes += bytes_of(value.root);
    }
    return bytes;
  }

  // Node n has read its inputs: f(each node that is now the last to read one of them).
  template <class F>
  void run(int n, F f) {
    for (const int root : roots_read_by(n)) {
      sum_of_readers_[root] -= n;
      if (--readers_[root] == 1 && sum_of_readers_[root] != whoever_gets_results)
        f(static_cast<int>(sum_of_readers_[root]));
    }
  }

 private:
  static constexpr int64_t whoever_gets_results = -1;

  int64_t bytes_of(int root) const { return static_cast<int64_t>(draft_.roots[root].bytes); }

  std::vector<int> roots_read_by(int n) const {  // sorted
    std::vector<int> roots;
    for (int i = 0; i < draft_.num_inputs(n); ++i) {
      const SegmentValue& value = draft_.input(n, i);
      if (!value.known.is_valid()) roots.push_back(value.root);
    }
    std::sort(roots.begin(), roots.end());
    roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
    return roots;
  }

  const TapeDraft& draft_;
  std::vector<int> readers_;             // by root: how many nodes have not read it yet
  std::vector<int64_t> sum_of_readers_;  // by root: the sum of their numbers
};

class Order {
 public:
  Order(TapeDraft& draft, TapeHints& hints)
      : draft_(draft), hints_(hints), successors_(hints.successors) {
    if (successors_.first.empty()) find_successors();
  }

  // A view of a variable whose user can only run after a write becomes a copy, and then the views
  // of it are others.
  void find() {
    do {
      find_views();
    } while (!order_variables());
    std::vector<bool> is_live(draft_.count());
    for (int n = 0; n < draft_.count(); ++n) is_live[n] = draft_.is_live(n);
    if (is_live == hints_.is_live && keeps_order_of_variables(hints_.sequence)) {
      draft_.sequence = hints_.sequence;
      return;
    }
    sort();
    hints_.sequence = draft_.sequence;
    hints_.is_live = std::move(is_live);
  }

 private:
  void find_successors() {
    std::vector<int>& first = successors_.first;
    first.resize(draft_.count() + 2);
    for (const SegmentNode& node : draft_.segment.nodes) {
      for (const int before : node.after) ++first[before + 2];
    }
    std::partial_sum(first.begin(), first.end(), first.begin());
    successors_.nodes.resize(first.back());
    for (int n = 0; n < draft_.count(); ++n) {
      for (const int before : draft_.segment.nodes[n].after)
        successors_.nodes[first[before + 1]++] = n;
    }
  }

  void find_views() {
    draft_.roots.resize(draft_.values.inputs.size() + draft_.values.variables.size());
    for (int n = 0; n < draft_.count(); ++n) {
      if (!draft_.is_live(n)) continue;
      for (int o = 0; o < std::ssize(draft_.values.of_node(n)); ++o) find_root(n, o);
    }
  }

  void find_root(int n, int output) {
    SegmentValue& value = draft_.values.of_node(n)[output];
    value.root = -1;
    value.offset = 0;
    value.view_of_variable = -1;
    for (const View& view : draft_.kernels[n].views) {
      if (view.output == output && !draft_.is_copied[n]) make_view(n, value, view);
    }
    if (value.root >= 0 || value.known.is_valid()) return;
    if (draft_.node(n).outputs[output].is_handle()) {
      value.root = draft_.input(n, first_handle_input(n)).root;
    } else {
      value.root = draft_.new_root({.dtype = value.dtype,
                                    .shape = value.shape,
                                    .bytes = value.bytes(),
                                    .on_host = draft_.is_output_on_host(n, output)});
    }
  }

  void make_view(int n, SegmentValue& value, const View& view) const {
    const SegmentValue& input = draft_.input(n, view.input);
    if (input.known.is_valid()) {
      value.known = input.known.part(value.shape, view.offset);
      return;
    }
    value.root = input.root;
    value.offset = input.offset + view.offset;
    value.view_of_variable = input.view_of_variable;
    if (draft_.is_variable(input.root) && input.view_of_variable < 0) value.view_of_variable = n;
  }

  int first_handle_input(int n) const {
    int i = 0;
    while (!is_handle_input(draft_.node(n), i)) ++i;
    return i;
  }

  struct Access {
    int node;    // -1: whoever gets the segment's results
    int origin;  // the node at which the value was read
  };
  struct Accesses {
    std::map<int, std::vector<Access>> reads;  // by root
    std::map<int, std::vector<int>> writers;
  };

  Accesses accesses_of_variables() const {
    Accesses out;
    for (int n = 0; n < draft_.count(); ++n) {
      if (!draft_.is_live(n)) continue;
      for (int i = 0; i < draft_.num_inputs(n); ++i) {
        const SegmentValue& value = draft_.input(n, i);
        if (!draft_.is_variable(value.root) || value.known.is_valid()) continue;
        if (only_passes_handle(draft_.node(n))) break;
        if (is_written(draft_.node(n), i)) {
          out.writers[value.root].push_back(n);
        } else {
          const int origin = value.view_of_variable < 0 ? n : value.view_of_variable;
          out.reads[value.root].push_back({n, origin});
        }
      }
    }
    for (const SegmentPlan::Result& result : draft_.segment.results) {
      const SegmentValue& value = draft_.result(result);
      // A value that leaves is used after all that the tape does.
      if (draft_.is_variable(value.root) && !value.known.is_valid())
        out.reads[value.root].push_back({-1, value.view_of_variable});
    }
    return out;
  }

  // True if all is in order; false if a view had to become a copy, so that views must be found
  // again.
  bool order_variables() {
    Accesses accesses = accesses_of_variables();
    bool is_in_order = true;
    for (const auto& [root, writers] : accesses.writers) {
      const std::vector<Access>& reads = accesses.reads[root];
      for (const int writer : writers) {
        const auto is_own = [&](const Access& read) {
          return read.node == writer || read.origin == writer;
        };
        if (std::all_of(reads.begin(), reads.end(), is_own)) continue;
        reach_from(writer);
        for (const Access& read : reads) {
          if (is_own(read) || (read.origin >= 0 && is_reached(read.origin))) continue;
          if (read.node < 0 || is_reached(read.node)) {
            draft_.is_copied[read.origin] = true;
            is_in_order = false;
            add_edge(read.origin, writer);
          } else {
            add_edge(read.node, writer);
          }
        }
      }
    }
    return is_in_order;
  }

  // Those of other shapes are known to keep the order of all else.
  bool keeps_order_of_variables(const std::vector<int>& sequence) const {
    std::vector<int> position(draft_.count(), -1);
    for (size_t at = 0; at < sequence.size(); ++at) position[sequence[at]] = static_cast<int>(at);
    return std::ranges::all_of(more_successors_, [&](const auto& edges) {
      return std::ranges::all_of(edges.second,
                                 [&](int next) { return position[edges.first] < position[next]; });
    });
  }

  // What must run after it: is_reached() tells, until the next call. There may be as many calls as
  // variables, which mostly have little behind them.
  void reach_from(int from) {
    reached_.resize(draft_.count());
    ++round_;
    std::vector<int> stack = {from};
    while (!stack.empty()) {
      const int n = stack.back();
      stack.pop_back();
      for_each_successor(n, [&](int next) {
        if (std::exchange(reached_[next], round_) != round_) stack.push_back(next);
      });
    }
  }
  bool is_reached(int n) const { return reached_[n] == round_; }

  // The graph's order, as far as the edges allow, with two exceptions. What only serves values that
  // leave early comes as soon as it can. What needs no more memory than it sets free follows the
  // node it waited for: it finds its input in the cache, and the next value takes the same place.
  void sort() {
    std::vector<int> pending(draft_.count());
    for (int n = 0; n < draft_.count(); ++n)
      for_each_successor(n, [&](int next) { ++pending[next]; });
    const std::vector<bool> is_urgent = find_urgent();
    const std::vector<int> ranks = find_ranks(is_urgent), turns = find_turns(is_urgent);
    WaitingValues values(draft_);
    std::vector<bool> is_sorted(draft_.count());
    using Ranked = std::tuple<int, int, int>;  // rank, turn, node
    std::priority_queue<Ranked, std::vector<Ranked>, std::greater<>> ready;
    const auto add_ready = [&](int n, int after) {
      const bool is_free = !draft_.is_live(n) || values.growth(n) <= 0;
      ready.push({is_free ? std::min(ranks[n], after) : ranks[n], turns[n], n});
    };
    for (int n = 0; n < draft_.count(); ++n) {
      if (pending[n] == 0) add_ready(n, ranks[n]);
    }
    int sorted = 0;
    while (!ready.empty()) {
      const int rank = std::get<0>(ready.top()), n = std::get<2>(ready.top());
      ready.pop();
      if (is_sorted[n]) continue;  // it was added twice, as below
      is_sorted[n] = true;
      ++sorted;
      if (draft_.is_live(n)) {
        draft_.sequence.push_back(n);
        values.run(n, [&](int last_reader) {
          if (pending[last_reader] == 0) add_ready(last_reader, rank);
        });
      }
      for_each_successor(n, [&](int next) {
        if (--pending[next] == 0) add_ready(next, rank);
      });
    }
    check_internal(sorted == draft_.count(), "reads and writes of variables form a cycle");
  }

  // By node: whether it only serves what leaves early. Empty: nothing does.
  std::vector<bool> find_urgent() const {
    std::vector<bool> is_urgent;
    for (const SegmentPlan::Result& result : draft_.segment.results) {
      if (!draft_.leaves_early(result)) continue;
      is_urgent.resize(draft_.count());
      is_urgent[result.node] = true;
    }
    if (is_urgent.empty()) return is_urgent;
    for (int n = draft_.count() - 1; n >= 0; --n) {
      bool has_users = false, are_urgent = true;
      for_each_successor(n, [&](int next) {
        has_users = true;
        are_urgent = are_urgent && next > n && is_urgent[next];
      });
      if (has_users && are_urgent) is_urgent[n] = true;
    }
    return is_urgent;
  }

  // By node: its own number, or if it is urgent, that of the last other node before it (-1: none).
  std::vector<int> find_ranks(const std::vector<bool>& is_urgent) const {
    std::vector<int> ranks(draft_.count());
    std::iota(ranks.begin(), ranks.end(), 0);
    if (is_urgent.empty()) return ranks;
    std::vector<int> last_before(draft_.count(), -1);
    for (int n = 0; n < draft_.count(); ++n) {
      if (is_urgent[n]) ranks[n] = last_before[n];
      for_each_successor(
          n, [&](int next) { last_before[next] = std::max(last_before[next], ranks[n]); });
    }
    return ranks;
  }

  // By node: urgent ones take turns. First comes what the nearest of the results needs, then what
  // the next one needs, too, and so on. Others come last.
  std::vector<int> find_turns(const std::vector<bool>& is_urgent) const {
    constexpr int last = std::numeric_limits<int>::max();
    std::vector<int> turns(draft_.count(), last);
    if (is_urgent.empty()) return turns;
    std::vector<int> depths(draft_.count()), results;
    for (int n = 0; n < draft_.count(); ++n) {
      for (const int before : draft_.segment.nodes[n].after)
        depths[n] = std::max(depths[n], depths[before] + 1);
    }
    for (const SegmentPlan::Result& result : draft_.segment.results) {
      if (draft_.leaves_early(result)) results.push_back(result.node);
    }
    std::ranges::stable_sort(results, {}, [&](int n) { return depths[n]; });
    for (int turn = 0; turn < std::ssize(results); ++turn) {
      std::vector<int> stack = {results[turn]};
      while (!stack.empty()) {
        const int n = stack.back();
        stack.pop_back();
        if (!is_urgent[n] || turns[n] != last) continue;
        turns[n] = turn;
        stack.insert(stack.end(), draft_.segment.nodes[n].after.begin(),
                     draft_.segment.nodes[n].after.end());
      }
    }
    return turns;
  }

  void add_edge(int from, int to) { more_successors_[from].push_back(to); }

  template <class Visit>
  void for_each_successor(int n, Visit visit) const {
    for (int at = successors_.first[n]; at < successors_.first[n + 1]; ++at)
      visit(successors_.nodes[at]);
    if (more_successors_.empty()) return;
    const auto more = more_successors_.find(n);
    if (more == more_successors_.end()) return;
    for (const int next : more->second) visit(next);
  }

  TapeDraft& draft_;
  TapeHints& hints_;
  TapeHints::Successors& successors_;
  std::unordered_map<int, std::vector<int>> more_successors_;  // of accesses to variables
  std::vector<int> reached_;  // by node: the round that came there last
  int round_ = 0;
};

}  // namespace

void find_order(TapeDraft& draft, TapeHints& hints) { Order(draft, hints).find(); }

}  // namespace leat
