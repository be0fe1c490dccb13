// The runtime that runs CUDA on the host, by itself: what its threads, streams and captures do, and
// what it reports that CUDA would punish.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

#include "tests/support/cuda/block.h"
#include "tests/support/cuda/include/cuda_runtime.h"

namespace {

using testing::HasSubstr;

template <class... Parameters, class... Given>
cudaError_t launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, cudaStream_t stream,
                   Given... given) {
  cudaLaunchConfig_t config;
  config.gridDim = grid;
  config.blockDim = block;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, given...);
}

// Runs each test in several orders of blocks and threads.
class Shim : public testing::TestWithParam<uint64_t> {
 protected:
  Shim() {
    cuda_on_host::set_order(GetParam());
    EXPECT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  }
  ~Shim() override {
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    (void)cudaDeviceReset();
    for (int* block : blocks_) EXPECT_EQ(cudaFree(block), cudaSuccess);
    cuda_on_host::set_order(0);
  }

  int* integers(size_t n) {
    int* out = nullptr;
    EXPECT_EQ(cudaMalloc(&out, n * sizeof(int)), cudaSuccess);
    blocks_.push_back(out);
    return out;
  }
  std::vector<int> read(const int* from, size_t n) {
    std::vector<int> out(n);
    EXPECT_EQ(cudaMemcpyAsync(out.data(), from, n * sizeof(int), cudaMemcpyDeviceToHost, stream),
              cudaSuccess);
    return out;
  }
  // What the kernel's fault says.
  std::string fault() {
    const cudaError_t error = cudaStreamSynchronize(stream);
    EXPECT_EQ(error, cudaErrorLaunchFailure);
    EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
    EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure) << "it is sticky";
    return cudaGetErrorString(error);
  }

  cudaStream_t stream = nullptr;

 private:
  std::vector<int*> blocks_;
};
INSTANTIATE_TEST_SUITE_P(Orders, Shim, testing::Values(0, 1, 12345));

__global__ void number_kernel(int* out, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) out[i] = i;
}

TEST_P(Shim, RunsEachThreadOfEachBlockOnce) {
  int* out = integers(1000);
  ASSERT_EQ(launch(number_kernel, 4, 256, stream, out, 1000), cudaSuccess);
  const std::vector<int> got = read(out, 1000);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(got[i], i);
}

__global__ void place_kernel(int* out) {
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  atomicAdd(&out[block * blockDim.x * blockDim.y * blockDim.z + thread], 1);
}

TEST_P(Shim, CountsInThreeDimensions) {
  const size_t n = 3 * 2 * 2 * 5 * 2 * 3;
  int* out = integers(n);
  ASSERT_EQ(cudaMemsetAsync(out, 0, n * sizeof(int), stream), cudaSuccess);
  ASSERT_EQ(launch(place_kernel, {3, 2, 2}, {5, 2, 3}, stream, out), cudaSuccess);
  EXPECT_EQ(read(out, n), std::vector<int>(n, 1));
}

// Sums by halving: each round reads what other threads wrote in the one before.
__global__ void sum_kernel(const int* in, int* out) {
  __shared__ int totals[1024];
  totals[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
  for (unsigned width = blockDim.x / 2; width > 0; width /= 2) {
    __syncthreads();
    if (threadIdx.x < width) totals[threadIdx.x] += totals[threadIdx.x + width];
  }
  if (threadIdx.x == 0) out[blockIdx.x] = totals[0];
}

TEST_P(Shim, WaitsAtBarriers) {
  for (const unsigned threads : {1u, 2u, 64u, 1024u}) {
    int *in = integers(3 * threads), *out = integers(3);
    ASSERT_EQ(launch(number_kernel, 3 * threads, 1, stream, in, static_cast<int>(3 * threads)),
              cudaSuccess);
    ASSERT_EQ(launch(sum_kernel, 3, threads, stream, static_cast<const int*>(in), out),
              cudaSuccess);
    const std::vector<int> got = read(out, 3);
    for (unsigned b = 0; b < 3; ++b) {
      const unsigned first = b * threads;
      EXPECT_EQ(got[b], static_cast<int>(threads * first + threads * (threads - 1) / 2));
    }
  }
}

__global__ void vote_kernel(int* out) {
  const int is_third = threadIdx.x == 3;
  const int any = __syncthreads_or(is_third), all = __syncthreads_and(is_third),
            none = __syncthreads_or(0), every = __syncthreads_and(1),
            count = __syncthreads_count(threadIdx.x % 2 == 0);
  if (threadIdx.x != 7) return;  // any thread has the results
  out[0] = any, out[1] = all, out[2] = none, out[3] = every, out[4] = count;
}

TEST_P(Shim, VotesAtBarriers) {
  int* out = integers(5);
  ASSERT_EQ(launch(vote_kernel, 1, 40, stream, out), cudaSuccess);
  EXPECT_EQ(read(out, 5), (std::vector<int>{1, 0, 0, 1, 20}));
}

__global__ void shuffle_kernel(int* out) {
  const int lane = static_cast<int>(threadIdx.x % 32), value = 100 + static_cast<int>(threadIdx.x);
  int* mine = out + threadIdx.x * 6;
  mine[0] = __shfl_sync(0xffffffffu, value, 5);
  mine[1] = __shfl_up_sync(0xffffffffu, value, 2);
  mine[2] = __shfl_down_sync(0xffffffffu, value, 1, 8);
  mine[3] = __shfl_xor_sync(0xffffffffu, value, 1);
  mine[4] = static_cast<int>(__ballot_sync(0xffffffffu, lane < 3));
  mine[5] = lane < 16 ? __shfl_sync(0x0000ffffu, value, 0) : __shfl_sync(0xffff0000u, value, 16);
}

TEST_P(Shim, ShufflesWithinWarps) {
  int* out = integers(64 * 6);
  ASSERT_EQ(launch(shuffle_kernel, 1, 64, stream, out), cudaSuccess);
  const std::vector<int> got = read(out, 64 * 6);
  for (int t = 0; t < 64; ++t) {
    const int lane = t % 32, warp = t - lane, *mine = &got[t * 6];
    EXPECT_EQ(mine[0], 100 + warp + 5);
    EXPECT_EQ(mine[1], 100 + (lane < 2 ? t : t - 2));
    EXPECT_EQ(mine[2], 100 + (lane % 8 == 7 ? t : t + 1));
    EXPECT_EQ(mine[3], 100 + (t ^ 1));
    EXPECT_EQ(mine[4], 7);
    EXPECT_EQ(mine[5], 100 + warp + (lane < 16 ? 0 : 16));
  }
}

__global__ void two_barriers_kernel(int* out) {
  if (threadIdx.x < 16) {
    __syncthreads();
  } else {
    __syncthreads();
  }
  out[threadIdx.x] = 1;
}

TEST_P(Shim, NamesTheKernelWhoseThreadsWaitAtTwoBarriers) {
  ASSERT_EQ(launch(two_barriers_kernel, 1, 32, stream, integers(32)), cudaSuccess);
  const std::string text = fault();
  EXPECT_THAT(text, HasSubstr("two_barriers_kernel(int*)"));
  EXPECT_THAT(text, HasSubstr("at the barrier of "));
  EXPECT_THAT(text, HasSubstr("shim_test.cc"));
  int* block = nullptr;
  EXPECT_EQ(cudaMalloc(&block, 4), cudaErrorLaunchFailure) << "every call fails from now on";
}

__global__ void deadlock_kernel(int* out) {
  if (threadIdx.x == 0) {
    out[0] = __shfl_sync(0xffffffffu, 1, 0);
  } else {
    __syncthreads();
  }
}

TEST_P(Shim, NamesTheKernelWhoseThreadsWaitForEver) {
  ASSERT_EQ(launch(deadlock_kernel, 1, 32, stream, integers(1)), cudaSuccess);
  const std::string text = fault();
  EXPECT_THAT(text, HasSubstr("deadlock_kernel(int*)"));
  EXPECT_THAT(text, HasSubstr("31 at the barrier"));
  EXPECT_THAT(text, HasSubstr("1 in the warp operation"));
}

__global__ void absent_lane_kernel(int* out) {
  if (threadIdx.x >= 20) return;
  out[threadIdx.x] = __shfl_sync(0xffffffffu, 1, 0);
}

TEST_P(Shim, NamesTheKernelWhoseMaskHasAThreadThatHasLeft) {
  ASSERT_EQ(launch(absent_lane_kernel, 1, 32, stream, integers(32)), cudaSuccess);
  const std::string text = fault();
  EXPECT_THAT(text, HasSubstr("absent_lane_kernel(int*)"));
  EXPECT_THAT(text, HasSubstr("left the kernel"));
}

TEST_P(Shim, WorksAgainAfterAReset) {
  ASSERT_EQ(launch(deadlock_kernel, 1, 32, stream, integers(1)), cudaSuccess);
  (void)fault();
  ASSERT_EQ(cudaDeviceReset(), cudaSuccess);
  int* out = integers(256);
  ASSERT_EQ(launch(number_kernel, 1, 256, stream, out, 256), cudaSuccess);
  EXPECT_EQ(read(out, 256)[255], 255);
}

TEST_P(Shim, RefusesWhatCudaCannotLaunch) {
  int* out = integers(1);
  EXPECT_EQ(launch(number_kernel, 1, 1025, stream, out, 1), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(number_kernel, 1, 0, stream, out, 1), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(number_kernel, {1, 1, 1}, {1, 1, 65}, stream, out, 1),
            cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(number_kernel, 0, 1, stream, out, 1), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(number_kernel, {1, 65536}, 1, stream, out, 1), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(number_kernel, 2147483648u, 1, stream, out, 1), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "it is not sticky";
}

TEST_P(Shim, FaultsAtAKernelThatGetsHostMemory) {
  int host = 0;
  ASSERT_EQ(launch(number_kernel, 1, 1, stream, &host, 1), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
  EXPECT_THAT(cudaGetErrorString(cudaErrorIllegalAddress), HasSubstr("number_kernel(int*, int)"));
}

TEST_P(Shim, RefusesCopiesAndFreesOfWhatIsNoMemoryOfTheDevice) {
  int host[2] = {};
  int* out = integers(2);
  EXPECT_EQ(cudaMemcpyAsync(host, host + 1, 4, cudaMemcpyHostToDevice, stream),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(out, host, 12, cudaMemcpyHostToDevice, stream), cudaErrorInvalidValue)
      << "4 bytes more than the block has";
  EXPECT_EQ(cudaMemcpyAsync(out, host, 8, cudaMemcpyDeviceToHost, stream), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemsetAsync(host, 0, 4, stream), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(host), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(out + 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFreeHost(out), cudaErrorInvalidValue);
}

TEST_P(Shim, FillsNewMemoryWithNaN) {
  EXPECT_EQ(read(integers(3), 3), (std::vector<int>{-1, -1, -1}));
}

TEST_P(Shim, RunsStreamsBesideTheHost) {
  std::atomic<bool> may_go_on = false;
  const auto wait = [](void* flag) {
    while (!*static_cast<std::atomic<bool>*>(flag)) std::this_thread::yield();
  };
  ASSERT_EQ(cudaLaunchHostFunc(stream, wait, &may_go_on), cudaSuccess);
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  cudaStream_t other = nullptr;
  ASSERT_EQ(cudaStreamCreate(&other), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(other, event), cudaSuccess);
  int* out = integers(1);
  ASSERT_EQ(launch(number_kernel, 1, 1, other, out, 1), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(other), cudaErrorNotReady) << "it waits for the event";
  may_go_on = true;
  EXPECT_EQ(cudaStreamSynchronize(other), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
  EXPECT_EQ(read(out, 1)[0], 0);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(other), cudaSuccess);
}

// ---- Capture

__global__ void increment_kernel(int* value, int by) { *value += by; }

TEST_P(Shim, CapturesAndReplays) {
  int* value = integers(1);
  ASSERT_EQ(cudaMemsetAsync(value, 0, 4, stream), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  for (int i = 1; i <= 3; ++i)
    ASSERT_EQ(launch(increment_kernel, 1, 1, stream, value, i), cudaSuccess);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  size_t nodes = 0;
  ASSERT_EQ(cudaGraphGetNodes(graph, nullptr, &nodes), cudaSuccess);
  EXPECT_EQ(nodes, 3u);
  EXPECT_EQ(read(value, 1)[0], 0) << "nothing ran while it was captured";
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph), cudaSuccess);
  ASSERT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(cudaGraphLaunch(executable, stream), cudaSuccess);
  EXPECT_EQ(read(value, 1)[0], 12);
  EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
}

TEST_P(Shim, ForbidsInACaptureWhatCudaForbids) {
  int* value = integers(1);
  int host = 0;
  const std::vector<std::pair<const char*, std::function<cudaError_t()>>> calls = {
      {"cudaMalloc",
       [] {
         int* block;
         return cudaMalloc(&block, 4);
       }},
      {"cudaFree", [&] { return cudaFree(value); }},
      {"cudaStreamSynchronize", [&] { return cudaStreamSynchronize(stream); }},
      {"cudaDeviceSynchronize", [] { return cudaDeviceSynchronize(); }},
      {"cudaMemcpy", [&] { return cudaMemcpy(&host, value, 4, cudaMemcpyDeviceToHost); }},
      {"a copy to pageable memory",
       [&] { return cudaMemcpyAsync(&host, value, 4, cudaMemcpyDeviceToHost, stream); }}};
  for (const auto& [name, call] : calls) {
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    EXPECT_EQ(call(), cudaErrorStreamCaptureUnsupported) << name;
    cudaStreamCaptureStatus status;
    ASSERT_EQ(cudaStreamIsCapturing(stream, &status), cudaSuccess);
    EXPECT_EQ(status, cudaStreamCaptureStatusInvalidated) << name;
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated) << name;
    EXPECT_EQ(graph, nullptr);
  }
}

TEST_P(Shim, CapturesForksThatAreJoined) {
  int* value = integers(1);
  ASSERT_EQ(cudaMemsetAsync(value, 0, 4, stream), cudaSuccess);
  cudaStream_t other = nullptr;
  cudaEvent_t fork = nullptr, join = nullptr;
  ASSERT_EQ(cudaStreamCreate(&other), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&fork), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&join), cudaSuccess);
  for (const bool joins : {true, false}) {
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    ASSERT_EQ(cudaEventRecord(fork, stream), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(other, fork), cudaSuccess);
    ASSERT_EQ(launch(increment_kernel, 1, 1, other, value, 1), cudaSuccess);
    ASSERT_EQ(cudaEventRecord(join, other), cudaSuccess);
    EXPECT_EQ(cudaEventSynchronize(join), cudaErrorCapturedEvent);
    if (joins) {
      ASSERT_EQ(cudaStreamWaitEvent(stream, join), cudaSuccess);
    }
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph),
              joins ? cudaSuccess : cudaErrorStreamCaptureUnjoined);
    if (!joins) continue;
    cudaGraphExec_t executable = nullptr;
    ASSERT_EQ(cudaGraphInstantiate(&executable, graph), cudaSuccess);
    ASSERT_EQ(cudaGraphLaunch(executable, stream), cudaSuccess);
    EXPECT_EQ(read(value, 1)[0], 1);
    EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  }
  EXPECT_EQ(cudaEventDestroy(fork), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(join), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(other), cudaSuccess);
}

// ---- Orders

__global__ void claim_kernel(int* next, int* order) { order[atomicAdd(next, 1)] = blockIdx.x; }

TEST(ShimOrder, DependsOnTheSeed) {
  std::set<std::vector<int>> orders;
  for (const uint64_t seed : {0, 1, 2, 3}) {
    cuda_on_host::set_order(seed);
    int* memory = nullptr;
    ASSERT_EQ(cudaMalloc(&memory, 101 * sizeof(int)), cudaSuccess);
    ASSERT_EQ(cudaMemsetAsync(memory, 0, sizeof(int)), cudaSuccess);
    ASSERT_EQ(launch(claim_kernel, 100, 1, nullptr, memory, memory + 1), cudaSuccess);
    std::vector<int> order(100);
    ASSERT_EQ(cudaMemcpy(order.data(), memory + 1, 400, cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
    EXPECT_EQ(std::set<int>(order.begin(), order.end()).size(), 100u);
    orders.insert(order);
  }
  cuda_on_host::set_order(0);
  EXPECT_EQ(orders.size(), 4u);
}

}  // namespace
