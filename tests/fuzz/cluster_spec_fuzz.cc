// Cluster specs: files, TF_CONFIG, TensorFlow's flag, lists of hosts.
#include "distributed/cluster/cluster_resolvers.h"
#include "distributed/cluster/cluster_spec.h"
#include "tests/fuzz/target.h"

namespace leat::fuzz {

std::vector<std::string> seeds() {
  return {
      R"({"cluster": {"ps": ["10.0.0.1:2222"], "worker": {"1": "h:2223"}}, "cluster_id": "a"})",
      R"({"ps": ["h:2222"], "worker": ["[::1]:2223", "h:0"]})",
      R"({"job": [{"name": "ps", "tasks": {"0": "h:2222"}}, {"name": "worker", "tasks": {}}]})",
      R"({"cluster": {"chief": ["h:1"], "worker": ["h:2"]}, "task": {"type": "worker", "index": "0"},)"
      R"( "rpc_layer": "grpc", "environment": "cloud"})",
      "ps|h:2222;h:2223,worker|h:2224",
      "node[08-10,3],gpu1,r[1-2]n[1,3]-ib",
  };
}

}  // namespace leat::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace leat;
  if (size > 4096) return 0;
  const std::string_view text = fuzz::text_of(data, size);
  fuzz::expect_no_mistake_of_ours([&] {
    const ClusterSpec spec = ClusterSpec::parse(text);
    // Written specs must read back equal.
    check_internal(ClusterSpec::parse(spec.to_json()) == spec, "another cluster: ", spec.to_json());
    for (const TaskName& task : spec.tasks()) {
      const HostPort address = HostPort::parse(spec.address(task));
      check_internal(HostPort::parse(address.to_string()).to_string() == address.to_string(),
                     "another address: ", address.to_string());
    }
  });
  fuzz::expect_no_mistake_of_ours([&] { parse_tf_config(text).is_chief(); });
  fuzz::expect_no_mistake_of_ours([&] { expand_host_list(text); });
  fuzz::expect_no_mistake_of_ours([&] { TaskName::parse(text); });
  fuzz::expect_no_mistake_of_ours([&] { HostPort::of_target(text); });
  return 0;
}
