#include "tests/support/faulty_stream.h"

#include <utility>

namespace leat {

class FaultyStream final : public RpcStream {
 public:
  FaultyStream(std::shared_ptr<RpcStream> inner, Faults& faults)
      : inner_(std::move(inner)), faults_(faults) {}

  void start(Events events) override {
    const auto kept = std::make_shared<Events>(std::move(events));
    inner_->start({.on_message =
                       [this_faults = &faults_, kept](const Bytes& message) {
                         if (this_faults->is_frozen_) return;
                         const auto text = std::make_shared<const std::string>(message.to_string());
                         after_delay(*this_faults,
                                     [kept, text] { kept->on_message(Bytes({*text}, text)); });
                       },
                   .on_end =
                       [this_faults = &faults_, kept](const RpcStatus& status) {
                         after_delay(*this_faults, [kept, status] { kept->on_end(status); });
                       },
                   .on_written = kept->on_written});
  }
  void write(Slices slices) override {
    if (faults_.is_frozen_) return;
    if (faults_.to_drop_ > 0 && faults_.to_drop_-- > 0) return;
    if (faults_.to_damage_ > 0) damage(slices);
    after_delay(faults_, [inner = inner_, slices = std::move(slices)] { inner->write(slices); });
  }
  size_t queued_bytes() const override { return inner_->queued_bytes(); }
  size_t message_bytes() const override { return inner_->message_bytes(); }
  std::optional<uint64_t> place_of(const void* data, size_t bytes) const override {
    return inner_->place_of(data, bytes);
  }
  const char* lent(uint64_t place, size_t bytes) override { return inner_->lent(place, bytes); }
  void close() override {
    after_delay(faults_, [inner = inner_] { inner->close(); });
  }
  void cancel() override { inner_->cancel(); }
  std::string peer() const override { return inner_->peer(); }

 private:
  void damage(Slices& slices) {
    for (ByteSlice& slice : slices) {
      if (slice.size < 4096) continue;
      if (slice.is_lent) {  // in the sender's own memory
        static_cast<char*>(const_cast<void*>(slice.data))[slice.size / 3] ^= 0x10;
        --faults_.to_damage_;
        return;
      }
      std::string bytes(static_cast<const char*>(slice.data), slice.size);
      bytes[bytes.size() / 3] = static_cast<char>(bytes[bytes.size() / 3] ^ 0x10);
      slice = ByteSlice(std::move(bytes));
      --faults_.to_damage_;
      return;
    }
  }
  static void after_delay(Faults& faults, std::function<void()> action) {
    const int64_t ms = faults.delay_ms_;
    if (ms == 0) return action();
    faults.timer_.after(std::chrono::milliseconds(ms), std::move(action));
  }

  std::shared_ptr<RpcStream> inner_;
  Faults& faults_;
};

std::shared_ptr<RpcStream> Faults::wrap(std::shared_ptr<RpcStream> stream) {
  {
    std::lock_guard lock(mutex_);
    streams_.push_back(stream);
  }
  return std::make_shared<FaultyStream>(std::move(stream), *this);
}

void Faults::cut() {
  std::vector<std::weak_ptr<RpcStream>> streams;
  {
    std::lock_guard lock(mutex_);
    streams.swap(streams_);
  }
  for (auto& weak : streams) {
    if (auto stream = weak.lock()) stream->cancel();
  }
}

}  // namespace leat
