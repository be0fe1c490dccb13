#include "frontends/cpp/training/saved_tensors.h"

#include <algorithm>

#include "graph/formats/checkpoint.h"
#include "graph/variable_node.h"

namespace leat {
namespace {

// A reference, or what was read from a resource variable.
bool is_savable(const Output& variable) {
  return variable_node(variable) != nullptr && variable.dtype() != DType::resource;
}

void check_is_variable(const Graph& graph, const std::string& name, const Output& variable) {
  check(variable && is_savable(variable) && &variable.graph() == &graph, "cannot save '", name,
        "': it is not a variable of this graph");
}

SavedTensor tensor_of(const std::string& name, const Output& variable) {
  const auto part = part_of(variable);
  return {name, variable.dtype(), part ? part->whole : variable.shape(), {variable}};
}

// Another part of the partitioned variable that the tensor is.
void add_part(SavedTensor& tensor, const Output& variable) {
  const Output first = tensor.variables.front();
  const auto part = part_of(variable), other = part_of(first);
  check(part && other && part->of == other->of && part->whole == other->whole &&
            variable.dtype() == tensor.dtype,
        "'", variable_name(first), "' and '", variable_name(variable), "' both save as '",
        tensor.name, "' but are not parts of one variable: give them different names");
  for (const Output& same : tensor.variables) {
    check(common_elements(part_of(same)->slice, part->slice) == 0, "'", variable_name(same),
          "' and '", variable_name(variable), "' hold the same elements of '", tensor.name,
          "': give each part once");
  }
  tensor.variables.push_back(variable);
}

// As parts do not overlap, counting their elements is enough.
void check_is_complete(const SavedTensor& tensor) {
  int64_t elements = 0;
  for (const Output& variable : tensor.variables) elements += variable.shape().elements();
  check(elements == tensor.shape.elements(), "'", tensor.name, "' ", tensor.shape,
        " is partitioned, ", "but the given parts, starting with '",
        variable_name(tensor.variables.front()), "', hold only ", elements, " of its ",
        tensor.shape.elements(), " elements: save all parts or none");
}

}  // namespace

std::vector<SavedTensor> saved_tensors(const Graph& graph,
                                       const std::multimap<std::string, Output>& variables) {
  std::vector<std::pair<std::string, Output>> named(variables.begin(), variables.end());
  if (named.empty()) {
    for (const Output& variable : graph.collection("variables"))
      named.emplace_back(checkpoint_name(variable), variable);
  }
  check(!named.empty(), "there is nothing to save: the graph has no variables yet");
  std::vector<SavedTensor> out;
  std::map<std::string, size_t> places;
  for (const auto& [name, variable] : named) {
    check_is_variable(graph, name, variable);
    const auto [place, is_new] = places.emplace(name, out.size());
    if (is_new) {
      out.push_back(tensor_of(name, variable));
    } else {
      add_part(out[place->second], variable);
    }
  }
  std::for_each(out.begin(), out.end(), check_is_complete);
  return out;
}

void check_fits(const CheckpointReader& reader, const std::string& prefix,
                const std::vector<SavedTensor>& tensors) {
  std::map<std::string, CheckpointReader::Variable> stored;
  for (CheckpointReader::Variable& variable : reader.variables())
    stored.emplace(variable.name, std::move(variable));
  std::string problems;
  Code code = Code::not_found;
  for (const SavedTensor& tensor : tensors) {
    const auto found = stored.find(tensor.name);
    if (found == stored.end()) {
      problems += concat("\n  ", tensor.name, " is missing (this graph has ", tensor.dtype,
                         tensor.shape, ")");
    } else if (found->second.dtype != tensor.dtype || found->second.shape != tensor.shape) {
      problems += concat("\n  ", tensor.name, " is ", found->second.dtype, found->second.shape,
                         " in the checkpoint but ", tensor.dtype, tensor.shape, " in this graph");
      code = Code::invalid_argument;
    }
  }
  if (!problems.empty())
    fail(code, "the checkpoint ", prefix, " does not fit this graph:", problems);
}

}  // namespace leat
