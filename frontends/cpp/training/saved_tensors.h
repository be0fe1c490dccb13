// What a Saver saves: the tensors of a checkpoint, and the variables that hold them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "frontends/cpp/variables.h"

namespace leat {

class CheckpointReader;

// A variable, or a partitioned one whose parts are slices of the tensor.
struct SavedTensor {
  std::string name;  // in the checkpoint
  DType dtype;
  Shape shape;                    // of the whole
  std::vector<Output> variables;  // one, or all parts
};

// The tensors of these variables, by name, or if there are none, of all in the graph by their own
// names (checkpoint_name). INVALID_ARGUMENT if there are no variables, if one is not a variable of
// the graph, or if variables of one name are not exactly the parts of one.
std::vector<SavedTensor> saved_tensors(const Graph& graph,
                                       const std::multimap<std::string, Output>& variables);

// NOT_FOUND or INVALID_ARGUMENT lists all that the checkpoint `prefix` lacks or has with another
// dtype or shape.
void check_fits(const CheckpointReader& reader, const std::string& prefix,
                const std::vector<SavedTensor>& tensors);

}  // namespace leat
