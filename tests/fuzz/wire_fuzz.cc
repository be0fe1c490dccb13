// Tensors in messages: TensorFlow's forms, and ours between master and worker. The first byte says
// into how many parts the transport cuts the message.
#include "distributed/cluster_view.h"
#include "distributed/wire/tensor_stream.h"
#include "distributed/worker/worker_wire.h"
#include "graph/import/graph_def.h"
#include "tests/fuzz/target.h"
#include "tests/support/wire.h"

namespace leat::fuzz {
namespace {

std::string text_of(const Slices& slices) {
  std::string out;
  for (const ByteSlice& slice : slices)
    out.append(static_cast<const char*>(slice.data), slice.size);
  return out;
}

}  // namespace

std::vector<std::string> seeds() {
  using namespace wire_format;
  const std::string floats = to_tensor_proto(Tensor::of<float>({2, 2}, {1, 2, 3, 4}));
  const std::string strings = to_tensor_proto(Tensor::of<std::string>({2}, {"a", "bcd"}));
  const std::string shape = text(2, text(2, number(1, 3)));
  const std::string repeated = number(1, 3) + shape + text(7, varint(5));  // int_val
  const std::string packed = number(1, 7) + shape + text(4, std::string("\1\2\3") + "abbccc");
  RunGraph run;
  run.feeds = {{"a:0", Tensor::of<int64_t>({3}, {1, 2, 3})},
               {"b:0", Tensor::of<std::string>({2}, {"a", "bcd"})},
               {"c:0", Tensor(f32, {0, 4})}};
  RunGraphResult result;
  result.status = {Code::aborted, "gone", true};
  result.fetches = run.feeds;
  result.activity = {{"waits", "/job:ps/task:0", 5}};
  result.events = {{"n", "Op", "/device:CPU:0", 1, 2, 3, 4}};
  const std::string cut(1, '\3');
  return {cut + floats,
          cut + strings,
          cut + repeated,
          cut + packed,
          cut + text(2, text(1, "x:0") + text(2, floats)) +
              text(2, text(1, "y:0") + text(2, strings)) + text(3, "z:0"),
          cut + text(3, floats) + text(3, strings),
          cut + text_of(wire::encode_run_graph(run)),
          cut + text_of(wire::encode_run_graph_result(result))};
}

}  // namespace leat::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace leat;
  if (size == 0 || size > 65536) return 0;
  const auto kept = std::make_shared<const std::string>(fuzz::text_of(data + 1, size - 1));
  std::vector<std::string_view> parts;
  const size_t part = kept->size() / (data[0] % 8 + 1) + 1;
  for (size_t at = 0; at < kept->size(); at += part)
    parts.push_back(std::string_view(*kept).substr(at, part));
  const Bytes bytes(parts, kept);
  const auto check_again = [](const Tensor& tensor) {
    if (tensor.elements() > 1 << 16) return;  // one element, repeated: slow
    const std::string proto = to_tensor_proto(tensor);
    check_internal(to_tensor_proto(from_tensor_proto(proto)) == proto, "another tensor");
  };
  fuzz::expect_no_mistake_of_ours([&] { check_again(from_tensor_proto(*kept)); });
  fuzz::expect_no_mistake_of_ours([&] {
    read_message(bytes, 2, [&](const std::string&, const Tensor& tensor) { check_again(tensor); });
  });
  fuzz::expect_no_mistake_of_ours([&] {
    read_message_of_tensors(bytes, 3, [&](const Tensor& tensor) { check_again(tensor); });
  });
  fuzz::expect_no_mistake_of_ours([&] { wire::decode_run_graph(bytes); });
  fuzz::expect_no_mistake_of_ours([&] { wire::decode_run_graph_result(bytes); });
  fuzz::expect_no_mistake_of_ours([&] { wire::decode_register_graph(bytes); });
  fuzz::expect_no_mistake_of_ours([&] { wire::decode_status(bytes); });
  fuzz::expect_no_mistake_of_ours([&] { wire::decode_task_activity(bytes); });
  fuzz::expect_no_mistake_of_ours([&] { wire::decode_view(bytes); });
  return 0;
}
