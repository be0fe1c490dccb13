// How fast two tasks exchange tensors: with it, strategies weigh fewer trips against fewer bytes.
#pragma once

#include <cstdint>
#include <string>

#include "frontends/cpp/strategies/parts/replicas.h"

namespace leat {

struct LinkSpeed {
  // α, the time of a trip between two tasks, and B, what a task sends and at the same time
  // receives. These values are those of two cores that workers on one host shared.
  double trip_us = 100;
  double megabytes_per_second = 2'600;
  bool is_measured = false;

  // αB: the bytes that could be sent in the time of one trip.
  int64_t trip_bytes() const { return static_cast<int64_t>(trip_us * megabytes_per_second); }
};

// Of two tasks of the cluster that `target` ("grpc://host:port") belongs to. A step in which both
// send 64 bytes, or 4 MB, to each other and square what they get is timed against one in which each
// squares its own; each time is the least of several. The difference at 64 bytes is α, what is left
// of the difference at 4 MB gives B. Takes about a quarter of a second. leat::Error if a step
// fails, or takes more than 10 s.
LinkSpeed measure_link_speed(const std::string& target, const DeviceName& one,
                             const DeviceName& other);

// Of the first two workers, or those of two hosts, measured once per process and pair of tasks; the
// others are taken to be like them. The default values where nothing can be measured: there is one
// worker, no cluster runs (a strategy made of a description alone), this program is not the chief,
// or the tasks do not answer.
LinkSpeed link_speed(const Replicas& replicas);

}  // namespace leat
