// How the workers of a group get a tensor into another state, and what this costs.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "frontends/cpp/strategies/parts/collectives.h"
#include "frontends/cpp/strategies/sharding/state.h"

namespace leat::sharding {

// What passes between the workers of a group. Nothing does where a worker cuts its part out of what
// it has, or gives up what others have, too.
enum class Collective { none, all_reduce, all_gather, reduce_scatter, all_to_all };
std::string_view name_of(Collective collective);
Collective collective_between(State from, State to);

// Bytes that each of n workers sends so that a tensor of `bytes` changes its state.
double bytes_sent(State from, State to, double bytes, int n);
// The same with the time of the trips, in bytes that could be sent in it (AllReduceOptions).
double price(State from, State to, double bytes, int n);
// Of the states that the workers have, a set of bits by State::code(), the one that `to` is made of
// at the lowest price.
State cheapest_source(uint32_t have, State to, double bytes, int n);

// The values of a group's workers in the state `to`. Nodes of worker k are made under scopes(k),
// those of a collective under the current name scope.
using WorkerScopes = std::function<ReplicaScope(int k)>;
collectives::PerReplica converted(const Replicas& group, const collectives::PerReplica& values,
                                  State from, State to, const WorkerScopes& scopes, Location at);

}  // namespace leat::sharding
