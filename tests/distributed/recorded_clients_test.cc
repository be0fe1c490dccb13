// A recording of TensorFlow's client and server (tests/data/recorded/, made by
// tests/tensorflow/record.py): a cluster of ours gives the same answers to the same requests.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "distributed/grpc/rpc_client.h"
#include "graph/import/graph_def.h"
#include "tests/support/in_process_cluster.h"
#include "tests/support/wire.h"

namespace leat {
namespace {

using wire_format::fields;
using wire_format::text;

struct Call {
  std::string method, request, reply;
  int code = 0;
};

std::string first(const std::multimap<int, std::string>& message, int field) {
  const auto found = message.find(field);
  return found == message.end() ? "" : found->second;
}

std::vector<Call> read_recording(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::vector<Call> out;
  for (const auto& [field, call] : fields(bytes)) {
    const auto parts = fields(call);
    out.push_back({first(parts, 1), first(parts, 2), first(parts, 3), std::stoi(first(parts, 4))});
  }
  return out;
}

// A request begins with its session's handle: `from` in the recording.
std::string with_handle(const std::string& request, const std::string& from,
                        const std::string& to) {
  const std::string head = text(1, from);
  EXPECT_TRUE(request.starts_with(head)) << "a request without the session's handle";
  return text(1, to) + request.substr(std::min(request.size(), head.size()));
}

// The fetches of a RunStepResponse, by name.
std::map<std::string, Tensor> fetches(const std::string& reply) {
  std::map<std::string, Tensor> out;
  const auto parts = fields(reply);
  const auto [begin, end] = parts.equal_range(1);
  for (auto it = begin; it != end; ++it) {
    const auto named = fields(it->second);
    out.emplace(first(named, 1), from_tensor_proto(first(named, 2)));
  }
  return out;
}

void expect_same(const Tensor& got, const Tensor& expected, const std::string& what) {
  ASSERT_EQ(got.dtype(), expected.dtype()) << what;
  ASSERT_EQ(got.shape(), expected.shape()) << what;
  if (expected.dtype() != f32) {
    EXPECT_EQ(got.to_string(1000), expected.to_string(1000)) << what;
    return;
  }
  for (int64_t i = 0; i < expected.elements(); ++i) {
    const float e = expected.data<float>()[i];
    EXPECT_NEAR(got.data<float>()[i], e, 1e-5 + 1e-4 * std::abs(e)) << what << ", element " << i;
  }
}

void replay(const std::vector<Call>& calls) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  RpcClient client(cluster.spec().address({"worker", 0}));
  std::string recorded_handle, handle;
  int steps = 0;
  for (size_t i = 0; i < calls.size(); ++i) {
    const Call& call = calls[i];
    const bool creates = call.method.ends_with("/CreateSession");
    const std::string request =
        creates ? call.request : with_handle(call.request, recorded_handle, handle);
    const std::string what = concat("call ", i + 1, ", ", call.method);
    const auto [status, reply] = client.call_and_wait(
        call.method, request,
        {.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60)});
    ASSERT_EQ(status.code, call.code) << what << ": " << status.message;
    if (creates) {
      recorded_handle = first(fields(call.reply), 1);
      handle = first(fields(reply), 1);
    } else if (call.method.ends_with("/RunStep")) {
      ++steps;
      const std::map<std::string, Tensor> got = fetches(reply);
      for (const auto& [name, expected] : fetches(call.reply)) {
        ASSERT_TRUE(got.contains(name)) << what;
        expect_same(got.at(name), expected, concat(what, ", ", name));
      }
    }
  }
  EXPECT_GT(steps, 0);
}

class RecordedClients : public testing::TestWithParam<std::string> {};

TEST_P(RecordedClients, GetTheSameAnswers) {
  const std::vector<Call> calls = read_recording(std::filesystem::path(LEAT_TEST_DATA_DIR) /
                                                 "recorded" / (GetParam() + ".recording"));
  ASSERT_FALSE(calls.empty());
  replay(calls);
}

INSTANTIATE_TEST_SUITE_P(Programs, RecordedClients,
                         testing::Values("softmax", "mlp", "cnn", "embedding", "loop", "functions",
                                         "mistakes"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace leat
