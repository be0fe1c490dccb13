#include "distributed/wire/channel.h"
#include "core/memory/pinned_memory.h"

#include <algorithm>
#include <iterator>
#include <new>
#include <vector>

#include "core/crc32c.h"
#include "core/device.h"
#include "core/memory/memory_limit.h"

namespace leat {
namespace {

constexpr uint64_t least_cost = sizeof(FrameHeader);  // even an empty tensor costs something
constexpr size_t copied_below = 2048;  // a payload that is cheaper to copy than to pin
// Smaller tensors go through the ring: the signal that a lent one is read costs more.
constexpr uint64_t lent_from = uint64_t{128} << 10;

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

uint64_t cost_of(uint64_t payload) { return std::max(payload, least_cost); }

}  // namespace

std::shared_ptr<Channel> Channel::create(
    std::shared_ptr<RpcStream> stream, ChannelOptions options, ChannelEvents events,
    const std::function<void(const std::shared_ptr<Channel>&)>& made) {
  if (options.largest_tensor == 0) options.largest_tensor = host_memory_limit();
  std::shared_ptr<Channel> channel(new Channel(std::move(stream), options, std::move(events)));
  if (made) made(channel);
  channel->listen();
  return channel;
}

Channel::Channel(std::shared_ptr<RpcStream> stream, ChannelOptions options, ChannelEvents events)
    : stream_(std::move(stream)),
      options_(options),
      events_(std::move(events)),
      chunk_(options.chunk),
      sent_lists_(options.known_lists),
      last_heard_(now_ns()),
      received_lists_(options.known_lists) {}

// The stream's last handle goes with it.
Channel::~Channel() {
  if (calls_)
    calls_->ended(
        {static_cast<int>(Code::unavailable), "the connection was closed", RpcCause::lost});
}

void Channel::listen() {
  const std::weak_ptr<Channel> weak = weak_from_this();
  calls_ = std::make_shared<ChannelCalls>(
      events_.calls, stream_->peer(), [weak](const FrameHeader& header, const Slices& payload) {
        const auto self = weak.lock();
        return self != nullptr && self->send_call(header, payload);
      });
  stream_->start({.on_message =
                      [weak](const Bytes& message) {
                        if (auto self = weak.lock()) self->receive(message);
                      },
                  .on_end =
                      [weak](const RpcStatus& status) {
                        if (auto self = weak.lock()) self->ended(status);
                      },
                  .on_written =
                      [weak] {
                        if (auto self = weak.lock()) {
                          std::lock_guard lock(self->mutex_);
                          self->pump();
                        }
                      }});
}

// ---- Sending ----

void Channel::send(int64_t step, int64_t edge, Tensor value, bool is_dead) {
  if (value.is_valid() && value.device() != nullptr && value.device()->type() != DeviceType::cpu &&
      value.bytes() > 0) {
    const auto host = std::make_shared<Tensor>(value.dtype(), value.shape(),
                                               allocate_for_copy(*value.device(), value.bytes()));
    value.device()->copy_to_host(
        value.raw(), host->raw(), value.bytes(),
        [self = shared_from_this(), step, edge, value, host, is_dead](const Status& status) {
          if (status.is_ok()) return self->send(step, edge, *host, is_dead);
          self->refuse(step, status);
        });
    return;
  }
  Outgoing outgoing;
  FrameHeader& header = outgoing.header;
  header.kind = FrameKind::tensor;
  header.step = step;
  header.edge = edge;
  header.flags = is_dead ? FrameHeader::dead : 0;
  if (value.is_valid()) {
    header.dtype = value.dtype();
    header.rank = static_cast<uint8_t>(value.shape().rank());
    outgoing.shape = value.shape();
    if (is_dead || value.elements() == 0) {
      // nothing but the header
    } else if (value.dtype() == DType::string) {
      auto bytes = std::make_shared<const std::string>(encode_strings(value));
      header.total = bytes->size();
      outgoing.data = bytes->data();
      outgoing.owner = std::move(bytes);
    } else {
      header.total = value.bytes();
      outgoing.data = static_cast<const char*>(value.raw());
      outgoing.owner = value.buffer();
    }
  }
  std::lock_guard lock(mutex_);
  if (is_ended_) return;
  queued_ += header.total;
  if (header.total <= chunk_) {
    small_.push_back(std::move(outgoing));
  } else {
    auto place = large_.end();
    while (place != large_.begin() && std::prev(place)->header.step == step &&
           std::prev(place)->header.edge > edge)
      --place;
    large_.insert(place, std::move(outgoing));
  }
  pump();
}

void Channel::pump() {
  if (is_broken_) return;
  const size_t ahead = stream_->queued_bytes();
  // On a slow link the peer hears of us with every piece, so pieces are small.
  const size_t message_bytes = stream_->message_bytes();
  const size_t chunk = std::min(chunk_, message_bytes);
  size_t room = options_.queue - std::min<size_t>(options_.queue, ahead);
  Slices message;
  size_t size = 0;
  while (room > 0) {
    std::deque<Outgoing>& from = small_.empty() ? large_ : small_;
    if (from.empty()) break;
    Outgoing& first = from.front();
    FrameHeader header = first.header;
    const uint64_t bytes = std::min<uint64_t>(header.total - header.offset, chunk);
    header.payload = static_cast<uint32_t>(bytes);
    const uint64_t cost = cost_of(bytes);
    if (credit_ < cost) break;
    credit_ -= cost;
    queued_ -= bytes;
    first.header.offset += bytes;
    use_known_lists(header, first);
    sent_ += push_frame(header, first.shape, first.data + header.offset, first.owner, message);
    if (first.header.offset == first.header.total) from.pop_front();
    room -= std::min<size_t>(room, cost);
    size += cost;
    if (size >= message_bytes) {
      stream_->write(std::move(message));
      message.clear();
      size = 0;
    }
  }
  if (!message.empty()) stream_->write(std::move(message));
}

size_t Channel::push_frame(FrameHeader header, const Shape& shape, const char* data,
                           const std::shared_ptr<const void>& owner, Slices& out) {
  header.sequence = sequence_++;
  header.incarnation = options_.incarnation;
  if (header.kind == FrameKind::tensor && header.total >= lent_from && header.payload > 0 &&
      (header.flags & FrameHeader::remembered) == 0) {
    if (const std::optional<uint64_t> place = stream_->place_of(data, header.payload)) {
      header.flags |= FrameHeader::lent;
      header.payload_checksum = crc32c(data, header.payload, crc32c(&*place, sizeof(uint64_t)));
      std::string bytes = encode(header, shape, sizeof(uint64_t));
      bytes.append(reinterpret_cast<const char*>(&*place), sizeof(uint64_t));
      const size_t size = bytes.size() + header.payload;
      out.emplace_back(std::move(bytes));
      out.emplace_back(data, header.payload, owner).is_lent = true;
      return size;
    }
  }
  if ((header.flags & FrameHeader::remembered) == 0)  // use_known_lists() has summed it
    header.payload_checksum = crc32c(data, header.payload);
  const bool is_copied = header.payload < copied_below;
  std::string bytes = encode(header, shape, is_copied ? header.payload : 0);
  if (is_copied && header.payload > 0) bytes.append(data, header.payload);
  const size_t size = bytes.size() + (is_copied ? 0 : header.payload);
  out.emplace_back(std::move(bytes));
  if (!is_copied) out.emplace_back(data, header.payload, owner);
  return size;
}

void Channel::push_now(FrameHeader header, std::string_view payload) {
  payload = payload.substr(0, copied_below - 1);
  Slices message;
  header.payload = static_cast<uint32_t>(payload.size());
  push_frame(header, {}, payload.data(), nullptr, message);
  stream_->write(std::move(message));
}

bool Channel::send_call(const FrameHeader& header, const Slices& payload) {
  const auto bytes = std::make_shared<std::string>();
  bytes->reserve(bytes_of(payload));
  for (const ByteSlice& slice : payload)
    bytes->append(static_cast<const char*>(slice.data), slice.size);
  FrameHeader frame = header;
  frame.payload = static_cast<uint32_t>(bytes->size());
  std::lock_guard lock(mutex_);
  if (is_ended_ || is_broken_ || peer_incarnation_ == 0) return false;
  // An answer finds room: the caller has waited for it.
  if (frame.kind == FrameKind::call && stream_->queued_bytes() > options_.queue) return false;
  Slices message;
  push_frame(frame, {}, bytes->data(), bytes, message);
  stream_->write(std::move(message));
  return true;
}

void Channel::send_control(FrameKind kind, std::string_view payload) {
  std::lock_guard lock(mutex_);
  push_now({.kind = kind}, payload);
}

void Channel::heartbeat() {
  std::lock_guard lock(mutex_);
  push_now({.kind = FrameKind::heartbeat}, {});
}

void Channel::abort(int64_t step, const Status& status) {
  std::vector<Outgoing> dropped;  // their buffers go outside the lock
  std::lock_guard lock(mutex_);
  if (is_ended_) return;
  for (auto* queue : {&small_, &large_}) {
    std::erase_if(*queue, [&](Outgoing& outgoing) {
      if (outgoing.header.step != step) return false;
      queued_ -= outgoing.header.total - outgoing.header.offset;
      dropped.push_back(std::move(outgoing));
      return true;
    });
  }
  FrameHeader header{.kind = FrameKind::abort,
                     .flags = status.derived ? FrameHeader::derived : uint8_t{0},
                     .step = step,
                     .edge = static_cast<int64_t>(status.code)};
  if (!status.node.empty()) {
    const size_t at = status.message.find(status.node);
    if (at != std::string::npos) header.offset = at, header.total = status.node.size();
  }
  push_now(header, status.message);
}

void Channel::admit(uint64_t peer_incarnation, uint64_t window) {
  peer_incarnation_ = peer_incarnation;
  std::lock_guard lock(mutex_);
  // The receiver gives back an eighth of its window at a time: a chunk must fit into what is left.
  chunk_ = std::clamp<size_t>(window / 4, 1, options_.chunk);
  credit_ += window;
  pump();
}

void Channel::close() {
  {
    std::lock_guard lock(mutex_);
    push_now({.kind = FrameKind::goodbye}, {});
  }
  stream_->close();
}

void Channel::cut(const Status& reason) {
  {
    std::lock_guard lock(mutex_);
    if (cut_.is_ok()) cut_ = reason;
  }
  stream_->cancel();
}

uint64_t Channel::queued_bytes() const {
  std::lock_guard lock(mutex_);
  return queued_;
}

std::chrono::steady_clock::time_point Channel::last_heard() const {
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(last_heard_.load()));
}

std::chrono::steady_clock::time_point Channel::silent_since() const {
  return std::chrono::steady_clock::time_point(
      std::chrono::nanoseconds(std::max(last_heard_.load(), forgiven_.load())));
}

void Channel::forgive_silence() { forgiven_ = now_ns(); }

bool Channel::is_ended() const {
  std::lock_guard lock(mutex_);
  return is_ended_;
}

// ---- Receiving ----

void Channel::receive(const Bytes& message) {
  if (is_broken_) return;  // and the silence that membership sees ends what the peer does not
  last_heard_ = now_ns();
  received_ += message.size();
  try {
    FrameReader reader(message, stream_.get());
    while (reader.left() > 0 && !is_broken_) receive_frame(reader);
  } catch (const std::exception&) {
    complain(status_of_current_exception());
  }
}

// The peer shall know why before the stream ends: its steps end, too.
void Channel::complain(const Status& reason) {
  {
    std::lock_guard lock(mutex_);
    if (is_broken_) return;
    is_broken_ = true;
    if (cut_.is_ok()) cut_ = reason;
    push_now({.kind = FrameKind::complaint}, reason.message);
  }
  stream_->close();
}

void Channel::complaint_came(const std::string& text) {
  {
    std::lock_guard lock(mutex_);
    is_broken_ = true;
    if (cut_.is_ok()) cut_ = {Code::data_loss, text};
  }
  stream_->close();
}

void Channel::receive_frame(FrameReader& reader) {
  const FrameHeader header = reader.header();
  if (header.kind == FrameKind::complaint) return complaint_came(read_text(reader, header));
  if (header.sequence != expected_) {
    fail(Code::data_loss, "frame ", header.sequence, " arrived where ", expected_, " was expected");
  }
  ++expected_;
  const uint64_t peer = peer_incarnation_;
  if (header.is_greeting() != (peer == 0)) {
    if (header.kind == FrameKind::goodbye) return;  // after a refusal
    fail(Code::data_loss, "a frame of kind ", static_cast<int>(header.kind),
         header.is_greeting() ? " after the greeting" : " before the greeting");
  }
  if (peer != 0 && header.incarnation != peer) {
    fail(Code::aborted, "a frame of incarnation ", header.incarnation, ", but the peer is ", peer);
  }
  switch (header.kind) {
    case FrameKind::tensor:
      return receive_tensor(reader, header);
    case FrameKind::credit: {
      std::lock_guard lock(mutex_);
      credit_ += header.total;
      return pump();
    }
    case FrameKind::ask: {
      if (header.payload != 0) fail(Code::data_loss, "a frame that asks for a list has a payload");
      return asked(header, reader.shape());
    }
    case FrameKind::heartbeat:
      return forget_ended_steps();
    case FrameKind::call:
    case FrameKind::answer: {
      if (header.payload > ChannelCalls::largest)
        fail(Code::data_loss, "a call or an answer of ", header.payload, " bytes in one frame");
      const auto text = std::make_shared<const std::string>(read_text(reader, header));
      return calls_->came(header, Bytes({*text}, text));
    }
    case FrameKind::abort: {
      Status status{static_cast<Code>(header.edge), read_text(reader, header),
                    (header.flags & FrameHeader::derived) != 0};
      if (status.is_ok()) status.code = Code::aborted;
      const uint64_t size = status.message.size();
      if (header.offset <= size && header.total <= size - header.offset)
        status.node = status.message.substr(header.offset, header.total);
      std::erase_if(incoming_, [&](const auto& entry) { return entry.first.first == header.step; });
      if (events_.on_abort) events_.on_abort(header.step, status);
      return;
    }
    default:
      if (events_.on_control) events_.on_control(header.kind, header, read_text(reader, header));
  }
}

std::string Channel::read_text(FrameReader& reader, const FrameHeader& header) {
  std::string text(header.payload, '\0');
  const bool has_checksum = !header.is_greeting() || header.checksum != 0;
  if (!reader.read_payload(header, text.data()) && has_checksum) {
    fail(Code::data_loss, "the checksum of a message does not match the received bytes");
  }
  return text;
}

std::string Channel::describe(const FrameHeader& header) const {
  return events_.describe ? events_.describe(header.step, header.edge)
                          : concat("edge ", header.edge);
}

// Pieces of tensors whose step has ended here without the sender knowing yet.
void Channel::forget_ended_steps() {
  std::erase_if(incoming_, [&](const auto& entry) {
    return events_.phase_of(entry.first.first) == StepPhase::over;
  });
}

template <class Action>
bool Channel::fits(const FrameHeader& header, Action&& action) {
  Status status;
  try {
    action();
    return true;
  } catch (const Error& error) {
    if (error.code() != Code::resource_exhausted) throw;
    status = error.status();
  } catch (const std::bad_alloc&) {
    status = {Code::resource_exhausted, concat("there is no memory for ", describe(header),
                                               ", a tensor of ", header.total, " bytes")};
  }
  refuse(header.step, status);
  return false;
}

void Channel::receive_tensor(FrameReader& reader, const FrameHeader& header) {
  const bool is_known = (header.flags & FrameHeader::known) != 0,
             is_remembered = (header.flags & FrameHeader::remembered) != 0;
  const Shape shape = reader.shape();
  if (is_known || is_remembered) check_list(header, shape);
  if (!is_known &&
      (header.offset > header.total || header.payload > header.total - header.offset)) {
    fail(Code::data_loss, "a piece of a tensor ends beyond the end of the tensor");
  }
  if ((header.flags & FrameHeader::lent) != 0) received_ += header.payload;
  const uint64_t cost = cost_of(is_known ? bytes_of_list(header, shape) : header.payload);
  const auto key = std::pair(header.step, header.edge);
  const StepPhase phase = events_.phase_of(header.step);
  const auto dropped = [&] {
    if (is_remembered) received_lists_.add(0, nullptr);
    reader.skip(header.following());
    give_back(cost);
  };
  auto found = incoming_.find(key);
  if (phase == StepPhase::over || (header.offset > 0 && found == incoming_.end())) {
    if (found != incoming_.end()) incoming_.erase(found);
    return dropped();
  }
  const auto list = is_known ? received_lists_.find(header.total) : nullptr;
  if (is_known && list == nullptr) {
    ask(header, shape);
    return give_back(cost);
  }

  IncomingTensor incoming;
  if (header.offset > 0) {
    incoming = std::move(found->second);
    incoming_.erase(found);
  }
  bool is_sound = true;
  const auto read = [&] {
    if (is_known) {
      incoming = IncomingTensor(header, shape, *list);
      return;
    }
    if (header.offset == 0) {
      Tensor room;
      if (events_.room_for && phase == StepPhase::running)
        room = events_.room_for(header.step, header.edge, header.dtype, shape);
      incoming = IncomingTensor(header, shape, options_.largest_tensor, std::move(room));
    }
    is_sound = incoming.read(reader, header);
  };
  if (!fits(header, read)) return dropped();
  if (!is_sound) {
    fail(Code::data_loss, "the checksum of ", describe(header), ", bytes ", header.offset, " to ",
         header.offset + header.payload, " of ", header.total, " in step ", header.step,
         ", does not match the received bytes");
  }

  if (phase == StepPhase::early) {
    {
      std::lock_guard lock(credit_mutex_);
      held_[header.step] += cost;
    }
    if (header.offset == 0 && events_.on_early) events_.on_early(header.step);
    if (events_.phase_of(header.step) != StepPhase::early) settle(header.step);
  } else {
    give_back(cost);
  }
  if (!incoming.is_whole()) {
    incoming_[key] = std::move(incoming);
    return;
  }
  Tensor value;
  if (!fits(header, [&] { value = std::move(incoming).take(); })) return;
  if (is_remembered) keep_list(value);
  events_.on_tensor(header.step, header.edge, std::move(value),
                    (header.flags & FrameHeader::dead) != 0);
}

void Channel::refuse(int64_t step, const Status& status) {
  abort(step, status);
  if (events_.on_abort) events_.on_abort(step, status);
}

void Channel::settle(int64_t step) {
  uint64_t bytes = 0;
  {
    std::lock_guard lock(credit_mutex_);
    if (auto found = held_.find(step); found != held_.end()) {
      bytes = found->second;
      held_.erase(found);
    }
  }
  if (bytes > 0) give_back(bytes);
}

void Channel::give_back(uint64_t bytes) {
  {
    std::lock_guard lock(credit_mutex_);
    to_give_back_ += bytes;
    if (to_give_back_ < options_.window / 8) return;
    bytes = to_give_back_;
    to_give_back_ = 0;
  }
  std::lock_guard lock(mutex_);
  if (!is_ended_) push_now({.kind = FrameKind::credit, .total = bytes}, {});
}

void Channel::ended(const RpcStatus& rpc_status) {
  std::deque<Outgoing> small, large;
  Status status;
  {
    std::lock_guard lock(mutex_);
    is_ended_ = true;
    small.swap(small_);
    large.swap(large_);
    queued_ = 0;
    status = cut_;
  }
  incoming_.clear();
  if (status.is_ok() && !rpc_status.is_ok())
    status = {static_cast<Code>(rpc_status.code), rpc_status.message};
  const bool is_silent = rpc_status.cause == RpcCause::silent;
  calls_->ended({static_cast<int>(Code::unavailable),
                 status.is_ok() ? "it closed the connection" : status.message,
                 is_silent ? RpcCause::silent : RpcCause::lost});
  if (events_.on_end) events_.on_end(status, rpc_status.cause);
}

}  // namespace leat
