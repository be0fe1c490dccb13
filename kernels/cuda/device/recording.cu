#include "kernels/cuda/device/recording.cuh"

#include "kernels/cuda/device/refuse_recording.h"

namespace leat::cuda {
namespace {

class GraphRecording;
thread_local const GraphRecording* under_way = nullptr;

class RecordedGraph : public RecordedWork {
 public:
  RecordedGraph(const CudaStream& stream, cudaGraphExec_t graph) : stream_(stream), graph_(graph) {}
  ~RecordedGraph() override { (void)cudaGraphExecDestroy(graph_); }
  void run() override {
    check_cuda(cudaSetDevice(stream_.ordinal()), "cudaSetDevice");
    check_cuda(cudaGraphLaunch(graph_, stream_.handle()), "cudaGraphLaunch");
  }

 private:
  const CudaStream& stream_;
  const cudaGraphExec_t graph_;
};

// On a stream of its own: what other threads enqueue on the device's must run now, and is not part
// of the graph.
class GraphRecording : public WorkRecording {
 public:
  explicit GraphRecording(const CudaStream& stream) : stream_(stream) {
    check_internal(under_way == nullptr, "this thread is recording already");
    check_cuda(cudaSetDevice(stream.ordinal()), "cudaSetDevice");
    check_cuda(cudaStreamCreateWithFlags(&capture_, cudaStreamNonBlocking), "cudaStreamCreate");
    // Other threads may allocate meanwhile.
    const cudaError_t error = cudaStreamBeginCapture(capture_, cudaStreamCaptureModeThreadLocal);
    if (error != cudaSuccess) (void)cudaStreamDestroy(capture_);
    check_cuda(error, "cudaStreamBeginCapture");
    under_way = this;
  }
  ~GraphRecording() override {
    under_way = nullptr;
    cudaGraph_t graph = nullptr;
    if (!has_ended_ && cudaStreamEndCapture(capture_, &graph) == cudaSuccess)
      (void)cudaGraphDestroy(graph);
    (void)cudaGetLastError();
    (void)cudaStreamDestroy(capture_);
  }

  std::unique_ptr<RecordedWork> end() override {
    has_ended_ = true;
    cudaGraph_t graph = nullptr;
    check_cuda(cudaStreamEndCapture(capture_, &graph), "cudaStreamEndCapture");
    cudaGraphExec_t executable = nullptr;
    const cudaError_t error = cudaGraphInstantiate(&executable, graph, 0);
    (void)cudaGraphDestroy(graph);
    check_cuda(error, "cudaGraphInstantiate");
    return std::make_unique<RecordedGraph>(stream_, executable);
  }

  const CudaStream& stream() const { return stream_; }
  cudaStream_t capture() const { return capture_; }

 private:
  const CudaStream& stream_;
  cudaStream_t capture_ = nullptr;
  bool has_ended_ = false;
};

}  // namespace

cudaStream_t present_stream(const CudaStream& stream) {
  const bool is_recorded = under_way != nullptr && &under_way->stream() == &stream;
  return is_recorded ? under_way->capture() : stream.handle();
}

void refuse_recording(const char* library) {
  if (under_way != nullptr) throw NotRecordable(concat(library, "'s work may not be recorded"));
}

std::unique_ptr<WorkRecording> start_recording(const CudaStream& stream) {
  return std::make_unique<GraphRecording>(stream);
}

}  // namespace leat::cuda
