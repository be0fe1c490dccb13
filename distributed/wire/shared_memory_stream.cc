#include "distributed/wire/shared_memory_stream.h"

#include <atomic>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>

#include "core/error.h"

namespace leat {
namespace {

// What one write should have: the two processes copy at the same time, and what the one has written
// is still in the cache that both share when the other reads it.
constexpr size_t message_bytes_in_memory = size_t{128} << 10;
// What is read before another link has its turn.
constexpr size_t read_at_once = size_t{4} << 20;
// on_written follows when write() has taken over this much: a caller that limits what it writes at
// once goes on then.
constexpr size_t told_after = size_t{256} << 10;

}  // namespace

class SharedMemoryStream::Core : public Polled, public std::enable_shared_from_this<Core> {
  struct Write {
    Slices slices;
    size_t bytes;
  };
  // What the peer may read until it has popped what was written up to `until`.
  struct Lent {
    uint64_t until;
    size_t bytes;
    std::shared_ptr<const void> owner;
  };

 public:
  explicit Core(std::shared_ptr<RpcStream> network) : network_(std::move(network)) {}

  void start(Events events) {
    events_ = std::move(events);
    const auto self = shared_from_this();
    network_->start({.on_message = [self](Bytes message) { self->came(std::move(message)); },
                     .on_end = [self](const RpcStatus& status) { self->network_ended(status); },
                     .on_written = [self] { self->network_written(); }});
  }

  void switch_to(std::unique_ptr<HostLink> link, std::shared_ptr<HostPoller> poller,
                 Lending lending) {
    {
      std::lock_guard lock(mutex_);
      if (is_network_ended_ || is_closing_) return;
      link_ = std::move(link);
      poller_ = poller;
      if (lending == Lending::allowed) region_ = SharedRegion::process();
      link_->lend(region_);
    }
    try {
      poller->add(shared_from_this());
    } catch (...) {
      std::lock_guard lock(mutex_);
      link_.reset();
      poller_.reset();
      region_ = nullptr;
      throw;
    }
    link_->signal_self();  // the peer may have written before
  }

  bool is_shared() const {
    std::lock_guard lock(mutex_);
    return link_ != nullptr;
  }

  void write(Slices slices) {
    std::lock_guard lock(mutex_);
    if (link_ == nullptr) return network_->write(std::move(slices));
    if (is_closing_ || is_cancelled_ || is_network_ended_) return;
    const size_t bytes = bytes_of(slices);
    queued_bytes_ += bytes;
    queue_.push_back({std::move(slices), bytes});
    if (queue_.size() > 1) return;
    try {
      if (!flush()) return;
      taken_ += bytes;
      if (taken_ < told_after || owes_written_) return;
      owes_written_ = true;
      taken_ = 0;
      link_->signal_self();
    } catch (const Error& error) {
      damage_ = error.status();
      link_->signal_self();  // the caller may hold locks that on_end needs
    }
  }

  size_t queued_bytes() {
    std::lock_guard lock(mutex_);
    if (link_ == nullptr) return network_->queued_bytes();
    try {
      take_back();
    } catch (const Error& error) {
      damage_ = error.status();  // as in write()
      link_->signal_self();
    }
    return queued_bytes_ + lent_bytes_;
  }

  std::optional<uint64_t> place_of(const void* data, size_t bytes) const {
    std::lock_guard lock(mutex_);
    if (region_ == nullptr || !link_->writer().may_lend()) return {};
    return region_->place_of(data, bytes);
  }

  const char* lent(uint64_t place, size_t bytes) {
    borrowed_ += bytes;
    return link_ != nullptr ? link_->lent(place, bytes) : nullptr;
  }

  void close() {
    {
      std::lock_guard lock(mutex_);
      is_closing_ = true;
      if (!queue_.empty() || !lent_.empty()) return;  // serve() closes it
    }
    network_->close();
  }

  // `reason`: of our own, if there is one.
  void cancel(const Status& reason) {
    std::deque<Write> dropped;  // its tensors go outside the lock
    {
      std::lock_guard lock(mutex_);
      if (is_cancelled_ || is_network_ended_) return;
      is_cancelled_ = true;
      reason_ = reason;
      dropped.swap(queue_);
      queued_bytes_ = 0;
    }
    network_->cancel();
  }

  // The handle is gone.
  void abandon() {
    {
      std::lock_guard lock(mutex_);
      if (is_closing_) return;
    }
    cancel({});
  }

  RpcStream& network() const { return *network_; }
  size_t message_bytes() const {
    return is_shared() ? message_bytes_in_memory : network_->message_bytes();
  }

  // ---- On the poller's thread ----

  int descriptor() const override { return link_->signals(); }

  // What was cancelled waits for the end of the network's stream, which signals.
  bool sleep() override { return is_cancelled_ || link_->reader().sleep(); }

  Served serve() override {
    bool has_ended;  // before the ring is read: what it has then is all
    Status damage;
    {
      std::lock_guard lock(mutex_);
      has_ended = is_network_ended_;
      damage = damage_;
    }
    if (!damage.is_ok()) cancel(damage);
    bool is_more = false, did_something = false;
    try {
      link_->receive_region();
      is_more = read_messages(did_something);
      // What it has lent is its own again.
      if (borrowed_.exchange(0) > 0) link_->signal_peer();
      did_something |= write_queued();
    } catch (const std::exception&) {
      cancel(status_of_current_exception());
    }
    if (has_ended && !is_more) finish();
    return is_more ? Served::more : did_something ? Served::something : Served::nothing;
  }

 private:
  // On a thread of the network: before the switch, and during it.
  void came(Bytes message) {
    std::lock_guard lock(receiving_);
    if (events_.on_message) events_.on_message(std::move(message));
  }

  void network_written() {
    std::function<void()> on_written;
    {
      std::lock_guard lock(mutex_);
      if (link_ == nullptr) on_written = events_.on_written;
    }
    if (on_written) on_written();
  }

  void network_ended(const RpcStatus& status) {
    std::deque<Write> dropped;  // as above
    {
      std::lock_guard lock(mutex_);
      is_network_ended_ = true;
      network_status_ = status;
      dropped.swap(queue_);
      queued_bytes_ = 0;
      if (link_ != nullptr) return link_->signal_self();  // first what is in the ring
    }
    end();
  }

  // True if there may be more. Sets `has_read` if there was one.
  bool read_messages(bool& has_read) {
    size_t read = 0;
    while (!is_cancelled_) {
      const std::optional<std::string_view> message = link_->reader().next();
      if (!message) return false;
      read += message->size();
      has_read = true;
      {
        std::lock_guard lock(receiving_);
        if (events_.on_message) events_.on_message(Bytes({*message}, nullptr));
      }
      link_->reader().pop();
      if (link_->reader().wakes_writer()) link_->signal_peer();
      if (read + borrowed_ >= read_at_once) return true;
    }
    return false;
  }

  // True if something was written, or what was lent is back.
  bool write_queued() {
    bool closes = false;
    {
      std::lock_guard lock(mutex_);
      const bool is_back = take_back();
      const bool is_taken = !queue_.empty() && flush();
      if (!std::exchange(owes_written_, false) && !is_taken && !is_back) return false;
      closes = (is_taken || is_back) && queue_.empty() && lent_.empty() && is_closing_;
    }
    if (closes) network_->close();
    if (events_.on_written) events_.on_written();
    return true;
  }

  // With mutex_ held. True if the ring has taken something.
  bool flush() {
    bool is_taken = false;
    while (!queue_.empty() && link_->writer().write(queue_.front().slices, queue_.front().bytes)) {
      for (ByteSlice& slice : queue_.front().slices) {
        if (!slice.is_lent) continue;
        lent_.push_back({link_->writer().written(), slice.size, std::move(slice.owner)});
        lent_bytes_ += slice.size;
      }
      queued_bytes_ -= queue_.front().bytes;
      queue_.pop_front();
      is_taken = true;
    }
    if (is_taken && link_->writer().wakes_reader()) link_->signal_peer();
    if (is_taken && lent_bytes_ >= told_after) wait_for_half();
    return is_taken;
  }

  // With mutex_ held. on_written follows when half of what is lent is back.
  void wait_for_half() {
    const uint64_t half = lent_[lent_.size() / 2].until;
    link_->writer().wait_for(half);
    if (link_->writer().popped() >= half) link_->signal_self();
  }

  // With mutex_ held. Releases what the peer has read; true if that was something. Lent memory is
  // of the region, so that its release takes no lock but that of BlockMemory.
  bool take_back() {
    if (lent_.empty()) return false;
    const uint64_t popped = link_->writer().popped();
    const size_t before = lent_.size();
    while (!lent_.empty() && lent_.front().until <= popped) {
      lent_bytes_ -= lent_.front().bytes;
      lent_.pop_front();
    }
    return lent_.size() < before;
  }

  void finish() {
    poller_->remove(*this);
    end();
  }

  // Once, last.
  void end() {
    RpcStatus status;
    Events events;
    {
      std::scoped_lock lock(receiving_, mutex_);
      lent_.clear();
      status = network_status_;
      if (!reason_.is_ok()) status = {static_cast<int>(reason_.code), reason_.message};
      events = std::exchange(events_, {});
    }
    if (events.on_end) events.on_end(status);
  }

  const std::shared_ptr<RpcStream> network_;
  Events events_;
  std::mutex receiving_;  // around on_message: the network's last may still run at the switch
  mutable std::mutex mutex_;
  std::unique_ptr<HostLink> link_;  // set once
  std::shared_ptr<HostPoller> poller_;
  const SharedRegion* region_ = nullptr;  // if we lend
  std::deque<Lent> lent_;
  size_t lent_bytes_ = 0;
  std::atomic<size_t> borrowed_{0};  // bytes read in the peer's region since it was last signalled
  std::deque<Write> queue_;          // for which the ring has had no room
  size_t queued_bytes_ = 0;
  size_t taken_ = 0;                       // by write(), since on_written was promised
  bool owes_written_ = false;              // it was promised, and the poller has a signal
  bool is_closing_ = false;                // close() was called
  std::atomic<bool> is_cancelled_{false};  // cancel() was called, or the ring is damaged
  bool is_network_ended_ = false;
  RpcStatus network_status_;  // once is_network_ended_
  Status damage_;             // what write() has seen of the ring
  Status reason_;             // why we cancelled it
};

SharedMemoryStream::SharedMemoryStream(std::shared_ptr<RpcStream> network)
    : core_(std::make_shared<Core>(std::move(network))) {}
SharedMemoryStream::~SharedMemoryStream() { core_->abandon(); }
void SharedMemoryStream::switch_to(std::unique_ptr<HostLink> link,
                                   std::shared_ptr<HostPoller> poller, Lending lending) {
  core_->switch_to(std::move(link), std::move(poller), lending);
}
bool SharedMemoryStream::is_shared() const { return core_->is_shared(); }
void SharedMemoryStream::start(Events events) { core_->start(std::move(events)); }
void SharedMemoryStream::write(Slices slices) { core_->write(std::move(slices)); }
size_t SharedMemoryStream::queued_bytes() const { return core_->queued_bytes(); }
std::optional<uint64_t> SharedMemoryStream::place_of(const void* data, size_t bytes) const {
  return core_->place_of(data, bytes);
}
const char* SharedMemoryStream::lent(uint64_t place, size_t bytes) {
  return core_->lent(place, bytes);
}
void SharedMemoryStream::close() { core_->close(); }
void SharedMemoryStream::cancel() { core_->cancel({}); }
std::string SharedMemoryStream::peer() const { return core_->network().peer(); }
std::vector<std::string> SharedMemoryStream::peer_names() const {
  return core_->network().peer_names();
}
size_t SharedMemoryStream::message_bytes() const { return core_->message_bytes(); }

}  // namespace leat
