// Lists of integers that a channel has carried before: see known_lists.h.
#include <new>

#include "core/crc32c.h"
#include "distributed/wire/channel.h"

namespace leat {

// ---- Sending: with mutex_ held, when the frame goes, for numbers follow the order of frames ----

void Channel::use_known_lists(FrameHeader& header, Outgoing& outgoing) {
  if (options_.known_lists == 0 || header.payload != header.total ||
      !KnownLists::is_kept(header.dtype, header.total))
    return;
  const uint32_t checksum = crc32c(outgoing.data, header.total);
  if (!outgoing.is_asked) {
    if (const auto number = sent_lists_.find(checksum, outgoing.data, header.total)) {
      header.flags |= FrameHeader::known;
      header.total = *number;
      header.payload = 0;
      return;
    }
  }
  // What is kept is what goes, whoever writes to the tensor meanwhile.
  const auto list = std::make_shared<const std::string>(outgoing.data, header.total);
  outgoing.data = list->data();
  outgoing.owner = list;
  header.flags |= FrameHeader::remembered;
  header.payload_checksum = checksum;
  sent_lists_.add(checksum, list);
}

// The peer does not have the list any more.
void Channel::asked(const FrameHeader& header, const Shape& shape) {
  {
    std::lock_guard lock(mutex_);
    if (is_ended_) return;
    if (const auto list = sent_lists_.find(header.total)) {
      Outgoing again{.header = {.kind = FrameKind::tensor,
                                .dtype = header.dtype,
                                .rank = header.rank,
                                .step = header.step,
                                .edge = header.edge,
                                .total = list->size()},
                     .shape = shape,
                     .data = list->data(),
                     .owner = list,
                     .is_asked = true};
      queued_ += list->size();
      small_.push_back(std::move(again));
      return pump();
    }
  }
  refuse(header.step,
         {Code::unavailable,
          concat("the peer has no copy of the list of integers that ", describe(header),
                 " repeats, and the list was forgotten here before the peer asked for it: run ",
                 "the step again")});
}

// ---- Receiving ----

void Channel::check_list(const FrameHeader& header, const Shape& shape) {
  const bool is_known = (header.flags & FrameHeader::known) != 0,
             is_remembered = (header.flags & FrameHeader::remembered) != 0;
  const bool has_list = header.offset == 0 && is_known != is_remembered &&
                        header.payload == (is_known ? 0 : header.total) &&
                        KnownLists::is_kept(header.dtype, bytes_of_list(header, shape));
  if (!has_list) {
    fail(Code::data_loss, "a frame of dtype ", header.dtype, " and shape ", shape, " with ",
         header.payload, " bytes cannot have a list that is known, or will be");
  }
}

void Channel::ask(const FrameHeader& known, const Shape& shape) {
  FrameHeader header = known;
  header.kind = FrameKind::ask;
  header.flags = 0;
  Slices message;
  std::lock_guard lock(mutex_);
  if (is_ended_) return;
  push_frame(header, shape, nullptr, nullptr, message);
  stream_->write(std::move(message));
}

// A copy: who gets the tensor may write to it.
void Channel::keep_list(const Tensor& value) {
  std::shared_ptr<const std::string> list;
  try {
    const auto* bytes = static_cast<const char*>(value.raw());
    list = std::make_shared<const std::string>(bytes, value.bytes());
  } catch (const std::bad_alloc&) {  // then it will be asked for
  }
  received_lists_.add(0, std::move(list));
}

}  // namespace leat
