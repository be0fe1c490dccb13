// The passes. pipeline() lists them by name, in order: connect (if the signature has connections) →
// prune → defer (if the run is partial) → structure_loops → split_identity_n → infer → read_late →
// simplify → place → simplify_placed (both if the option is on) → spread_loops → partition. Each is
// also a free function from graph to graph, for tests; verify() runs after each one that made or
// changed a graph. Most change it in place, or put a new one in its place: a large graph is copied,
// and even moved, as seldom as can be. A free function that returns a bool returns whether there
// was anything to do.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace leat {

// What one step computes. Order does not matter and is normalised. Feeds and fetches are
// "node:index", targets "node".
struct StepSignature {
  std::vector<std::string> feeds;
  std::vector<std::string> fetches;
  std::vector<std::string> targets;
  // to → from, "node:index" both: who uses `to` gets the value of `from` instead.
  std::map<std::string, std::string> connections = {};
  // Feeds are given, and fetches taken, while the step runs (defer).
  bool is_partial = false;

  // Sorted, without duplicates, ":0" appended where missing.
  StepSignature normalised() const;
  bool operator==(const StepSignature&) const = default;
  auto operator<=>(const StepSignature&) const = default;
  std::string to_string() const;
};

// A device that the placer may use. Which kernels it has follows from its type.
struct DeviceSpec {
  DeviceName name;  // complete
  DeviceType type = DeviceType::cpu;
};

struct PlacementOptions {
  std::vector<DeviceSpec> devices;    // of every task that may be used
  DeviceName default_device;          // where an op without any request goes: the dialled task
  bool allow_soft_placement = false;  // relax type and id, never job, replica or task
  bool log_placement = false;
};

// One value that crosses from one partition to another, once per step, or per iteration of a loop.
struct CutEdge {
  // index in PartitionedGraph::edges; the `edge` attribute of its _Send and _Recv
  int64_t id = 0;
  std::string tensor_name;  // "edge_7_dense/MatMul": as TensorFlow's dumps have it
  DeviceName source, destination;
  DType dtype = DType::invalid;  // invalid: a control edge, no payload
  Shape shape = Shape::unknown();
  std::string producer;  // node name, for messages
  // most borders on any path to the value, or its own number: edges of one wave never await others
  int wave = 0;
  // a Switch lies upstream; also an attribute of the edge's _Recv, for the runtime
  bool may_be_dead = false;
  // Of a loop that is spread over several devices. A value is sent when the one before has been
  // received.
  bool repeats = false;
};

// Of a partial run: which feeds have to be given before a fetch can be computed.
using FetchFeeds = std::map<std::string, std::vector<std::string>>;
// What a partial run is fed when it starts: the name of its only feed's node.
inline constexpr std::string_view deferred_values = "_partial_run";

struct PartitionedGraph {
  std::map<std::string, Graph> partitions;  // by device name, complete string
  std::vector<CutEdge> edges;               // by id
  // Which partition holds a feed (where it is consumed: possibly several) and a fetch.
  std::map<std::string, std::vector<std::string>> feed_devices;
  std::map<std::string, std::string> fetch_devices;
  FetchFeeds fetch_feeds;  // of a partial run
};

struct PipelineOptions {
  StepSignature signature;
  PlacementOptions placement;
  bool simplify = true;
  bool bfloat16_edges = false;  // PartitionOptions
  // Called after every pass with its name; for dumps and tests.
  std::function<void(std::string_view pass, const Graph& graph)> after_pass;
};

// What the passes of one step share.
struct StepContext {
  const Graph& whole;  // what the step is a part of: read by connect and prune, never copied
  const PipelineOptions& options;
  StepSignature signature;                     // as the options have it; defer changes it
  FetchFeeds fetch_feeds = {};                 // set by defer
  std::vector<CutEdge> loop_edges = {};        // set by spread_loops
  std::optional<PartitionedGraph> parts = {};  // set by partition, which leaves the graph empty
};

enum class PassResult {
  skipped,    // it has no part in this step
  unchanged,  // the structure of the graph is what it was
  changed,
};

// `graph` is that of the step: empty until connect or prune makes it.
struct Pass {
  std::string_view name;
  PassResult (*run)(Graph& graph, StepContext& step);
};

// All passes, in order.
std::span<const Pass> pipeline();

// Runs all of them. `graph` must have been placed for its stateful nodes already (place_stateful),
// or is placed afresh.
PartitionedGraph run_pipeline(const Graph& graph, const PipelineOptions& options);

// ---- The passes. Each throws leat::Error with op, node and line where the graph is at fault. ----

// The graph with the signature's connections as edges. INVALID_ARGUMENT, or NOT_FOUND, for one that
// names no output, or another dtype, or what is fed as well, or that closes a cycle.
Graph connect(const Graph& graph, const StepSignature& signature);
// Only what fetches and targets need; what is fed becomes a node `_Feed` (a source with the fed
// dtype and shape; its attribute `name` is the fed "node:index"). What asks for a dataset as a
// GraphDef becomes a constant (dataset_graph.h). A step without fetch or target,
// unknown or doubly named endpoints: TensorFlow's codes and texts, which its clients look for.
// INVALID_ARGUMENT, with the reason, if it needs an op of refused_ops.h.
Graph prune(const Graph& graph, const StepSignature& signature);
// For a partial run: its feeds wait on `master` for what the client gives there, its fetches are
// kept there. `signature` becomes that of a step that is fed the object by which they do.
Graph defer(const Graph& graph, const DeviceName& master, StepSignature& signature);
// Of a graph that was pruned.
FetchFeeds feeds_behind_fetches(const Graph& graph, const StepSignature& signature);
// One `_Loop` node for each while loop (loops.h). INVALID_ARGUMENT, with frame and node, for a
// frame that is no loop.
bool structure_loops(Graph& graph, const StepSignature& signature);
// An Identity of each input for an IdentityN that hands on handles.
bool split_identity_n(Graph& graph, const StepSignature& signature);
// Shapes again, with what is now known about feeds.
void infer(Graph& graph);
// Users of an Identity of a reference that only run after an update read the updated variable, as
// they do in TensorFlow, unless the Identity is ordered before the update. With a placement not
// those on other devices, if the update waits for an answer from elsewhere: the value was sent
// before.
bool read_late(Graph& graph, const PlacementOptions* placement);
// Constant folding (results up to 10 MiB; never stateful, control-flow or fetched nodes' names),
// common subexpressions, removal of identities and of no-ops. Endpoints named in the signature keep
// their names.
void simplify(Graph& graph, const StepSignature& signature);
// Sets assigned_device and placement_reason of every node (placer.h has the rules).
void place(Graph& graph, const PlacementOptions& options);
// Common subexpressions again, of a graph that is placed: nodes that asked for different devices,
// or only one of them for any, may have got the same one.
bool simplify_placed(Graph& graph, const StepSignature& signature);
// A `_Loop` on each device where a loop has state that it changes, where that is not the loop's
// own. The edges between the parts of these loops are appended to `edges`. Of a graph that is
// placed.
bool spread_loops(Graph& graph, std::vector<CutEdge>& edges);
// Cuts at device borders.
struct PartitionOptions {
  // Float values travel to other tasks as bfloat16: half the bytes, 8 bits of precision.
  bool bfloat16_edges = false;
  // Whose task gives the client what is fetched. A reference of another one has, beside writes that
  // wait for an answer from elsewhere, the value before them (early_fetches_attr, in
  // variable_accesses.h); elsewhere, and without a client, the value after all writes.
  DeviceName client = {};
  int64_t first_edge = 0;  // the number of the first edge
};
PartitionedGraph partition(const Graph& graph, const StepSignature& signature,
                           const PartitionOptions& options = {});
// The same of a graph that is not needed any more: if all of it is on one device, it is the part.
PartitionedGraph partition(Graph&& graph, const StepSignature& signature,
                           const PartitionOptions& options = {});
// Structure holds: inputs exist and belong to the graph, dtypes agree, names are unique, no cycle.
// INTERNAL with the pass's name otherwise.
void verify(const Graph& graph, std::string_view pass);

}  // namespace leat
