// The frames of a graph with while loops: which node lies in which loop, before loops.h makes each
// loop a node.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace leat {

bool is_enter(const Node& node);
bool is_exit(const Node& node);
bool has_frames(const Graph& graph);

// The innermost frame of each node. A frame is a loop, which may lie in another; an Exit is in the
// frame around its loop. INVALID_ARGUMENT, with the node, if a node has inputs from two loops and
// neither lies in the other, or an Exit's input is in no loop.
class Frames {
 public:
  static constexpr int none = -1;

  explicit Frames(const Graph& graph);

  int count() const { return static_cast<int>(frames_.size()); }
  int of(const Node& node) const { return frame_of_[node.id]; }
  const std::string& name(int frame) const { return frames_[frame].name; }
  bool is_within(int frame, int outer) const;
  // The outermost loop around `frame` that is not also around `inside`.
  int outermost(int frame, int inside = none) const;

 private:
  struct Frame {
    std::string name;
    int parent;
  };
  int find(const Node& node);
  int entered(int parent, const std::string& name);

  std::vector<Frame> frames_;
  std::map<std::pair<int, std::string>, int> numbers_;
  std::vector<int> frame_of_;  // by node id
};

// Nodes outside of loops, and whole outermost loops, in dependency order. With `inside`, the nodes
// of that loop and of the loops around it are units of their own. INVALID_ARGUMENT, with the frame,
// if a loop waits for its own results.
class FrameOrder {
 public:
  FrameOrder(const Graph& graph, const Frames& frames, int inside = Frames::none);

  const std::vector<int>& units() const { return units_; }
  // The loop of this unit; Frames::none if the unit is a node, whose id it then is.
  int loop(int unit) const { return unit < size_ ? Frames::none : unit - size_; }

 private:
  int unit_of(const Node& node) const;

  const Frames& frames_;
  const int inside_;
  const int size_;
  std::vector<int> units_;
};

}  // namespace leat
