// Streams that record their work instead of running it, and graphs that run it again.
#include <algorithm>

#include "tests/support/cuda/stream.h"

namespace cuda_on_host {

struct Capture {
  cudaStream_t origin = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  std::vector<cudaStream_t> streams;  // the origin, and those that wait for its events
  std::vector<Work> works;            // in the order of the calls, which respects all events
  bool is_valid = true;
};

namespace {

std::mutex mutex;  // of all captures
std::vector<std::shared_ptr<Capture>>& open_captures() {
  static auto* const out = new std::vector<std::shared_ptr<Capture>>;
  return *out;
}

}  // namespace

cudaError_t forbid_in_capture(const char* call) {
  const std::lock_guard lock(mutex);
  for (const auto& capture : open_captures()) {
    const bool concerns = capture->mode == cudaStreamCaptureModeGlobal ||
                          (capture->mode == cudaStreamCaptureModeThreadLocal &&
                           capture->thread == std::this_thread::get_id());
    if (!concerns) continue;
    capture->is_valid = false;
    return report(cudaErrorStreamCaptureUnsupported,
                  std::string(call) + " while a stream captures");
  }
  return cudaSuccess;
}

cudaError_t forbid_if_capturing(cudaStream_t stream, const char* call) {
  const std::lock_guard lock(mutex);
  if (stream->captured.capture == nullptr) return cudaSuccess;
  stream->captured.capture->is_valid = false;
  return report(cudaErrorStreamCaptureUnsupported,
                std::string(call) + " of a stream that captures");
}

bool capture_work(cudaStream_t stream, const Work& work) {
  const std::lock_guard lock(mutex);
  if (stream->captured.capture == nullptr) return false;
  stream->captured.capture->works.push_back(work);
  ++stream->captured.recorded;
  return true;
}

}  // namespace cuda_on_host

using namespace cuda_on_host;

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  if (stream == nullptr)
    return report(cudaErrorStreamCaptureUnsupported, "the default stream cannot capture");
  if (const cudaError_t error = sticky_error(); error != cudaSuccess) return report(error);
  const std::lock_guard lock(mutex);
  if (stream->captured.capture != nullptr) return report(cudaErrorInvalidValue, "captures already");
  auto capture = std::make_shared<Capture>();
  capture->origin = stream;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->streams = {stream};
  stream->captured = {capture};
  open_captures().push_back(std::move(capture));
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  const std::lock_guard lock(mutex);
  const std::shared_ptr<Capture> capture = stream->captured.capture;
  if (capture == nullptr) return report(cudaErrorInvalidValue, "the stream does not capture");
  if (capture->origin != stream)
    return report(cudaErrorStreamCaptureUnmatched, "another stream began the capture");
  if (capture->mode != cudaStreamCaptureModeRelaxed &&
      capture->thread != std::this_thread::get_id()) {
    return report(cudaErrorStreamCaptureWrongThread, "another thread began the capture");
  }
  bool all_joined = true;
  for (cudaStream_t each : capture->streams) {
    if (each != stream && each->captured.recorded > each->captured.joined) all_joined = false;
    each->captured = {};
  }
  std::erase(open_captures(), capture);
  if (!capture->is_valid)
    return report(cudaErrorStreamCaptureInvalidated, "a call that a capture forbids came before");
  if (!all_joined)
    return report(cudaErrorStreamCaptureUnjoined, "a stream was forked off and not joined");
  *graph = new CUgraph_st{std::move(capture->works)};
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const std::lock_guard lock(mutex);
  const auto& capture = stream_or_default(stream)->captured.capture;
  *status = capture == nullptr  ? cudaStreamCaptureStatusNone
            : capture->is_valid ? cudaStreamCaptureStatusActive
                                : cudaStreamCaptureStatusInvalidated;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  stream = stream_or_default(stream);
  if (const cudaError_t error = sticky_error(); error != cudaSuccess) return report(error);
  if (event->device != stream->device)
    return report(cudaErrorInvalidResourceHandle, "an event of another device than the stream's");
  const std::lock_guard lock(mutex);
  const std::lock_guard also(event->mutex);
  event->capture = stream->captured.capture;
  event->is_captured = stream->captured.capture != nullptr;
  event->stream = stream;
  event->recorded = stream->captured.recorded;
  if (event->is_captured) return cudaSuccess;
  event->moment = std::make_shared<Moment>();
  stream->push([moment = event->moment] { moment->happen(); });
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  stream = stream_or_default(stream);
  if (const cudaError_t error = sticky_error(); error != cudaSuccess) return report(error);
  const std::lock_guard lock(mutex);
  const std::lock_guard also(event->mutex);
  if (event->is_captured) {
    const std::shared_ptr<Capture> capture = event->capture.lock();
    const auto& own = stream->captured.capture;
    if (capture == nullptr || (own != nullptr && own != capture)) {
      if (own != nullptr) own->is_valid = false;
      return report(cudaErrorStreamCaptureIsolation, "the event is of another capture");
    }
    if (own == nullptr) {
      stream->captured = {capture};
      capture->streams.push_back(stream);
    }
    uint64_t& joined = event->stream->captured.joined;
    joined = std::max(joined, event->recorded);
    return cudaSuccess;
  }
  if (stream->captured.capture != nullptr) {
    stream->captured.capture->is_valid = false;
    return report(cudaErrorStreamCaptureIsolation, "a capture waits for work outside it");
  }
  if (event->moment != nullptr) stream->push([moment = event->moment] { moment->wait(); });
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  if (graph == nullptr) return report(cudaErrorInvalidValue, "no graph");
  ++counts().recorded;
  *executable = new CUgraphExec_st{graph->works};
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  if (executable == nullptr) return report(cudaErrorInvalidResourceHandle);
  ++counts().graphs;
  return enqueue(stream, [works = executable->works] {
    for (const Work& work : works) work();
  });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, void**, size_t* count) {
  *count = graph->works.size();
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  return cudaSuccess;
}
