// leat: cuda-library
// Collectives by NCCL, which is opened at run time: the plug-in must load where there is none.
// Communicators do not block: a call that waits for other members returns at once, and is asked
// for until it is through or aborted (NVIDIA's NCCL documentation, "Fault tolerance").
#include <nccl.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <thread>

#include "kernels/control/communicator.h"
#include "kernels/cuda/device/cuda_device.cuh"
#include "kernels/cuda/device/runtime_library.h"

namespace leat {
namespace {

// The functions of the library that are used, of the types that its header gives them.
struct Nccl {
  decltype(&ncclGetVersion) get_version = nullptr;
  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclCommInitRankConfig) init = nullptr;
  decltype(&ncclCommGetAsyncError) get_async_error = nullptr;
  decltype(&ncclCommAbort) abort = nullptr;
  decltype(&ncclGetErrorString) error_string = nullptr;
  decltype(&ncclGetLastError) last_error = nullptr;
  decltype(&ncclAllReduce) all_reduce = nullptr;
  decltype(&ncclReduceScatter) reduce_scatter = nullptr;
  decltype(&ncclAllGather) all_gather = nullptr;
};

// False if the library lacks one of them, or is older than what these calls need.
bool find_functions(Nccl& nccl) {
  const cuda::RuntimeLibrary library("libnccl.so.2");
  int version = 0;
  return library.find("ncclGetVersion", nccl.get_version) &&
         nccl.get_version(&version) == ncclSuccess && version >= NCCL_VERSION(2, 14, 0) &&
         library.find("ncclGetUniqueId", nccl.get_unique_id) &&
         library.find("ncclCommInitRankConfig", nccl.init) &&
         library.find("ncclCommGetAsyncError", nccl.get_async_error) &&
         library.find("ncclCommAbort", nccl.abort) &&
         library.find("ncclGetErrorString", nccl.error_string) &&
         library.find("ncclGetLastError", nccl.last_error) &&
         library.find("ncclAllReduce", nccl.all_reduce) &&
         library.find("ncclReduceScatter", nccl.reduce_scatter) &&
         library.find("ncclAllGather", nccl.all_gather);
}

// Null if there is none.
const Nccl* nccl() {
  static const auto found = []() -> std::unique_ptr<Nccl> {
    auto out = std::make_unique<Nccl>();
    return find_functions(*out) ? std::move(out) : nullptr;
  }();
  return found.get();
}

ncclDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return ncclFloat64;
    case DType::f16:
      return ncclFloat16;
    case DType::bf16:
      return ncclBfloat16;
    default:
      return ncclFloat32;
  }
}

class NcclCommunicator : public Communicator {
 public:
  NcclCommunicator(int ordinal, const std::string& id, int rank, int members)
      : ordinal_(ordinal), members_(members) {
    ncclUniqueId unique{};
    check(id.size() == sizeof(unique), "an id of ", id.size(), " bytes is not NCCL's");
    std::memcpy(&unique, id.data(), sizeof(unique));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    cuda::check_cuda(cudaSetDevice(ordinal_), "cudaSetDevice");
    const ncclResult_t result = nccl()->init(&handle_, members, unique, rank, &config);
    check_nccl(result == ncclInProgress ? ncclSuccess : result, "ncclCommInitRank");
  }
  ~NcclCommunicator() override { abort(); }

  bool is_ready() override {
    const std::lock_guard lock(mutex_);
    return !is_in_progress("ncclCommInitRank");
  }

  void run(const CollectiveCall& call, const void* in, void* out, Stream& stream) override {
    const cudaStream_t there = cuda_stream(stream);
    const std::lock_guard lock(mutex_);
    check_not_aborted();
    const ncclResult_t result = enqueue(call, in, out, there);
    check_nccl(result == ncclInProgress ? ncclSuccess : result, "a collective");
    while (is_in_progress("a collective")) std::this_thread::yield();
  }

  void abort() override {
    is_aborted_ = true;  // run() may hold the lock: this ends its loop
    const std::lock_guard lock(mutex_);
    if (handle_ == nullptr) return;
    (void)cudaSetDevice(ordinal_);
    const ncclResult_t result = nccl()->abort(handle_);
    handle_ = nullptr;
    if (result != ncclSuccess && result != ncclInProgress)
      std::fprintf(stderr, "leat: ncclCommAbort failed: %s\n", nccl()->error_string(result));
  }

 private:
  ncclResult_t enqueue(const CollectiveCall& call, const void* in, void* out,
                       cudaStream_t stream) const {
    const auto n = static_cast<size_t>(call.elements);
    const ncclDataType_t type = data_type(call.dtype);
    const ncclRedOp_t reduction = call.is_mean ? ncclAvg : ncclSum;
    switch (call.kind) {
      case CollectiveKind::all_reduce:
        return nccl()->all_reduce(in, out, n, type, reduction, handle_, stream);
      case CollectiveKind::reduce_scatter:
        return nccl()->reduce_scatter(in, out, n / static_cast<size_t>(members_), type, reduction,
                                      handle_, stream);
      case CollectiveKind::all_gather:
        return nccl()->all_gather(in, out, n, type, handle_, stream);
    }
    return ncclInvalidArgument;
  }

  // With the lock held.
  bool is_in_progress(const char* what) const {
    check_not_aborted();
    ncclResult_t state = ncclSuccess;
    check_nccl(nccl()->get_async_error(handle_, &state), "ncclCommGetAsyncError");
    if (state == ncclInProgress) return true;
    check_nccl(state, what);
    return false;
  }
  void check_not_aborted() const {
    check(!is_aborted_ && handle_ != nullptr, Code::aborted, "NCCL's communicator was aborted");
  }
  void check_nccl(ncclResult_t result, const char* what) const {
    if (result == ncclSuccess) return;
    const char* const more = nccl()->last_error(handle_);
    fail(Code::internal, "GPU:", ordinal_, ": NCCL: ", what,
         " failed: ", nccl()->error_string(result), more == nullptr ? "" : ": ",
         more == nullptr ? "" : more);
  }

  const int ordinal_, members_;
  std::mutex mutex_;
  std::atomic<bool> is_aborted_ = false;
  ncclComm_t handle_ = nullptr;
};

class NcclLibrary : public CommunicatorLibrary {
 public:
  std::string new_id() override {
    ncclUniqueId id{};
    const ncclResult_t result = nccl()->get_unique_id(&id);
    check_internal(result == ncclSuccess,
                   "NCCL: ncclGetUniqueId failed: ", nccl()->error_string(result));
    return {reinterpret_cast<const char*>(&id), sizeof(id)};
  }
  std::unique_ptr<Communicator> make(Device& device, const std::string& id, int rank,
                                     int members) override {
    return std::make_unique<NcclCommunicator>(cuda_ordinal(device), id, rank, members);
  }
};

}  // namespace

CommunicatorLibrary* communicator_library() {
  static NcclLibrary library;
  return nccl() == nullptr ? nullptr : &library;
}

}  // namespace leat
