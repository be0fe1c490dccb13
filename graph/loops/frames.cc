#include "graph/loops/frames.h"

#include <algorithm>
#include <queue>

namespace leat {

bool is_enter(const Node& node) { return node.is("Enter") || node.is("RefEnter"); }
bool is_exit(const Node& node) { return node.is("Exit") || node.is("RefExit"); }

bool has_frames(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(),
                             [](const auto& node) { return is_enter(*node) || is_exit(*node); });
}

Frames::Frames(const Graph& graph) : frame_of_(graph.size(), none) {
  for (const auto& node : graph.nodes()) frame_of_[node->id] = find(*node);
}

bool Frames::is_within(int frame, int outer) const {
  while (frame != outer && frame != none) frame = frames_[frame].parent;
  return frame == outer;
}

int Frames::outermost(int frame, int inside) const {
  int out = none;
  for (; !is_within(inside, frame); frame = frames_[frame].parent) out = frame;
  return out;
}

int Frames::find(const Node& node) {
  int inside = none;
  const auto consider = [&](const Node& source) {
    const int frame = of(source);
    if (is_within(inside, frame)) return;
    if (!is_within(frame, inside)) {
      fail_at(node.name, Code::invalid_argument, describe(node),
              " has inputs from two while loops, '", name(inside), "' and '", name(frame),
              "': values leave a loop only through an Exit");
    }
    inside = frame;
  };
  for (const Output& input : node.inputs) consider(*input.node);
  for (const Node* control : node.control_inputs) consider(*control);
  if (is_enter(node)) return entered(inside, node.attr<std::string>("frame_name"));
  if (!is_exit(node)) return inside;
  if (inside == none) {
    fail_at(node.name, Code::invalid_argument, describe(node),
            " leaves a while loop, but its input is in none");
  }
  return frames_[inside].parent;
}

int Frames::entered(int parent, const std::string& name) {
  const auto [found, is_new] = numbers_.try_emplace({parent, name}, count());
  if (is_new) frames_.push_back({name, parent});
  return found->second;
}

FrameOrder::FrameOrder(const Graph& graph, const Frames& frames, int inside)
    : frames_(frames), inside_(inside), size_(static_cast<int>(graph.size())) {
  const int count = size_ + frames.count();
  std::vector<std::vector<int>> users(count);
  std::vector<int> waits(count);
  std::vector<int> first(count, -1);  // node that stands for the unit in the heap
  for (const auto& node : graph.nodes()) {
    const int unit = unit_of(*node);
    if (first[unit] < 0) first[unit] = node->id;
    const auto depend = [&](const Node& source) {
      if (unit_of(source) == unit) return;
      users[unit_of(source)].push_back(unit);
      ++waits[unit];
    };
    for (const Output& input : node->inputs) depend(*input.node);
    for (const Node* control : node->control_inputs) depend(*control);
  }
  using Entry = std::pair<int, int>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  size_t units = 0;
  for (int unit = 0; unit < count; ++unit) {
    if (first[unit] < 0) continue;
    ++units;
    if (waits[unit] == 0) ready.push({first[unit], unit});
  }
  while (!ready.empty()) {
    const int unit = ready.top().second;
    ready.pop();
    units_.push_back(unit);
    for (const int user : users[unit]) {
      if (--waits[user] == 0) ready.push({first[user], user});
    }
  }
  if (units_.size() == units) return;
  for (int unit = 0; unit < count; ++unit) {
    if (waits[unit] == 0 || first[unit] < 0 || unit < size_) continue;
    const Node& node = *graph.nodes()[first[unit]];
    fail_at(node.name, Code::invalid_argument, "while loop '", frames.name(unit - size_),
            "' waits for its own result");
  }
}

int FrameOrder::unit_of(const Node& node) const {
  const int loop = frames_.outermost(frames_.of(node), inside_);
  return loop == Frames::none ? node.id : size_ + loop;
}

}  // namespace leat
