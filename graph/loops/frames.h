// The frames of a graph with while loops: what lies in which loop, before loops.h makes a node of
// each.
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

// Which frame each node is in, innermost. A frame is a loop, which may lie in another; an Exit is
// in what is around its loop. INVALID_ARGUMENT, with the node, if a node has inputs from two loops
// of which neither lies in the other, or an Exit's input is in none.
class Frames {
 public:
  static constexpr int none = -1;

  explicit Frames(const Graph& graph);

  int count() const { return static_cast<int>(frames_.size()); }
  int of(const Node& node) const { return frame_of_[node.id]; }
  const std::string& name(int frame) const { return frames_[frame].name; }
  bool is_within(int frame, int outer) const;
  // The outermost of the loops around the frame that are not around `inside`, too.
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

// Nodes outside of loops, and outermost loops as wholes, in an order in which each comes after what
// it needs. Seen from within a loop: its own nodes are not part of a whole, nor are those of the
// loops around it. INVALID_ARGUMENT, with the frame, if a loop waits for what comes out of it.
class FrameOrder {
 public:
  FrameOrder(const Graph& graph, const Frames& frames, int inside = Frames::none);

  const std::vector<int>& units() const { return units_; }
  // The loop that a unit is; Frames::none if it is a node, whose id is the unit.
  int loop(int unit) const { return unit < size_ ? Frames::none : unit - size_; }

 private:
  int unit_of(const Node& node) const;

  const Frames& frames_;
  const int inside_;
  const int size_;
  std::vector<int> units_;
};

}  // namespace leat
