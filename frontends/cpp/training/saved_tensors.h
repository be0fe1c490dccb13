// What a Saver saves: the tensors of a checkpoint, and the variables that hold them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "frontends/cpp/variables.h"

namespace leat {

class CheckpointReader;

// A variable, or a partitioned one, of which each part is a slice of the tensor.
struct SavedTensor {
  std::string name;  // in the checkpoint
  DType dtype;
  Shape shape;                    // of the whole
  std::vector<Output> variables;  // one, or all parts
};

// Of those variables, by name, or if there are none, of all of the graph by their own names
// (checkpoint_name). INVALID_ARGUMENT if there is nothing, something is no variable of the graph,
// or variables of one name are not the parts of one, none missing.
std::vector<SavedTensor> saved_tensors(const Graph& graph,
                                       const std::multimap<std::string, Output>& variables);

// NOT_FOUND or INVALID_ARGUMENT with all that the checkpoint `prefix` lacks or has otherwise.
void check_fits(const CheckpointReader& reader, const std::string& prefix,
                const std::vector<SavedTensor>& tensors);

}  // namespace leat
