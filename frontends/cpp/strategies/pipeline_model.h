// The nodes of one pipeline: which stage each belongs to, and their copies for the micro-batches.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "frontends/cpp/optimizers/sparse_rows.h"
#include "frontends/cpp/strategies/parts/micro_batches.h"
#include "frontends/cpp/strategies/parts/pipeline_schedule.h"
#include "frontends/cpp/strategies/parts/stages.h"
#include "frontends/cpp/strategies/strategy.h"

namespace leat {

// The model for the first micro-batch, which only runs to be measured: it is the pattern of all.
class PipelineModel {
 public:
  using ComputeGradients = std::function<std::vector<GradientAndVariable>(Output loss)>;

  // Calls `build`, then `gradients`, under the current scopes. `root`: what all names of the
  // replica begin with, "" or "worker_2/".
  PipelineModel(Graph& graph, std::string root, MicroBatches input,
                const std::function<Losses(const Batch&)>& build,
                const ComputeGradients& gradients);

  // Of the pattern: those of variables that the loss does not depend on are empty.
  const std::vector<GradientAndVariable>& gradients() const { return gradients_; }
  // What runs, for one micro-batch, to be measured.
  std::vector<Output> targets() const;

  // ---- Stages ----
  // The nodes that may begin a stage, in order: those that differ between micro-batches.
  struct Item {
    const Node* node;
    double forward = 0, backward = 0;  // seconds
    double cut = no_cut;               // what a cut before it costs
  };
  std::vector<Item> items(const NodeCosts& costs, double bytes_per_second) const;
  // Where stages begin, by the names of nodes or of scopes. INVALID_ARGUMENT if there is no such
  // item, or the cut is not allowed, or they are out of order.
  std::vector<size_t> named_cuts(const std::vector<Item>& items,
                                 const std::vector<std::string>& names) const;
  // The stage of each item by the node's name without `root`: also for other replicas.
  using Stages = std::map<std::string, int>;
  Stages stages_of(const std::vector<Item>& items, const std::vector<size_t>& begins) const;
  // Puts all nodes, and the variables that the model has made, on the devices of their stages.
  void place(const Stages& stages, const std::vector<DeviceName>& devices);
  int stage_of(const Output& variable) const;  // 0 if nothing uses it

  // ---- Micro-batches ----
  // Adds the nodes for all, in the order of the schedule.
  void add_micro_batches(const std::vector<PipelineBlock>& blocks,
                         const std::vector<DeviceName>& devices);
  // Their mean loss and metrics, and gradients; and what each does besides.
  Losses mean_losses(Location at) const;
  std::vector<GradientAndVariable> mean_gradients(PipelineSchedule schedule, Location at) const;
  std::vector<Output> update_ops() const;

 private:
  size_t index(const Node& node) const { return static_cast<size_t>(node.id) - first_; }
  bool is_own(const Node& node) const { return static_cast<size_t>(node.id) >= first_; }
  bool is_of_model(const Node& node) const { return static_cast<size_t>(node.id) < model_end_; }
  void find_owners();
  void find_what_differs();
  void find_depths();
  std::vector<Output> micro_batches_of(const Output& output) const;

  Graph& graph_;
  std::string root_;
  MicroBatches input_;
  size_t first_ = 0, model_end_ = 0;  // the model's nodes; the gradients' follow
  Losses losses_;
  std::vector<GradientAndVariable> gradients_;
  std::vector<Output> update_ops_;
  // By index: whether it differs between micro-batches; how many conditions and loops it lies in;
  // the node of the model whose gradient it belongs to, or its own id, or -1; its stage, or -1.
  std::vector<bool> differs_, in_loops_of_model_;
  std::vector<int> depths_, owners_, stages_;
  std::vector<const Node*> forward_, backward_, metrics_;  // needed, and different
  std::vector<std::function<Output(Output)>> copies_;      // by micro-batch
  std::vector<Node*> ends_;  // by stage: what runs when its last block has
};

}  // namespace leat
