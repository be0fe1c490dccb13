// Exchanges between the replicas of one program, as graph nodes: what every replica has goes in,
// what every replica gets comes out. They consist of existing ops (Split, AddN, Concat, Identity)
// on the workers' devices, so they have gradients, and the partitioner makes the transfers. Each
// algorithm adds in a fixed order: results are equal bit by bit on all replicas and in every run.
//
// Cost of an all-reduce for N workers and S bytes, with α the time of a trip and B the bandwidth of
// a worker, which sends to several at the same time:
//   chunks: reduce-scatter and all-gather. Worker k sums chunk k of N (it receives N - 1 chunks and
//     sends N - 1), then sends its sum to all others. 2(N-1)/N · S bytes sent by each worker, which
//     is the least there can be, in 2 trips: 2α + 2(N-1)/N · S/B.
//   direct: every worker sends all to all and sums for itself. (N-1) · S bytes, 1 trip:
//     α + (N-1) · S/B.
//   servers: as chunks, but the N_s tasks of the servers' job sum, too: with N_s <= N a server
//     2(N-1) / (N² + N·N_s - 2N_s) of all, a worker (N-N_s) / (N² + N·N_s - 2N_s), which keeps all
//     links equally busy: 2N(N-1)S / ((N² + N·N_s - 2N_s)B); with N_s >= N only the servers do.
//     Jiang et al., "A unified architecture for accelerating distributed DNN training", OSDI 2020.
//   hierarchical: chunks within each group of workers, such as those of a host, and between the
//     groups, in 4 trips. With L workers on each of H hosts, 2(H-1)/H · S bytes leave a host; with
//     chunks L times as many. Goyal et al., "Accurate, large minibatch SGD", arXiv:1706.02677,
//     section 4.
//   ring: as chunks, but each worker sends to the next one only: 2(N-1)α + 2(N-1)/N · S/B. Patarasu
//     and Yuan, J. Parallel Distrib. Comput. 69 (2009) 117-124.
//   halving_doubling: pairs exchange halves, then quarters, and back: 2 log₂N · α + 2(N-1)/N · S/B
//     where N is a power of two; else 2 trips and up to 2S/B more.
//   tree: to worker 0 and back: 2⌈log₂N⌉ · (α + S/B). Both: Thakur, Rabenseifner and Gropp, Int. J.
//     High Perform. Comput. Appl. 19 (2005) 49-66.
//   automatic: direct where (N-1)(N-2)/N · S <= αB = trip_bytes: always for two workers, and for
//     small tensors. Else hierarchical if there are several hosts, and several workers on one of
//     them; else chunks. By these formulas the last three never cost less than chunks. They suit
//     networks that suffer when many send to one.
//   One worker sends nothing.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "frontends/cpp/optimizers/sparse_rows.h"
#include "frontends/cpp/strategies/parts/replicas.h"
#include "graph/ops.h"

namespace leat::collectives {

// By replica: each is where that replica is.
using PerReplica = std::vector<Output>;

enum class Reduction {
  mean,
  sum,
  // Two gradients that point the same way give their mean, orthogonal ones their sum:
  // (1 - a·b / 2|a|²) a + (1 - a·b / 2|b|²) b, over pairs of replicas, then pairs of pairs. For
  // all_reduce() alone, which then sends all to all. Maleki et al., "Adasum", MLSys 2021.
  adasum,
};
enum class Algorithm {
  automatic,
  direct,
  chunks,
  servers,
  hierarchical,
  ring,
  halving_doubling,
  tree,
};
// By name, as in "all_reduce:algorithm=ring".
const std::map<std::string, Algorithm>& algorithms();

struct AllReduceOptions {
  Reduction reduction = Reduction::mean;
  Algorithm algorithm = Algorithm::automatic;
  // Tensors of one dtype travel in buckets of this many bytes, in the order given, so that sending
  // begins before the last is there; a larger tensor is a bucket of its own. The first bucket ends
  // where it reaches 1 MiB, as in torch's DistributedDataParallel.
  int64_t bucket_bytes = 25 << 20;
  // αB, see above: the bytes that could be sent in the time of one trip. link_speed.h measures it.
  int64_t trip_bytes = 256 << 10;
  // Buckets are sent while backward runs; false: after it has ended, to measure the difference.
  bool overlap = true;
  // Of buckets that wait for the same link, the one with the first variables goes first: they are
  // the first that the next step needs. False: in the order given.
  bool priority = false;
  // Of `hierarchical`: the number of consecutive workers in a group; 0: those whose addresses name
  // the same host.
  int64_t workers_per_group = 0;
};

// The sum or mean over the replicas, on each. A tensor of fewer elements than there are workers, or
// with adasum, goes directly. Shapes must be complete and equal on all replicas;
// INVALID_ARGUMENT names the first that is not.
PerReplica all_reduce(const Replicas& replicas, const PerReplica& values,
                      const AllReduceOptions& options = {}, Location at = here());
// The same of many tensors, in buckets: tensors[i][k] is tensor i of replica k.
std::vector<PerReplica> all_reduce(const Replicas& replicas, const std::vector<PerReplica>& tensors,
                                   const AllReduceOptions& options = {}, Location at = here());

// The same of gradients: gradients[k][v], that of variable v of replica k, becomes the sum or mean,
// dense. In the order in which backward makes them, the last variable first, so that sending begins
// before backward ends. `which`: the variables that are exchanged, by number; without it, all.
// INVALID_ARGUMENT names a variable for which one replica has a gradient and another has none.
using Gradients = std::vector<std::vector<GradientAndVariable>>;
void all_reduce(const Replicas& replicas, Gradients& gradients, const std::vector<size_t>& which,
                const AllReduceOptions& options = {}, Location at = here());
void all_reduce(const Replicas& replicas, Gradients& gradients,
                const AllReduceOptions& options = {}, Location at = here());

// The same of one tensor, with every worker sending all to all, as in `direct` above: for shapes of
// which not every extent is known.
PerReplica all_reduce_directly(const Replicas& replicas, const PerReplica& values,
                               Reduction reduction = Reduction::mean, Location at = here());

// The following cut and join along an axis whose extent n must be known; the others may be `any`.
// Replica k gets part k·n/N to (k+1)·n/N of the sum or mean of all. 1 trip, (N-1)/N · S bytes sent
// by each worker.
PerReplica reduce_scatter(const Replicas& replicas, const PerReplica& values,
                          Reduction reduction = Reduction::mean, int axis = 0,
                          Location at = here());
// The values of all, one after the other along the axis, on each. 1 trip, (N-1) · S bytes sent.
PerReplica all_gather(const Replicas& replicas, const PerReplica& values, int axis = 0,
                      Location at = here());
// The value of replica `root` on each. 1 trip, (N-1) · S bytes sent by the root.
PerReplica broadcast(const Replicas& replicas, Output value, Location at = here());
// Replica k gets part k of N along split_axis of every value, in the order of the replicas joined
// along concat_axis; n is a multiple of N. 1 trip, (N-1)/N · S bytes sent by each worker.
PerReplica all_to_all(const Replicas& replicas, const PerReplica& values, int split_axis = 0,
                      int concat_axis = 0, Location at = here());

}  // namespace leat::collectives
