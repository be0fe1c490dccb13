// Staging areas: elements that a step puts in and a later one takes out, as when the next batch is
// copied to a device while the current one is used. Leaner than a queue: it is never closed.
//   StagingArea staged(g, "staged", {f32, i32}, {.capacity = 2});
//   Node& put = staged.put({x, y});
//   std::vector<Output> batch = staged.get();
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "frontends/cpp/state/tuple.h"

namespace leat {

struct StagingOptions {
  int64_t capacity = 0;            // put() waits while it has this many elements; 0: no limit
  int64_t memory_limit = 0;        // or this many bytes; 0: no limit
  std::vector<Shape> shapes = {};  // of each component; none: any
  std::string container = {};      // "" = the task's default container
  std::string shared_name = {};    // "" = the name, under the scopes of the constructor
};

// First in, first out. It is on the device that the scopes of the constructor ask for, and lives as
// long as its container. Cheap to copy; valid as long as its graph.
class StagingArea {
 public:
  StagingArea(Graph& graph, std::string_view name, std::vector<DType> dtypes,
              const StagingOptions& options = {}, Location at = here());

  Node& put(const Tuple& values, Location at = here()) const;  // waits for space
  std::vector<Output> get(Location at = here()) const;         // waits for an element
  // Element `index`, from 0, which stays there. Waits until it is there.
  std::vector<Output> peek(const Operand& index, Location at = here()) const;
  Output size(Location at = here()) const;  // int32: the number of elements
  Node& clear(Location at = here()) const;

 private:
  std::string what(std::string_view operation, Location at) const;
  Node& add(std::string_view op, std::string_view operation, std::vector<Output> inputs,
            Location at) const;

  Graph* graph_;
  std::string name_;  // as the user gave it
  TupleSpec spec_;
  AttrMap attrs_;  // by which the ops find the area
  DeviceName device_;
};

}  // namespace leat
