// Collectives where there is no NCCL: the streams of a group's GPUs, all of this process, meet, and
// the last one computes for all. Calls that differ between members are a fault, as they would be
// undefined in NCCL.
#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <vector>

#include "core/visit_dtype.h"
#include "kernels/control/communicator.h"
#include "kernels/types.h"
#include "tests/support/cuda/control.h"
#include "tests/support/cuda/include/cuda_runtime.h"
#include "tests/support/cuda/stream.h"

namespace leat {
namespace {

struct Call {
  CollectiveCall call;
  const void* in = nullptr;
  void* out = nullptr;
};

bool are_alike(const CollectiveCall& a, const CollectiveCall& b) {
  return a.kind == b.kind && a.dtype == b.dtype && a.elements == b.elements &&
         a.is_mean == b.is_mean;
}

template <class T>
void compute(const std::vector<Call>& calls) {
  const CollectiveCall& call = calls[0].call;
  const auto n = static_cast<size_t>(call.elements), members = calls.size();
  std::vector<T> all;  // the result, or for all_gather the values
  if (call.kind == CollectiveKind::all_gather) {
    for (const Call& each : calls)
      all.insert(all.end(), static_cast<const T*>(each.in), static_cast<const T*>(each.in) + n);
  } else {
    for (size_t i = 0; i < n; ++i) {
      ComputeType<T> sum = 0;
      for (const Call& each : calls)
        sum += static_cast<ComputeType<T>>(static_cast<const T*>(each.in)[i]);
      if (call.is_mean) sum /= static_cast<ComputeType<T>>(members);
      all.push_back(static_cast<T>(sum));
    }
  }
  for (size_t k = 0; k < members; ++k) {
    const bool is_cut = call.kind == CollectiveKind::reduce_scatter;
    const size_t part = is_cut ? n / members : all.size();
    std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(is_cut ? k * part : 0), part,
                static_cast<T*>(calls[k].out));
  }
}

// What the members share.
class Meeting {
 public:
  explicit Meeting(int members)
      : calls_(static_cast<size_t>(members)), has_left_(static_cast<size_t>(members)) {}

  void arrive() {
    const std::lock_guard lock(mutex_);
    ++present_;
  }
  bool is_complete() {
    const std::lock_guard lock(mutex_);
    return present_ == std::ssize(calls_);
  }
  // On the stream of a member: waits for the others' calls, or until it leaves. Once one has left,
  // nothing is computed: its memory may be another's by then.
  void meet(int rank, const Call& call) {
    std::unique_lock lock(mutex_);
    calls_[static_cast<size_t>(rank)] = call;
    const int64_t round = round_;
    const auto has_all = [&] {
      return arrived_ == std::ssize(calls_) &&
             std::ranges::find(has_left_, true) == has_left_.end();
    };
    ++arrived_;
    if (!has_all()) {
      changed_.wait(lock, [&] { return round_ > round || has_left_[static_cast<size_t>(rank)]; });
      return;
    }
    for (const Call& each : calls_) {
      if (!are_alike(each.call, calls_[0].call)) leat_cuda_on_host_fault();
    }
    visit_type(FloatTypes{}, calls_[0].call.dtype, [&](auto tag) {
      compute<typename decltype(tag)::type>(calls_);
      return 0;
    });
    ++cuda_on_host::counts().collectives;
    arrived_ = 0;
    ++round_;
    changed_.notify_all();
  }
  void leave(int rank) {
    const std::lock_guard lock(mutex_);
    has_left_[static_cast<size_t>(rank)] = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Call> calls_;     // of this round, by rank
  std::vector<bool> has_left_;  // by rank
  int64_t present_ = 0, arrived_ = 0, round_ = 0;
};

class HostCommunicator : public Communicator {
 public:
  HostCommunicator(std::shared_ptr<Meeting> meeting, int rank)
      : meeting_(std::move(meeting)), rank_(rank) {
    meeting_->arrive();
  }
  ~HostCommunicator() override { meeting_->leave(rank_); }

  bool is_ready() override { return meeting_->is_complete(); }
  void run(const CollectiveCall& call, const void* in, void* out, Stream& stream) override {
    const cudaError_t error =
        cuda_on_host::enqueue(static_cast<cudaStream_t>(stream.native()),
                              [meeting = meeting_, rank = rank_, made = Call{call, in, out}] {
                                meeting->meet(rank, made);
                              });
    check_internal(error == cudaSuccess, "a collective: ", cudaGetErrorString(error));
  }
  void abort() override { meeting_->leave(rank_); }

 private:
  const std::shared_ptr<Meeting> meeting_;
  const int rank_;
};

class HostLibrary : public CommunicatorLibrary {
 public:
  std::string new_id() override {
    const std::lock_guard lock(mutex_);
    return concat("group ", ++last_id_);
  }
  std::unique_ptr<Communicator> make(Device&, const std::string& id, int rank,
                                     int members) override {
    const std::lock_guard lock(mutex_);
    std::weak_ptr<Meeting>& known = meetings_[id];
    std::shared_ptr<Meeting> meeting = known.lock();
    if (meeting == nullptr) known = meeting = std::make_shared<Meeting>(members);
    return std::make_unique<HostCommunicator>(meeting, rank);
  }

 private:
  std::mutex mutex_;
  int64_t last_id_ = 0;
  std::map<std::string, std::weak_ptr<Meeting>> meetings_;
};

}  // namespace

CommunicatorLibrary* communicator_library() {
  static HostLibrary library;
  return &library;
}

}  // namespace leat
