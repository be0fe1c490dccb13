// Which state every tensor of a training step has, and which signature every node uses: sharding
// propagation. The variables decide: a state is tried for each in turn, the forward and backward
// nodes then take in their order what costs least, and what is better stays. First as few bytes of
// variables as possible are on each worker (variables of rank 1, which are small, do not count),
// then as few bytes and trips as possible pass between the workers. Of two matrices that follow
// each other the first is then cut by columns, the second by rows: Shoeybi et al., "Megatron-LM",
// arXiv:1909.08053 (2019); Xu et al., "GSPMD", arXiv:2105.04663 (2021).
#pragma once

#include <map>
#include <vector>

#include "frontends/cpp/strategies/sharding/conversions.h"
#include "frontends/cpp/strategies/sharding/rules.h"

namespace leat::sharding {

// A training step as one device would run it. Nodes before `begin` are the caller's: their values
// are replicated.
struct Step {
  Graph graph;
  int begin = 0;
  int update_begin = 0;         // here the update begins, behind the model and its gradients
  std::vector<Output> results;  // loss and metrics, needed replicated
  std::vector<Node*> targets;   // run for their effect: the update
  std::vector<Node*> kept;      // made also if the step does not run them: variables
};

// Which workers run a node.
enum class Where {
  each,            // all, each with its part
  first_of_group,  // draws numbers or has other effects: the others get its outputs
  first,           // changes state of the caller: worker 0 alone
};

class Plan {
 public:
  // For groups of n workers. UNIMPLEMENTED if the step has while loops or conditions.
  Plan(const Step& step, int n);

  bool is_needed(const Node& node) const { return is_needed_[static_cast<size_t>(node.id)]; }
  Where where(const Node& node) const { return where_[static_cast<size_t>(node.id)]; }
  // Of a node that each runs.
  const Signature& signature(const Node& node) const;
  State state_of_variable(const Node& node) const;
  // Of an output, with a batch of 32 if that is not known.
  double bytes(const Output& output) const { return bytes_[flat(output)]; }
  // A number for each output of the graph.
  size_t flat(const Output& output) const {
    return first_output_[static_cast<size_t>(output.node->id)] + static_cast<size_t>(output.index);
  }
  size_t outputs() const { return bytes_.size(); }
  int n() const { return n_; }

 private:
  // Variables of one state: one that is trained, with what the optimizer keeps for it.
  struct Family {
    std::vector<const Node*> variables;
    std::vector<State> candidates;
    State state;
    double bytes = 0;  // that count if they are not split
  };
  struct Cost {
    double variable_bytes = 0, exchange = 0;
    bool is_below(const Cost& other) const {
      return variable_bytes != other.variable_bytes ? variable_bytes < other.variable_bytes
                                                    : exchange < other.exchange;
    }
  };

  void find_needed();
  void find_places();
  void find_families();
  void find_candidates();
  void find_destinations();
  void search();
  Cost run(std::vector<int>* chosen) const;
  bool is_reduced_activation(const Node& node) const;
  State state_of_handle(const Output& handle) const;
  double gathered_variable(const Output& input, State to) const;

  const Step& step_;
  const int n_;
  std::vector<bool> is_needed_;
  std::vector<Where> where_;
  std::vector<size_t> first_output_;
  std::vector<double> bytes_;
  std::vector<bool> is_variable_value_;  // by output: a variable, or what was read from it
  struct Choices {
    std::vector<bool> takes_handle;  // by input: the op takes a variable, not its value
    std::vector<Signature> signatures;
  };
  std::vector<Choices> choices_;  // by node
  std::vector<const Node*> order_;
  std::vector<Family> families_;
  std::map<const Node*, size_t> family_of_;
  std::vector<int> destination_;  // by output: the family that it updates, or -1
  std::vector<int> chosen_;       // by node
};

}  // namespace leat::sharding
