#include "distributed/wire/large_answer.h"

#include <algorithm>

#include "distributed/proto/worker.pb.h"
#include "distributed/wire/framed_message.h"

namespace leat {
namespace {

constexpr std::string_view mark("\0leat", 5);

}  // namespace

Slices encode_large_answer(const std::string& response, const NamedTensors& fetches) {
  wire::LargeStepAnswer answer;
  answer.set_response(response);
  wire::describe(fetches, answer.mutable_fetches());
  Slices out = to_slices(std::string(mark));
  for (ByteSlice& slice : wire::frame(answer, fetches, wire::FrameSize::any))
    out.push_back(std::move(slice));
  return out;
}

bool is_large_answer(const Bytes& bytes) {
  for (const std::string_view part : bytes.parts())
    if (!part.empty()) return part[0] == mark[0];
  return false;
}

std::string decode_large_answer(const Bytes& bytes,
                                const std::function<void(std::string, Tensor)>& fetch) {
  std::vector<std::string_view> parts = bytes.parts();
  size_t skipped = 0;
  for (std::string_view& part : parts) {
    const size_t here = std::min(mark.size() - skipped, part.size());
    part.remove_prefix(here);
    skipped += here;
  }
  std::erase_if(parts, [](std::string_view part) { return part.empty(); });
  const Bytes framed(std::move(parts), std::make_shared<const Bytes>(bytes));
  wire::FramedMessage message(framed);
  const auto answer = message.header<wire::LargeStepAnswer>();
  for (auto& [name, tensor] : message.tensors(answer.fetches()))
    fetch(std::move(name), std::move(tensor));
  return answer.response();
}

}  // namespace leat
