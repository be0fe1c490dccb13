// The messages between master and worker: decoding returns what was encoded and rejects malformed
// bytes.
#include "distributed/worker/worker_wire.h"

#include <gtest/gtest.h>

#include <numeric>

#include "core/error.h"
#include "distributed/rpc_status.h"
#include "distributed/wire/large_answer.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

// The bytes as the transport may deliver them: cut into parts of `size` bytes.
Bytes delivered(const Slices& slices, size_t size) {
  auto text = std::make_shared<std::string>();
  for (const ByteSlice& slice : slices)
    text->append(static_cast<const char*>(slice.data), slice.size);
  std::vector<std::string_view> parts;
  for (size_t at = 0; at < text->size(); at += size)
    parts.push_back(std::string_view(*text).substr(at, size));
  return {std::move(parts), text};
}

Tensor counting(DType dtype, const Shape& shape) {
  Tensor out(dtype, shape);
  auto* bytes = static_cast<unsigned char*>(out.raw());
  for (size_t i = 0; i < out.bytes(); ++i) bytes[i] = static_cast<unsigned char>(i * 7);
  return out;
}

TEST(WorkerWire, RunGraphKeepsEveryTensorForAnySplit) {
  RunGraph request;
  request.request_id = 1;
  request.worker_incarnation = ~uint64_t{0};
  request.session = "session";
  request.graph = 3;
  request.step = int64_t{1} << 55;
  request.trace = true;
  request.feeds = {{"small:0", Tensor::of<float>({2, 2}, {1, 2, 3, 4})},
                   {"large:0", counting(DType::i64, {100, 7})},
                   {"empty:0", Tensor(DType::f32, {0, 4})},
                   {"text:1", Tensor::of<std::string>({3}, {"a", "", std::string(5'000, 'x')})},
                   {"flag:0", Tensor::scalar(true)}};
  for (const size_t size : {1ul, 7ul, 1'000ul, 1'000'000ul}) {
    const RunGraph got = wire::decode_run_graph(delivered(wire::encode_run_graph(request), size));
    EXPECT_EQ(got.request_id, request.request_id);
    EXPECT_EQ(got.worker_incarnation, request.worker_incarnation);
    EXPECT_EQ(got.session, request.session);
    EXPECT_EQ(got.graph, request.graph);
    EXPECT_EQ(got.step, request.step);
    EXPECT_TRUE(got.trace);
    ASSERT_EQ(got.feeds.size(), request.feeds.size());
    for (size_t i = 0; i < got.feeds.size(); ++i) {
      EXPECT_EQ(got.feeds[i].first, request.feeds[i].first);
      const Tensor& expected = request.feeds[i].second;
      const Tensor& tensor = got.feeds[i].second;
      ASSERT_EQ(tensor.dtype(), expected.dtype());
      ASSERT_EQ(tensor.shape(), expected.shape());
      if (tensor.dtype() == DType::string) {
        EXPECT_TRUE(std::ranges::equal(tensor.span<std::string>(), expected.span<std::string>()));
      } else if (tensor.bytes() > 0) {
        EXPECT_EQ(std::memcmp(tensor.raw(), expected.raw(), expected.bytes()), 0);
      }
    }
  }
}

TEST(WorkerWire, SendsLargeTensorsWithoutACopy) {
  RunGraph request;
  request.feeds = {{"large:0", counting(DType::f32, {1'000})}};
  bool found = false;
  for (const ByteSlice& slice : wire::encode_run_graph(request))
    found |= slice.data == request.feeds[0].second.raw();
  EXPECT_TRUE(found);
}

// gRPC has 32 bits for the length of a message. The tensor's memory is never touched.
TEST(WorkerWire, RejectsTensorsBeyondOneMessageByName) {
  RunGraphResult result;
  try {
    result.fetches = {{"small:0", Tensor::scalar(1.0f)},
                      {"v/read:0", Tensor(DType::u8, {5'000'000'000})}};
  } catch (const Error&) {
    GTEST_SKIP() << "no room for the address of 5 GB";
  }
  expect_error_with(Code::resource_exhausted, "The largest tensor in it is v/read:0",
                    [&] { wire::encode_run_graph_result(result); });
  uint64_t size = 0;
  for (const ByteSlice& slice : wire::encode_run_graph_result(result, wire::FrameSize::any))
    size += slice.size;
  EXPECT_GT(size, 5'000'000'000u);
}

TEST(WorkerWire, LargeAnswerKeepsStatusAndTensors) {
  const NamedTensors fetches = {{"a:0", counting(DType::f32, {2, 600})},
                                {"b:0", Tensor::scalar("text")}};
  for (const size_t part : {1, 3, 100, 1 << 20}) {
    const Bytes bytes = delivered(encode_large_answer("the response", fetches), part);
    EXPECT_TRUE(is_large_answer(bytes));
    NamedTensors got;
    EXPECT_EQ(decode_large_answer(bytes,
                                  [&](std::string name, Tensor tensor) {
                                    got.emplace_back(std::move(name), std::move(tensor));
                                  }),
              "the response");
    ASSERT_EQ(got.size(), 2u);
    EXPECT_EQ(got[0].first, "a:0");
    EXPECT_EQ(std::memcmp(got[0].second.raw(), fetches[0].second.raw(), fetches[0].second.bytes()),
              0);
    EXPECT_EQ(got[1].second.item<std::string>(), "text");
  }
  EXPECT_FALSE(is_large_answer(delivered(to_slices("\x0a\x01x"), 1)));
}

TEST(WorkerWire, ResultKeepsStatusAndTrace) {
  RunGraphResult result;
  result.status = {Code::aborted, "why", true, "layer/add"};
  result.activity = {{"waits for tensor edge_7_w of node w", "/job:ps/task:0", 1'200'000'000}};
  result.events = {{"node", "MatMul", "/device:CPU:0", 10, 20, 30, 4}};
  const RunGraphResult got =
      wire::decode_run_graph_result(delivered(wire::encode_run_graph_result(result), 100));
  EXPECT_EQ(got.status.code, Code::aborted);
  EXPECT_EQ(got.status.message, "why");
  EXPECT_TRUE(got.status.derived);
  EXPECT_EQ(got.status.node, "layer/add");
  ASSERT_EQ(got.activity.size(), 1u);
  EXPECT_EQ(got.activity[0].to_string(),
            "waits for tensor edge_7_w of node w from /job:ps/task:0, for 1.2 s");
  ASSERT_EQ(got.events.size(), 1u);
  EXPECT_EQ(got.events[0].op, "MatMul");
  EXPECT_EQ(got.events[0].end_ns, 20);
}

TEST(WorkerWire, AbortNamesTheNodeIfKnown) {
  for (const char* node : {"layer/add", ""}) {
    const wire::AbortStep got = wire::decode_abort_step(
        delivered(wire::encode_abort_step({3, {Code::cancelled, "enough", true, node}}), 100));
    EXPECT_EQ(got.step, 3);
    EXPECT_EQ(got.status.message, "enough");
    EXPECT_EQ(got.status.node, node);
  }
}

TEST(WorkerWire, CallDetailsNameTheNode) {
  const RpcStatus sent = to_rpc_status(with_node({Code::not_found, "bad"}, "layer/add"));
  EXPECT_EQ(sent.code, static_cast<int>(Code::not_found));
  EXPECT_EQ(sent.message, "bad\n\t [[{{node layer/add}}]]");
  EXPECT_EQ(node_of(sent), "layer/add");
  EXPECT_EQ(to_rpc_status({Code::not_found, "bad"}).details, "");
  EXPECT_EQ(node_of({5, sent.message}), "") << "a peer that sends no details";
  EXPECT_EQ(node_of({5, sent.message, RpcCause::none, "\xff\xff"}), "");
  const Status long_name{Code::not_found, "bad", false, std::string(10'000, 'n')};
  EXPECT_EQ(to_rpc_status(long_name).details, "");
}

TEST(WorkerWire, RejectsInvalidDtypesAndDevices) {
  RegisterGraph request;
  request.session = "session";
  request.master = {"worker", 0};
  CutEdge edge;
  edge.source = edge.destination = DeviceName::parse("/job:ps/task:0/device:CPU:0");
  for (const DType dtype : {DType::invalid, DType::f32, DType::variant, static_cast<DType>(200)}) {
    edge.dtype = dtype;
    request.edges = {edge};
    const Bytes bytes = delivered(wire::encode_register_graph(request), 1 << 20);
    if (dtype == static_cast<DType>(200)) {
      EXPECT_THROW(wire::decode_register_graph(bytes), Error);
    } else {
      EXPECT_EQ(wire::decode_register_graph(bytes).edges.at(0).dtype, dtype);
    }
  }
  WorkerStatus status;
  status.task = {"ps", 0};
  status.devices = {{"/job:ps/task:0/device:CPU:0", "CPU", 1, 7}};
  EXPECT_EQ(wire::decode_status(delivered(wire::encode_status(status), 1 << 20)).devices.size(),
            1u);
  const auto kernels = std::make_shared<const KernelTable>(KernelTable{
      {"MatMul", {{{"T", {f32, DType::bf16}}}, {{"T", {DType::f64}}}}}, {"NoOp", {{}}}});
  status.gpu_kernels = kernels;
  const WorkerStatus read = wire::decode_status(delivered(wire::encode_status(status), 1 << 20));
  ASSERT_NE(read.gpu_kernels, nullptr);
  EXPECT_TRUE(are_equal(*read.gpu_kernels, *kernels));
  status.gpu_kernels = std::make_shared<const KernelTable>(
      KernelTable{{"MatMul", {{{"T", {static_cast<DType>(200)}}}}}});
  EXPECT_THROW(wire::decode_status(delivered(wire::encode_status(status), 1 << 20)), Error);
  status.gpu_kernels = nullptr;
  status.devices[0].name = "the first";
  EXPECT_THROW(wire::decode_status(delivered(wire::encode_status(status), 1 << 20)), Error);
}

TEST(WorkerWire, RejectsEveryTruncation) {
  RunGraph request;
  request.session = "session";
  request.feeds = {{"a:0", counting(DType::f32, {50})}, {"b:0", Tensor::scalar("text")}};
  std::string whole = delivered(wire::encode_run_graph(request), 1 << 20).to_string();
  for (size_t size = 0; size < whole.size(); ++size) {
    const Bytes cut({std::string_view(whole).substr(0, size)}, nullptr);
    EXPECT_THROW(wire::decode_run_graph(cut), Error) << size << " of " << whole.size();
  }
}

TEST(WorkerWire, RejectsMissingBytesBeforeAllocating) {
  RunGraph request;
  request.feeds = {{"a:0", counting(DType::f32, {2})}};
  std::string whole = delivered(wire::encode_run_graph(request), 1 << 20).to_string();
  // The extent 2 is written as the last varint of the packed dims; make it 127.
  const size_t dims = whole.find(std::string("\x1a\x01\x02", 3));
  ASSERT_NE(dims, std::string::npos);
  whole[dims + 2] = 127;
  EXPECT_THROW(wire::decode_run_graph(Bytes({whole}, nullptr)), Error);
}

}  // namespace
}  // namespace leat
