// Values that stay in host memory where a graph runs on a GPU: the host's objects, and what counts.
// Copying a count to the GPU and back would make the host wait.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace leat {

// Strings, variants and handles are objects of the host.
bool is_host_object(DType dtype);
// An integer or truth value, or as many as a shape has: a loop's counter, extents. A shape of
// unknown rank is taken for such a one.
bool is_count(DType dtype, const Shape& shape);

// A node that computes counts from counts, or only passes on variants, and uses no state: the host
// does that for a GPU, with the CPU's kernel.
bool is_for_host(const Node& node);

// A GPU's kernel, which takes these types, is made for the strings and variants of the node: their
// dtype is fixed, or one of these. They are in host memory; most kernels of a GPU take any dtype
// and mean what its memory can hold.
bool takes_objects(const std::vector<TypeConstraint>& types, const Node& node);

// By input of a `_Loop`: its place if the loop runs on a GPU. A variable has one place throughout.
std::vector<bool> loop_inputs_on_host(const Node& loop);

}  // namespace leat
