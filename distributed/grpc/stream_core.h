// What both ends of a stream share: the queue of writes, one of which is under way at a time, and
// the order of events. Internal to this folder.
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/byte_buffer.h>

#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "distributed/grpc/rpc.h"

namespace leat::transport {

// The message size that takes at most half a second, estimated from how long large messages took.
// It begins small, and at most doubles with every 4 MB: the buffers of sockets may hold that much,
// and take it at once.
class MessageSize {
 public:
  size_t bytes() const { return bytes_; }
  void written(size_t bytes, std::chrono::nanoseconds took);

 private:
  size_t bytes_ = size_t{64} << 10;
  size_t measured_ = 0;
  std::chrono::nanoseconds took_{0};
};

// A reactor derives from this and forwards gRPC's notifications. It keeps itself alive (self_)
// until gRPC is done.
class StreamCore {
 public:
  virtual ~StreamCore() = default;

  void start(RpcStream::Events events);
  void write(Slices slices);
  size_t queued_bytes() const;
  size_t message_bytes() const;
  void close();
  void cancel();
  // The handle is gone.
  void abandon();

 protected:
  // From the reactor. done() is the last; after it the core may be destroyed.
  void read_done(bool ok);
  void write_done(bool ok);
  void done(RpcStatus status);

  // To the reactor.
  virtual void begin_read(grpc::ByteBuffer* into) = 0;
  virtual void begin_write(const grpc::ByteBuffer* from) = 0;
  // No write follows. True: write_done() will be called for it.
  virtual bool begin_half_close() = 0;
  // No read or write is or will be under way, except a read at a server; called once.
  virtual void finish() = 0;
  virtual void try_cancel() = 0;

 private:
  struct Write {
    std::vector<grpc::Slice> slices;
    size_t bytes = 0;
  };

  void pump();
  void begin_reading();

  mutable std::mutex mutex_;
  RpcStream::Events events_;
  std::deque<Write> queue_;
  size_t queued_bytes_ = 0;
  grpc::ByteBuffer outgoing_;  // while writing_
  size_t outgoing_bytes_ = 0;
  std::chrono::steady_clock::time_point outgoing_since_;
  MessageSize message_size_;
  grpc::ByteBuffer incoming_;
  bool has_events_ = false;  // start() was called
  bool is_reading_ = false;  // the first read has begun
  bool is_writing_ = false;
  bool is_closing_ = false;  // close() was called
  bool is_half_closed_ = false;
  bool is_broken_ = false;     // writes fail
  bool is_cancelled_ = false;  // cancel() was called
  bool has_read_all_ = false;  // the peer will send no more
  bool is_finished_ = false;   // finish() was called
  bool is_done_ = false;
  RpcStatus status_;  // once is_done_
};

// What users hold.
class StreamHandle : public RpcStream {
 public:
  StreamHandle(std::shared_ptr<StreamCore> core, std::string peer,
               std::vector<std::string> peer_names = {})
      : core_(std::move(core)), peer_(std::move(peer)), peer_names_(std::move(peer_names)) {}
  ~StreamHandle() override { core_->abandon(); }
  void start(Events events) override { core_->start(std::move(events)); }
  void write(Slices slices) override { core_->write(std::move(slices)); }
  size_t queued_bytes() const override { return core_->queued_bytes(); }
  size_t message_bytes() const override { return core_->message_bytes(); }
  void close() override { core_->close(); }
  void cancel() override { core_->cancel(); }
  std::string peer() const override { return peer_; }
  std::vector<std::string> peer_names() const override { return peer_names_; }

 private:
  std::shared_ptr<StreamCore> core_;
  std::string peer_;
  std::vector<std::string> peer_names_;
};

}  // namespace leat::transport
