// Input of a stream between two tasks: frames, whole and in pieces, and the greeting.
#include <algorithm>
#include <memory>

#include "distributed/cluster/identity.h"
#include "distributed/wire/channel.h"
#include "tests/fuzz/input_stream.h"
#include "tests/fuzz/target.h"

namespace leat::fuzz {
namespace {

std::string floats(size_t count) { return std::string(count * sizeof(float), '\x3f'); }

}  // namespace

std::vector<std::string> seeds() {
  const auto header = [](uint32_t sequence, FrameKind kind) {
    FrameHeader out;
    out.kind = kind;
    out.sequence = sequence;
    out.step = 1;
    out.incarnation = 11;
    return out;
  };
  FrameHeader tensor = header(0, FrameKind::tensor);
  tensor.dtype = f32;
  tensor.rank = 2;
  tensor.payload = 24;
  tensor.total = 24;
  FrameHeader first = tensor, second = tensor;
  first.payload = second.payload = 12;
  second.sequence = 1;
  second.offset = 12;
  FrameHeader control = header(1, FrameKind::tensor);
  FrameHeader text = header(2, FrameKind::tensor);
  text.dtype = DType::string;
  text.rank = 1;
  const std::string strings = encode_strings(Tensor::of<std::string>({2}, {"a", "bcd"}));
  text.payload = static_cast<uint32_t>(strings.size());
  text.total = strings.size();
  FrameHeader abort = header(3, FrameKind::abort);
  abort.payload = 4;
  FrameHeader credit = header(4, FrameKind::credit);
  credit.total = 100;
  const std::string hello =
      encode(Hello{make_identity("cluster", {"worker", 0}), {"ps", 0}, 1 << 20});
  FrameHeader greeting = header(0, FrameKind::hello);
  greeting.payload = static_cast<uint32_t>(hello.size());
  // The first byte says how the message is cut, and whether the checksums stay unchanged.
  return {
      '\0' + encode(tensor, {2, 3}) + floats(6) + encode(control, {}) + encode(text, {2}) +
          strings + encode(abort, {}) + "gone" + encode(credit, {}),
      '\x07' + encode(first, {2, 3}) + floats(3) + encode(second, {}) + floats(3),
      '\x20' + encode(greeting, {}) + hello,
      '\x21' + hello,
  };
}

}  // namespace leat::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace leat;
  if (size == 0 || size > 65536) return 0;
  const size_t cut = data[0] & 0x7f;
  const std::string_view bytes = fuzz::text_of(data + 1, size - 1);
  fuzz::expect_no_mistake_of_ours([&] { decode_hello(bytes); });

  auto owned = std::make_unique<fuzz::InputStream>();
  fuzz::InputStream* stream = owned.get();
  const std::shared_ptr<RpcStream> shared(std::move(owned));
  int step = 0;
  const auto channel =
      Channel::create(shared, {.incarnation = 22, .largest_tensor = 1 << 20},
                      {.on_tensor =
                           [](int64_t, int64_t, const Tensor& value, bool) {
                             if (value.is_valid() && value.dtype() == DType::string)
                               value.span<std::string>();
                           },
                       .on_abort = [](int64_t, const Status&) {},
                       .on_control =
                           [](FrameKind kind, const FrameHeader&, const std::string& payload) {
                             if (kind == FrameKind::hello || kind == FrameKind::welcome)
                               decode_hello(payload);
                           },
                       .on_end = [](const Status&, RpcCause) {},
                       .phase_of = [&](int64_t) { return static_cast<StepPhase>(step++ % 3); }});
  channel->admit(11, 1 << 20);
  std::string message(bytes);
  if ((data[0] & 0x80) == 0) fuzz::seal(message);
  const auto kept = std::make_shared<const std::string>(std::move(message));
  std::vector<std::string_view> parts;
  const size_t part = cut == 0 ? kept->size() : cut;
  for (size_t at = 0; at < kept->size(); at += part)
    parts.push_back(std::string_view(*kept).substr(at, part));
  stream->bring(Bytes(parts, kept));
  channel->settle(1);
  stream->end({});
  return 0;
}
