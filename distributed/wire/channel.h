// The data plane between two tasks: tensors, each for one edge of one step, over one stream.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/tensor.h"
#include "distributed/grpc/rpc.h"
#include "distributed/wire/channel_calls.h"
#include "distributed/wire/frame.h"
#include "distributed/wire/incoming_tensor.h"
#include "distributed/wire/known_lists.h"

namespace leat {

// The state of a step at the receiver. It decides what happens to a tensor that arrives for it.
enum class StepPhase : uint8_t {
  early,  // has not begun here: its tensors are kept, and count against the sender's window
  running,
  over,  // its tensors are dropped
};

struct ChannelEvents {
  // Called on transport threads, never two at a time for one channel, except that on_abort may also
  // come from the thread of a failed device copy. None after the channel is destroyed.
  std::function<void(int64_t step, int64_t edge, Tensor value, bool is_dead)> on_tensor;
  std::function<void(int64_t step, const Status& status)> on_abort;
  // The first piece of a tensor has arrived for a step that has not begun here. Its share of the
  // window is held until settle(). May be empty.
  std::function<void(int64_t step)> on_early = {};
  // hello, welcome, refusal, goodbye.
  std::function<void(FrameKind kind, const FrameHeader& header, std::string payload)> on_control;
  // Once, last: the stream has ended or was cut. UNAVAILABLE or DATA_LOSS, with the reason; OK if
  // the peer closed.
  std::function<void(const Status& status, RpcCause cause)> on_end;
  // From any thread.
  std::function<StepPhase(int64_t step)> phase_of;
  // Where a tensor of a running step is received: a tensor of this dtype and shape, or an invalid
  // one if anywhere. On a transport thread; may be empty.
  std::function<Tensor(int64_t step, int64_t edge, DType dtype, const Shape& shape)> room_for = {};
  // Names an edge in messages: "w:0 (of node w) from /job:ps/task:0 to /job:worker/task:1". May be
  // empty.
  std::function<std::string(int64_t step, int64_t edge)> describe = {};
  // What the peer calls; on its transport thread, as on_tensor.
  CallHandlers calls = {};
};

struct ChannelOptions {
  uint64_t incarnation = 0;              // of this task, on every frame
  uint64_t window = uint64_t{64} << 20;  // bytes that the peer may have under way to us
  size_t chunk = size_t{512} << 10;      // larger tensors travel in pieces of at most this size
  // handed to the stream ahead of its writes; at least 256 KB (shared_memory_stream.cc)
  size_t queue = size_t{4} << 20;
  uint64_t largest_tensor = 0;  // bytes that a peer may announce; 0: host_memory_limit()
  // Bytes of lists that are kept for each direction, so that a repeat sends a number; 0: none
  uint64_t known_lists = uint64_t{4} << 20;
};

// One end. Thread-safe.
//   Cost per tensor: a 64-byte header per chunk. The sender reads the tensor's own memory; the
//   receiver copies once, from the socket's slices into the tensor that it hands on, and computes
//   the checksum meanwhile. A wrong checksum or a malformed frame ends the stream on both sides,
//   with the reason: DATA_LOSS. send() returns at once; the tensor's buffer is pinned until sent.
//   Small tensors overtake large ones that wait, and among large ones of a step that wait, the one
//   with the lowest edge goes first, between two chunks: edges that wait for equally many others
//   are numbered in the order of the graph. Nothing depends on the order. A list of
//   128 bytes to 256 KB of int32 or int64, such as ids of rows, that has been sent before goes as a
//   header alone (known_lists.h): 64 bytes and its extents; its receiver keeps a copy, and asks for
//   the list if it does not have it. Back-pressure: at most `window` bytes are under way that the
//   receiver has not yet given to a step. It returns bytes as it copies them; for a step that has
//   not begun there, when the step begins or the receiver stops waiting for it. A tensor that it
//   cannot take (too large, out of memory) aborts its step on both ends.
class Channel : public std::enable_shared_from_this<Channel> {
 public:
  // `made`, if given, is called with the channel before its first event.
  static std::shared_ptr<Channel> create(
      std::shared_ptr<RpcStream> stream, ChannelOptions options, ChannelEvents events,
      const std::function<void(const std::shared_ptr<Channel>&)>& made = {});
  ~Channel();
  Channel(const Channel&) = delete;

  // A value without dtype is a control edge. A tensor in device memory is copied to the host first.
  void send(int64_t step, int64_t edge, Tensor value, bool is_dead);
  // Calls the peer (ChannelCalls::call), ahead of the tensors that wait. False, and `done` is not
  // called, if it cannot go this way now: the channel is not admitted or has ended, too much is
  // queued, or the request is too large.
  bool call(const std::string& method, const Slices& request, const RpcCallOptions& options,
            ChannelCalls::Done done) {
    return calls_->call(method, request, options, std::move(done));
  }
  // Drops values still to be sent for the step, and notifies the peer.
  void abort(int64_t step, const Status& status);
  // The step has begun here, or is over: its held share of the window goes back.
  void settle(int64_t step);

  // Frames that need no credit.
  void send_control(FrameKind kind, std::string_view payload);
  void heartbeat();
  // The peer's hello has arrived: its incarnation, and the bytes that it lets us have under way.
  void admit(uint64_t peer_incarnation, uint64_t window);

  // Ends the stream after the queued data.
  void close();
  // Ends it now; on_end gets `reason`.
  void cut(const Status& reason);

  std::chrono::steady_clock::time_point last_heard() const;
  // The same, but later if silence was forgiven since.
  std::chrono::steady_clock::time_point silent_since() const;
  void forgive_silence();
  bool is_ended() const;  // on_end has been called, or is being called
  std::string peer() const { return stream_->peer(); }
  uint64_t queued_bytes() const;  // waiting here, not yet handed to the stream
  uint64_t received_bytes() const { return received_; }
  // Of tensors, with their headers, as handed to the stream.
  uint64_t sent_bytes() const { return sent_; }

 private:
  struct Outgoing {
    FrameHeader header;
    Shape shape;
    const char* data = nullptr;
    std::shared_ptr<const void> owner;
    bool is_asked = false;  // the peer has forgotten it
  };

  Channel(std::shared_ptr<RpcStream> stream, ChannelOptions options, ChannelEvents events);
  void listen();
  // With mutex_ held.
  void pump();
  // Turns the frame of a list that the peer has into its number, or gives a list its number.
  void use_known_lists(FrameHeader& header, Outgoing& outgoing);
  // Returns the frame's bytes.
  size_t push_frame(FrameHeader header, const Shape& shape, const char* data,
                    const std::shared_ptr<const void>& owner, Slices& out);
  void push_now(FrameHeader header, std::string_view payload);  // cut to less than 2 KB
  bool send_call(const FrameHeader& header, const Slices& payload);
  // On the stream's thread.
  void receive(const Bytes& message);
  void receive_frame(FrameReader& reader);
  void complain(const Status& reason);
  void complaint_came(const std::string& text);
  void receive_tensor(FrameReader& reader, const FrameHeader& header);
  void keep_list(const Tensor& value);
  static void check_list(const FrameHeader& header, const Shape& shape);
  static uint64_t bytes_of_list(const FrameHeader& header, const Shape& shape) {
    return static_cast<uint64_t>(shape.elements()) * dtype_size(header.dtype);
  }
  void ask(const FrameHeader& known, const Shape& shape);
  void asked(const FrameHeader& header, const Shape& shape);
  // False if there is no memory for `action`: the frame's step has then been refused.
  template <class Action>
  bool fits(const FrameHeader& header, Action&& action);
  static std::string read_text(FrameReader& reader, const FrameHeader& header);
  std::string describe(const FrameHeader& header) const;
  void forget_ended_steps();
  void ended(const RpcStatus& status);
  // On any thread.
  void refuse(int64_t step, const Status& status);
  void give_back(uint64_t bytes);

  const std::shared_ptr<RpcStream> stream_;
  const ChannelOptions options_;
  const ChannelEvents events_;
  std::shared_ptr<ChannelCalls> calls_;

  mutable std::mutex mutex_;  // of sending
  uint32_t sequence_ = 0;
  size_t chunk_;
  uint64_t credit_ = 0;  // bytes that the peer lets us have under way
  std::deque<Outgoing> small_, large_;
  uint64_t queued_ = 0;
  KnownLists sent_lists_;
  Status cut_;              // the reason, if either end ends the stream for one
  bool is_broken_ = false;  // incoming data is no longer trusted
  bool is_ended_ = false;
  std::atomic<uint64_t> sent_{0};

  // Of receiving. Only the stream's callbacks touch it, except for members that the mutex guards.
  uint32_t expected_ = 0;
  std::atomic<uint64_t> peer_incarnation_{0};
  std::atomic<uint64_t> received_{0};
  std::atomic<int64_t> forgiven_{0};
  std::atomic<int64_t> last_heard_;  // steady clock, ns
  // Tensors with missing pieces, by step and edge.
  std::map<std::pair<int64_t, int64_t>, IncomingTensor> incoming_;
  KnownLists received_lists_;
  std::mutex credit_mutex_;
  uint64_t to_give_back_ = 0;
  std::map<int64_t, uint64_t> held_;  // bytes of steps that have not begun, by step
};

}  // namespace leat
