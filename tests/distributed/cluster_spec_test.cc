// ClusterSpec: every accepted form, and the messages for rejected ones.
#include "distributed/cluster/cluster_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "core/error.h"
#include "distributed/cluster/tls.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch_directory.h"

namespace leat {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string refusal(const std::string& text) {
  try {
    ClusterSpec::parse(text, "cluster.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    return error.message();
  }
  ADD_FAILURE() << "accepted: " << text;
  return {};
}

TEST(ClusterSpec, ReadsTlsPathsRelativeToTheFile) {
  const ScratchDirectory folder;
  std::ofstream(folder / "cluster.json") << R"({"cluster": {"ps": ["h:1"]}, "cluster_id": "blue",
             "tls": {"ca": "ca.pem", "certificate": "keys/{name}.pem", "key": "/keys/{name}.key"}})";
  const ClusterSpec spec = ClusterSpec::read(folder / "cluster.json");
  EXPECT_EQ(with_name(spec.tls(), certificate_name({"ps", 0})),
            (TlsPaths{folder / "ca.pem", folder / "keys/ps-0.pem", "/keys/ps-0.key"}));
  EXPECT_EQ(ClusterSpec::parse(spec.to_json()), spec);
  for (const auto& [text, message] : std::vector<std::pair<const char*, const char*>>{
           {R"("keys")", "at /tls: TLS is an object of paths"},
           {R"({"ca": "a", "cert": "b"})", "at /tls/cert: unknown key"},
           {R"({"ca": "a", "certificate": "b"})", "\"key\" is missing"},
           {R"({"ca": 1})", "at /tls/ca: a path is a string"}}) {
    const std::string document = concat(R"({"cluster": {"ps": ["h:1"]}, "tls": )", text, "}");
    expect_error_with(Code::invalid_argument, message, [&] { ClusterSpec::parse(document); });
  }
}

TEST(ClusterSpec, AllFormsAreEquivalent) {
  const ClusterSpec expected =
      ClusterSpec::parse(R"({"cluster": {"ps": ["h:1"], "worker": ["h:2", "h:3"]}})");
  EXPECT_EQ(expected.address({"worker", 1}), "h:3");
  EXPECT_EQ(expected.size(), 3u);
  for (
      const char* form : {
          R"({"ps": ["h:1"], "worker": ["h:2", "h:3"]})",
          R"({"ps": {"0": "h:1"}, "worker": {"1": "h:3", "0": "h:2"}})",
          R"({"job": [{"name": "ps", "tasks": {"0": "h:1"}}, {"name": "worker", "tasks": {"0": "h:2", "1": "h:3"}}]})",
          R"({"cluster": {"job": [{"name": "ps", "tasks": ["h:1"]}, {"name": "worker", "tasks": ["h:2", "h:3"]}]}})",
          "ps|h:1,worker|h:2;h:3",
      }) {
    EXPECT_EQ(ClusterSpec::parse(form), expected) << form;
    EXPECT_EQ(ClusterSpec::parse(form).id(), expected.id()) << form;
  }
  EXPECT_EQ(ClusterSpec::parse(expected.to_json()), expected);
}

TEST(ClusterSpec, NamesTheTasksThatOfferGpus) {
  const ClusterSpec spec = ClusterSpec::parse(
      R"({"cluster": {"ps": ["h:1", "h:2"], "worker": ["h:3"]}, "gpus": ["worker", "/job:ps/task:1"]})");
  EXPECT_TRUE(spec.offers_gpus({"worker", 0}));
  EXPECT_TRUE(spec.offers_gpus({"ps", 1}));
  EXPECT_FALSE(spec.offers_gpus({"ps", 0}));
  EXPECT_EQ(ClusterSpec::parse(spec.to_json()), spec);
  EXPECT_EQ(spec.id(), ClusterSpec::parse("ps|h:1;h:2,worker|h:3").id());
}

TEST(ClusterSpec, SparseJobsKeepTheirIndices) {
  const ClusterSpec spec = ClusterSpec::parse(R"({"ps": ["h:1"], "worker": {"7": "h:2"}})");
  EXPECT_TRUE(spec.is_sparse());
  EXPECT_TRUE(spec.contains({"worker", 7}));
  EXPECT_EQ(spec.id(), "") << "it does not know all tasks";
  EXPECT_EQ(ClusterSpec::parse(spec.to_json()), spec);
  try {
    spec.address({"worker", 0});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::not_found);
    EXPECT_THAT(error.message(), HasSubstr(R"("worker":{"7":"h:2"})"));
  }
}

TEST(ClusterSpec, IdIdentifiesTheCluster) {
  const ClusterSpec one = ClusterSpec::parse("ps|h:1,worker|h:2");
  const ClusterSpec other = ClusterSpec::parse("ps|h:1,worker|h:3");
  EXPECT_FALSE(one.id().empty());
  EXPECT_NE(one.id(), other.id());
  const ClusterSpec named =
      ClusterSpec::parse(R"({"cluster": {"ps": ["h:1"]}, "cluster_id": "blue"})");
  EXPECT_EQ(named.id(), "blue");
  EXPECT_EQ(ClusterSpec::parse(named.to_json()).id(), "blue");
}

TEST(ClusterSpec, Ipv6AddressesNeedBrackets) {
  EXPECT_EQ(ClusterSpec::parse("ps|[::1]:2222").address({"ps", 0}), "[::1]:2222");
  EXPECT_EQ(HostPort::parse("[fe80::1]:80").host, "fe80::1");
  EXPECT_THAT(refusal(R"({"ps": ["::1:2222"]})"), HasSubstr("an IPv6 address needs brackets"));
}

TEST(ClusterSpec, PortZeroIsOpenUntilItIsAssigned) {
  ClusterSpec spec = ClusterSpec::parse("ps|127.0.0.1:0,worker|127.0.0.1:0;127.0.0.1:0");
  EXPECT_TRUE(spec.has_open_ports());
  int port = 3000;
  for (const TaskName& task : spec.tasks()) spec.set_address(task, concat("127.0.0.1:", ++port));
  EXPECT_FALSE(spec.has_open_ports());
  EXPECT_EQ(spec.address({"worker", 1}), "127.0.0.1:3003");
}

TEST(ClusterSpec, ReportsThePlaceAndTheReason) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"clutser": {"ps": ["h:1"]}})",
       R"(at /clutser: unknown key "clutser"; did you mean 'cluster'?)"},
      {R"({"cluster": {"ps": ["h:1"]}, "taks": {}})",
       R"(at /taks: unknown key "taks"; did you mean 'task'?)"},
      {R"({"cluster": {"ps": ["h:1"]}, "color": "red"})",
       "at /color: unknown key \"color\"; known are cluster, cluster_id, files, shared_memory, "
       "task, "
       "rpc_layer, environment, session_master, tls, gpus"},
      {R"({"cluster": {"ps": ["h:1"]}, "gpus": true})",
       "at /gpus: a list of jobs and tasks is expected, such as [\"worker\"] or "
       "[\"/job:worker/task:0\"], this is true"},
      {R"({"cluster": {"ps": ["h:1"]}, "gpus": ["worker"]})",
       "at /gpus: no job worker is in the cluster, which has {\"cluster\":{\"ps\":[\"h:1\"]}}"},
      {R"({"cluster": {"ps": ["h:1"]}, "shared_memory": 1})",
       "at /shared_memory: true or false is expected, this is 1"},
      {R"({"cluster": {"ps": ["h:1", "h"]}})",
       "at /cluster/ps/1: \"h\" is not an address: it has no port"},
      {R"({"cluster": {"ps": ["h:99999"]}})", "\"99999\" is not a port from 0 to 65535"},
      {R"({"cluster": {"ps": ["h:22x"]}})", "\"22x\" is not a port"},
      {R"({"cluster": {"ps": ["grpc://h:1"]}})", "it has a scheme"},
      {R"({"cluster": {"ps": [":1"]}})", "it has no host"},
      {R"({"cluster": {"ps": [2222]}})", "at /cluster/ps/0: an address is a string"},
      {R"({"cluster": {"ps": []}})", "at /cluster/ps: job \"ps\" has no tasks"},
      {R"({"cluster": {"ps": "h:1"}})", "at /cluster/ps: job \"ps\" is a list of addresses"},
      {R"({"cluster": {"p/s": ["h:1"]}})", "at /cluster/p~1s/0: \"p/s\" is not a job name"},
      {R"({"cluster": {"ps": {"x": "h:1"}}})", "at /cluster/ps/x: \"x\" is not a task index"},
      {R"({"cluster": {"ps": ["h:1"], "worker": ["h:1"]}})",
       "/job:ps/task:0 and /job:worker/task:0 have the same address"},
      {R"({"cluster": {"chief": ["h:1", "h:2"]}})", "at most one chief"},
      {R"({"cluster": {"evaluator": ["h:1"]}})", "runs outside the cluster"},
      {R"({"cluster": {}})", "the cluster has no tasks"},
      {R"({"cluster": {"ps": ["h:1"], "ps": ["h:2"]}})", "the key \"ps\" appears twice"},
      {R"({"job": [{"name": "ps", "task": {"0": "h:1"}}]})",
       "at /job/0/task: unknown key \"task\""},
      {"{\n\"ps\": [\"h:1\"],\n", "not valid JSON, line 3"},
      {R"({"ps": [1e999]})", "a number is too large"},
      {R"({"cluster": ["h:1"]})", "at /cluster: the jobs are an object"},
      {R"({"": {"0": "h:1"}})", "a job has no name"},
      {R"({"ps": ["h\u0000x:1"]})", R"("h\u0000x:1" is not an address: the host contains)"},
      {"ps=h:1", "neither JSON nor"},
      {"", "empty"},
  };
  for (const auto& [text, expected] : cases) {
    const std::string message = refusal(text);
    EXPECT_THAT(message, HasSubstr(expected));
    EXPECT_THAT(message, testing::StartsWith("cluster.json")) << text;
  }
}

TEST(ClusterSpec, NamesTheSourceOnce) {
  for (const char* text : {R"({"ps": [2222]})", R"({"ps": {"0": 2222}})"})
    EXPECT_EQ(refusal(text).rfind("cluster.json"), 0u) << refusal(text);
}

TEST(ClusterSpec, IgnoresAByteOrderMark) {
  EXPECT_EQ(ClusterSpec::parse("\xef\xbb\xbf{\"ps\": [\"h:1\"]}"), ClusterSpec::parse("ps|h:1"));
}

TEST(ClusterSpec, RejectsDirectoriesAndHugeFiles) {
  expect_error_with(Code::invalid_argument, "/tmp: this is a directory",
                    [] { ClusterSpec::read("/tmp"); });
  expect_error_with(Code::invalid_argument, "more than 16 MiB",
                    [] { ClusterSpec::read("/dev/zero"); });
  EXPECT_LT(refusal(std::string(1 << 20, '\0')).size(), 2000u);
}

// It could not be written as JSON again.
TEST(ClusterSpec, RejectsHostsWithInvalidCharacters) {
  for (const char* text : {"ps|\xff\xff\x7fh:2224", "ps|h\x01:1", "ps|h\xc3\xa4:1"})
    EXPECT_THAT(refusal(text), HasSubstr("the host contains an invalid character"));
}

TEST(TfConfig, ReturnsClusterAndTask) {
  const ResolvedCluster cluster = parse_tf_config(
      R"({"cluster": {"chief": ["a:1"], "worker": ["b:1"], "ps": {"1": "c:1"}}, "task": {"type": "worker", "index": "0"},
          "rpc_layer": "grpc", "environment": "cloud"})");
  EXPECT_EQ(cluster.task, (TaskName{"worker", 0}));
  EXPECT_FALSE(cluster.is_chief());
  EXPECT_FALSE(cluster.is_local());
  EXPECT_TRUE(
      parse_tf_config(
          R"({"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 0}})")
          .is_chief());
}

TEST(TfConfig, EvaluatorIsOutsideTheClusterAndNoClusterIsLocal) {
  EXPECT_EQ(
      parse_tf_config(R"({"cluster": {"ps": ["a:1"]}, "task": {"type": "evaluator", "index": 0}})")
          .task->job,
      "evaluator");
  EXPECT_TRUE(parse_tf_config("{}").is_local());
  EXPECT_TRUE(
      parse_tf_config(R"({"cluster": {}, "task": {"type": "worker", "index": 0}})").is_local());
  EXPECT_THROW(
      parse_tf_config(R"({"cluster": {"ps": ["a:1"]}, "task": {"type": "worker", "index": 0}})"),
      Error);
  EXPECT_THROW(parse_tf_config(R"({"cluster": {"ps": ["a:1"]}, "rpc_layer": "mpi"})"), Error);
}

TEST(TfConfig, IgnoresUnknownKeysWithARemark) {
  const auto remarks = [](const std::string& extra, const std::string& task_extra = "") {
    const ResolvedCluster cluster =
        parse_tf_config(R"({"cluster": {"worker": ["a:1"], "evaluator": ["b:1"]}, )" + extra +
                        R"("task": {"type": "worker", "index": 0)" + task_extra + "}}");
    EXPECT_EQ(cluster.spec.to_json(), R"({"cluster":{"worker":["a:1"]}})");
    EXPECT_EQ(cluster.task, (TaskName{"worker", 0}));
    return cluster.remarks;
  };
  const auto evaluator = HasSubstr("TF_CONFIG at /cluster/evaluator: the evaluator takes no part");
  EXPECT_THAT(remarks(""), ElementsAre(evaluator));
  EXPECT_THAT(remarks(R"("job": {}, "model_dir": "x", "service": {"rpc_layer": "grpc"}, )"),
              ElementsAre(HasSubstr(R"(TF_CONFIG at /job: the key "job" is unknown)"),
                          HasSubstr("at /model_dir"), HasSubstr("at /service"), evaluator));
  EXPECT_THAT(remarks("", R"(, "cloud": true)"),
              ElementsAre(evaluator, HasSubstr("at /task/cloud")));
  EXPECT_EQ(parse_tf_config(R"({"cluster": {"evaluator": ["b:1"]}})").spec.size(), 0u);
}

TEST(ClusterSpec, KeepsAbsoluteFileDirectories) {
  const ClusterSpec spec =
      ClusterSpec::parse(R"({"cluster": {"ps": ["h:1"]}, "files": ["/data", "/models"]})");
  EXPECT_THAT(*spec.files(), ElementsAre("/data", "/models"));
  EXPECT_EQ(ClusterSpec::parse(spec.to_json()), spec);
  EXPECT_EQ(spec.id(), ClusterSpec::parse(R"({"cluster": {"ps": ["h:1"]}})").id());
  EXPECT_FALSE(ClusterSpec::parse(R"({"cluster": {"ps": ["h:1"]}})").files().has_value());
  for (const char* files : {R"("/data")", R"([1])", R"(["data"])", R"([""])"})
    EXPECT_THAT(refusal(concat(R"({"cluster": {"ps": ["h:1"]}, "files": )", files, "}").c_str()),
                HasSubstr("at /files"));
}

TEST(TfConfig, ExplainsInvalidTasks) {
  const auto refused = [](const std::string& task, const std::string& says) {
    expect_error_with(Code::invalid_argument, says, [&] {
      parse_tf_config(R"({"cluster": {"ps": ["a:1"]}, "task": )" + task + "}");
    });
  };
  refused("null",
          R"(at /task: a task is an object such as {"type": "worker", "index": 0}, this is null)");
  for (const std::string index : {"-1", "99999999999999999999", "1000000", "1.5", "null"}) {
    refused(R"({"type": "ps", "index": )" + index + "}",
            "at /task/index: a task index is a number from 0 to 999999, this is ");
  }
  for (const std::string index : {R"("-1")", R"("1000000")", R"("99999999999999999999")"})
    refused(R"({"type": "ps", "index": )" + index + "}", index + " is not a task index: write");
}

TEST(TfConfig, ReadsTheEnvironment) {
  unsetenv("TF_CONFIG");
  EXPECT_FALSE(cluster_from_environment().has_value());
  setenv("TF_CONFIG", R"({"cluster": {"ps": ["a:1"]}, "task": {"type": "ps", "index": 0}})", 1);
  EXPECT_EQ(cluster_from_environment()->task, (TaskName{"ps", 0}));
  unsetenv("TF_CONFIG");
}

}  // namespace
}  // namespace leat
