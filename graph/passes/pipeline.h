// The passes, by name and in order: connect (if the signature has connections) → prune → defer (if
// the run is partial) → structure_loops → split_identity_n → infer → expand_collectives → read_late
// → simplify → place → lower_collectives → simplify_placed → mixed_precision → spread_loops →
// fuse_attention → fuse → recompute → partition → receive_in_place. Each is a free function from
// graph to graph; verify() runs after each one that made or changed a graph. Most change the graph
// in place or replace it: a large graph is copied, and even moved, as rarely as possible. A pass
// that returns bool returns whether it had anything to do.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "graph/kernel_lookup.h"
#include "graph/passes/gpus.h"
#include "graph/passes/mixed_precision/mixed_precision.h"
#include "graph/passes/recompute/recompute.h"
#include "graph/passes/step_signature.h"

namespace leat {

// A device that the placer may use.
struct DeviceSpec {
  DeviceName name;  // complete
  DeviceType type = DeviceType::cpu;
  // Of a GPU of another process, which may have other kernels than this one; null: this one's.
  std::shared_ptr<const KernelTable> kernels = {};
  std::string problem = {};  // why nothing may be placed there; errors name it
};

struct PlacementOptions {
  std::vector<DeviceSpec> devices;  // of every task that may be used
  DeviceName default_device;        // where an op without any request goes: the dialled task
  Gpus gpus = Gpus::prefer;
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
  // most borders on any path to the value, or its own number; edges of one wave never wait for each
  // other
  int wave = 0;
  // a Switch lies upstream; also an attribute of the edge's _Recv, for the runtime
  bool may_be_dead = false;
  // In a loop that is spread over several devices: each value is sent once the previous one was
  // received.
  bool repeats = false;
  // Where the value is received (receive_in_place.cc). Set by the task that receives it.
  struct Place {
    int64_t joint = 0;             // the number of a `_ConcatInPlace`; 0: nowhere in particular
    size_t offset = 0, total = 0;  // bytes, within its output and of it
  } place = {};
};

// Of a partial run: which feeds have to be given before a fetch can be computed.
using FetchFeeds = std::map<std::string, std::vector<std::string>>;
// The node of the only feed that a partial run starts with.
inline constexpr std::string_view deferred_values = "_partial_run";

struct PartitionedGraph {
  std::map<std::string, Graph> partitions;  // by device name, complete string
  std::vector<CutEdge> edges;               // by id
  // Which partition holds a feed (where it is consumed: possibly several) and a fetch.
  std::map<std::string, std::vector<std::string>> feed_devices;
  std::map<std::string, std::string> fetch_devices;
  FetchFeeds fetch_feeds;  // of a partial run
};

// What the passes may do to save work.
enum class Simplify : uint8_t {
  nothing,    // the step runs the nodes of the graph
  structure,  // no node computes another value: folding, common subexpressions, unread values
  all,        // arithmetic, too: Pow(x, 2) becomes Square(x)
};

// By the session's options.
constexpr Simplify simplify_extent(bool simplify, bool arithmetic) {
  if (!simplify) return Simplify::nothing;
  return arithmetic ? Simplify::all : Simplify::structure;
}

struct PipelineOptions {
  StepSignature signature;
  PlacementOptions placement;
  Simplify simplify = Simplify::all;
  bool fuse = true;  // not without simplify
  Recompute recompute = Recompute::nothing;
  MixedPrecision mixed_precision = MixedPrecision::nothing;
  bool bfloat16_edges = false;         // PartitionOptions
  std::string collective_leader = {};  // SessionOptions
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

// Runs all passes. place_stateful() must have placed the stateful nodes of `graph`, or they are
// placed afresh.
PartitionedGraph run_pipeline(const Graph& graph, const PipelineOptions& options);

// ---- The passes. Each throws leat::Error with op, node and line where the graph is at fault. ----

// The graph with the signature's connections as edges. INVALID_ARGUMENT or NOT_FOUND for a
// connection that names no output, joins different dtypes, targets a value that is also fed, or
// closes a cycle.
Graph connect(const Graph& graph, const StepSignature& signature);
// Keeps only what fetches and targets need; each feed becomes a node `_Feed` (a source with the fed
// dtype and shape; its attribute `name` is the fed "node:index"). A node that asks for a dataset as
// a GraphDef becomes a constant (dataset_graph.h). Errors for a step without fetch or target, or
// for unknown or repeated endpoints, have TensorFlow's codes and texts, since clients look for
// them. INVALID_ARGUMENT, with the reason, if the step needs an op of refused_ops.h.
Graph prune(const Graph& graph, const StepSignature& signature);
// For a partial run: its feeds wait on `master` for the client's values, its fetches are kept
// there. `signature` becomes that of a step that is fed one object, which connects them to the
// client.
Graph defer(const Graph& graph, const DeviceName& master, StepSignature& signature);
// `graph` must be pruned.
FetchFeeds feeds_behind_fetches(const Graph& graph, const StepSignature& signature);
// Makes one `_Loop` node of each while loop (loops.h). INVALID_ARGUMENT, with frame and node, for a
// frame that is not a loop. The loop's parts are simplified.
bool structure_loops(Graph& graph, const StepSignature& signature, Simplify extent = Simplify::all);
// Replaces an IdentityN of handles by an Identity of each input.
bool split_identity_n(Graph& graph, const StepSignature& signature);
// Infers shapes again, with what is now known about feeds.
void infer(Graph& graph);
// Computes TensorFlow's collectives (CollectiveReduceV2, …) with plain ops on the devices of their
// members. If the step lacks members, those that it has meet the others, of other programs, on the
// task `leader`. INVALID_ARGUMENT if there is none, if members differ in what they exchange, or if
// collectives wait for each other.
// `own`: the task that runs what requests none.
bool expand_collectives(Graph& graph, const std::string& leader = {}, const DeviceName& own = {});
// A user of a reference's Identity that runs only after an update reads the updated variable, as in
// TensorFlow, unless the Identity is ordered before the update. With a placement, users on other
// devices do not if the update waits for a value from elsewhere: theirs was sent before.
bool read_late(Graph& graph, const PlacementOptions* placement);
// Constant folding (results up to 10 MiB; never stateful, control-flow or fetched nodes' names),
// cheaper arithmetic, common subexpressions, removal of identities, of no-ops and of values that
// nobody reads. Endpoints named in the signature keep their names.
void simplify(Graph& graph, const StepSignature& signature, Simplify extent = Simplify::all);
// Sets assigned_device and placement_reason of every node (placer.h has the rules).
void place(Graph& graph, const PlacementOptions& options);
// Leaves collectives (graph/ops/collective_result.h) to a library where all members are on GPUs
// that have it, and removes the marks of the others. `graph` must be placed on `devices`. False if
// the step has none.
bool lower_collectives(Graph& graph, const StepSignature& signature,
                       const std::vector<DeviceSpec>& devices);
// Merges common subexpressions again. `graph` must be placed: nodes that request different devices
// may be on one device.
bool simplify_placed(Graph& graph, const StepSignature& signature);
// Computes products and convolutions, and what stands between them, in 16 bits: in the step, and in
// the bodies of its loops. Endpoints named in the signature keep names and dtypes. `graph` must be
// placed on `devices`. False if the step has nothing of the kind, or its devices have no kernels
// for it.
bool mixed_precision(Graph& graph, const StepSignature& signature, MixedPrecision format,
                     const std::vector<DeviceSpec>& devices = {});
// Makes a `_Loop` on each device where a loop changes state, besides the loop's own. Appends the
// edges between the parts of these loops to `edges`. `graph` must be placed.
bool spread_loops(Graph& graph, std::vector<CutEdge>& edges);
// Makes one `_Attention` node of attention that is written as products and a softmax, and one
// `_AttentionGrad` of its gradient, in 16 bits on those GPUs of `devices` that have kernels for
// both; not in loops. Endpoints named in the signature keep their names. `graph` must be placed.
// False if the step has nothing of the kind.
bool fuse_attention(Graph& graph, const StepSignature& signature,
                    const std::vector<DeviceSpec>& devices);
// Makes one `_Fused` node (graph/fused.h) of connected nodes on a CPU that go through elements or
// rows one by one: in the step, and in its loops; and on those GPUs of `devices` that have a kernel
// for it, of what gains there. Endpoints named in the signature keep their names. `graph` must be
// placed. False if the step has nothing to fuse.
bool fuse(Graph& graph, const StepSignature& signature, const std::vector<DeviceSpec>& devices);
// Lets the backward part of a training step read copies of forward nodes, which run when it gets
// there, instead of values that would be kept until then. The backward part is what has a part
// "gradients" or "gradients_1" of its name, as gradients() and TensorFlow write it, and what
// follows from that. `graph` must be placed. False if nothing would be saved.
bool recompute(Graph& graph, const StepSignature& signature, Recompute extent);
// Cuts at device borders.
struct PartitionOptions {
  // Float values travel to other tasks as bfloat16: half the bytes, 8 bits of precision.
  bool bfloat16_edges = false;
  // The task that gives the client the fetched values. A fetched reference on another task has the
  // value before any writes that wait for a value from elsewhere (early_fetches_attr, in
  // variable_accesses.h). Otherwise, and without a client, it has the value after all writes.
  DeviceName client = {};
  int64_t first_edge = 0;  // the number of the first edge
};
PartitionedGraph partition(const Graph& graph, const StepSignature& signature,
                           const PartitionOptions& options = {});
// The same for a graph that is no longer needed: if all of it is on one device, it becomes the
// part.
PartitionedGraph partition(Graph&& graph, const StepSignature& signature,
                           const PartitionOptions& options = {});
// Checks the structure: inputs exist and belong to the graph, dtypes agree, names are unique, no
// cycle. INTERNAL, with the pass's name, otherwise.
void verify(const Graph& graph, std::string_view pass);

// A ConcatV2 on a CPU that joins values from other tasks, in the order of memory, becomes a
// `_ConcatInPlace`: they are received where they belong in its output. From 128 KB to 32 MB.
bool receive_in_place(PartitionedGraph& parts);
// Sets CutEdge::place of what one task receives, by the `_ConcatInPlace` nodes of its partitions.
// INVALID_ARGUMENT if two of them have the same number.
void set_places(const std::map<std::string, Graph>& partitions, std::vector<CutEdge>& edges);

}  // namespace leat
