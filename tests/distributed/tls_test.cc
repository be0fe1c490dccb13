// Identities: what a task that asks for certificates allows each peer.
#include "distributed/cluster/tls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <future>
#include <map>
#include <thread>

#include "distributed/cluster/exposure.h"
#include "distributed/cluster/identity.h"
#include "distributed/cluster/membership.h"
#include "distributed/cluster_session.h"
#include "distributed/cluster_view.h"
#include "distributed/grpc/rpc_client.h"
#include "distributed/task.h"
#include "graph/text.h"
#include "tests/support/child_process.h"
#include "tests/support/counter_graph.h"
#include "tests/support/eventually.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch_directory.h"

namespace leat {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Clock = std::chrono::steady_clock;
using Kind = CertifiedPeer::Kind;

constexpr const char* cluster_json =
    R"({"cluster": {"ps": ["127.0.0.1:0"], "worker": ["127.0.0.1:0", "127.0.0.1:0"]}, "cluster_id": "blue"})";

const TaskName ps0{"ps", 0}, worker0{"worker", 0}, worker1{"worker", 1};

TEST(CertificateNames, IdentifyATaskAClientOrNobody) {
  const auto kind = [](const std::string& name) { return certified_peer({name}, "blue").kind; };
  for (const char* name : {"spiffe://blue/job/ps/task/0", "ps-0.blue"})
    EXPECT_EQ(certified_peer({name}, "blue").task(), ps0) << name;
  EXPECT_EQ(certified_peer({"worker-12.a.b"}, "a.b").task(), (TaskName{"worker", 12}));
  for (const char* name : {"spiffe://blue/client/anna", "client.blue"})
    EXPECT_EQ(kind(name), Kind::client) << name;
  for (const char* name :
       {"spiffe://green/job/ps/task/0", "ps-0.green", "ps-0", "ps-0.blue.evil", "ps-00.blue",
        "ps-.blue", "-0.blue", "ps--1.blue", "spiffe://blue/job/ps/task/", "client.green",
        "spiffe://blue/job/ps/task/0/x", "spiffe://blue/client/", "spiffe://blue", "", "blue",
        "ps-99999999999.blue", "https://blue/job/ps/task/0", "spiffe:///job/ps/task/0"})
    EXPECT_EQ(kind(name), Kind::stranger) << name;
  EXPECT_EQ(
      certified_peer({"spiffe://blue/job/ps/task/0", "ps-0.blue", "10.0.0.1.host"}, "blue").task(),
      ps0);
  EXPECT_EQ(certified_peer({"ps-0.blue", "ps-1.blue"}, "blue").kind, Kind::stranger);
  EXPECT_EQ(certified_peer({"ps-0.blue", "client.blue"}, "blue").kind, Kind::stranger);
}

TEST(Authorization, DependsOnTheCallerAndTheMethod) {
  const RpcPeer nobody{.address = "a", .is_certified = false, .names = {}},
      task{.address = "a", .is_certified = true, .names = {"ps-0.blue"}},
      client{.address = "a", .is_certified = true, .names = {"client.blue"}},
      stranger{.address = "a", .is_certified = true, .names = {"ps-0.green"}};
  const auto may = [](const RpcPeer& peer, const char* method) {
    return authorize_call(method, peer, "blue").is_ok();
  };
  const char* run = "/tensorflow.MasterService/RunStep";
  for (const char* method : {"/leat.Worker/RegisterGraph", "/leat.Worker/GetStatus",
                             "/leat.Channel/Connect", "/anything"}) {
    EXPECT_TRUE(may(task, method)) << method;
    for (const RpcPeer& peer : {nobody, client, stranger})
      EXPECT_FALSE(may(peer, method)) << method;
  }
  EXPECT_TRUE(may(task, run) && may(client, run) && may(nobody, run));
  EXPECT_FALSE(may(stranger, run));
  EXPECT_TRUE(may(client, "/leat.Cluster/View"));
  EXPECT_FALSE(may(nobody, "/leat.Cluster/View"));
}

TEST(Exposure, WarnsAboutReachablePorts) {
  EXPECT_EQ(exposure_line("127.0.0.1:2222", false, "files"), "");
  EXPECT_EQ(exposure_line("localhost:2222", false, "files"), "");
  EXPECT_EQ(exposure_line("[::1]:2222", false, "files"), "");
  EXPECT_EQ(exposure_line("10.0.0.1:2222", true, "files"), "");
  for (const char* address : {"0.0.0.0:2222", "10.0.0.1:2222", "[::]:2222", "node7:2222"})
    EXPECT_THAT(exposure_line(address, false, "files below /data"),
                AllOf(HasSubstr(address), HasSubstr("run graphs"), HasSubstr("files below /data")));
}

void openssl(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "openssl");
  ChildProcess process(arguments);
  ASSERT_EQ(process.wait(), 0) << process.output();
}

class Tls : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new ScratchDirectory;
    std::ofstream(*folder_ / "cluster.json") << cluster_json;
    for (const char* name : {"good", "other"}) make(name);
    // The ps's own key and names, in a certificate that expired yesterday.
    const std::string extensions = *folder_ / "extensions";
    std::ofstream(extensions) << "subjectAltName=URI:spiffe://blue/client/old,DNS:client.blue\n";
    openssl({"req", "-new", "-key", *folder_ / "good/client.key", "-subj", "/CN=old", "-out",
             *folder_ / "old.csr"});
    openssl({"x509", "-req", "-days", "-1", "-in", *folder_ / "old.csr", "-CA",
             *folder_ / "good/ca.pem", "-CAkey", *folder_ / "good/ca.key", "-CAcreateserial",
             "-extfile", extensions, "-out", *folder_ / "old.pem"});
  }
  static void TearDownTestSuite() { delete folder_; }
  static void make(const std::string& name) {
    ChildProcess process(
        {LEAT_BIN_DIR "/leat", "certificates", *folder_ / name, *folder_ / "cluster.json"});
    ASSERT_EQ(process.wait(), 0) << process.output();
  }
  static TlsPaths paths(const std::string& name, const std::string& ca = "good") {
    return {*folder_ / (ca + "/ca.pem"), *folder_ / (ca + "/" + name + ".pem"),
            *folder_ / (ca + "/" + name + ".key")};
  }
  void TearDown() override {
    for (const char* name : {tls_ca_variable, tls_certificate_variable, tls_key_variable})
      unsetenv(name);
  }
  static void be_client(const TlsPaths& paths) {
    setenv(tls_ca_variable, paths.ca.c_str(), 1);
    setenv(tls_certificate_variable, paths.certificate.c_str(), 1);
    setenv(tls_key_variable, paths.key.c_str(), 1);
  }

  // All tasks, started and connected.
  struct Cluster {
    explicit Cluster(bool has_tls, int plaintext_port = -1) {
      spec = ClusterSpec::parse(cluster_json);
      if (has_tls) spec.set_tls(paths("{name}"));
      for (const TaskName& name : spec.tasks())
        tasks[name] = std::make_unique<Task>(
            spec, name,
            TaskOptions{.threads = 1, .plaintext_port = name == worker0 ? plaintext_port : -1});
      for (const auto& [name, task] : tasks) spec.set_address(name, task->address());
      for (const auto& [name, task] : tasks) task->start(spec);
      for (const auto& [name, task] : tasks) task->wait_for_peers();
    }
    ClusterSpec spec;
    std::map<TaskName, std::unique_ptr<Task>> tasks;
  };

  static std::vector<std::string> train(const std::string& target) {
    Graph graph;
    {
      const DeviceScope on(graph, "/job:ps/task:0");
      add_counter(graph, 0.25f);
    }
    SessionOptions options;
    options.target = target;
    options.timeout = std::chrono::seconds(30);
    const auto session = make_grpc_session(options);
    session->extend(graph);
    session->run({}, {}, {"init"});
    std::vector<std::string> out;
    for (int step = 0; step < 5; ++step) {
      session->run({}, {}, {"add"});
      out.push_back(session->run({}, {"w:0"}, {})[0].to_string());
    }
    return out;
  }

  static ScratchDirectory* folder_;
};
ScratchDirectory* Tls::folder_ = nullptr;

TEST_F(Tls, OnlyTheOwnerCanReadKeys) {
  for (const char* name : {"ca", "ps-0", "worker-1", "client"}) {
    struct stat found {};
    ASSERT_EQ(stat((*folder_ / (std::string("good/") + name + ".key")).c_str(), &found), 0) << name;
    EXPECT_EQ(found.st_mode & 0777, 0600u) << name;
  }
}

TEST_F(Tls, TrainingHasTheSameLossesAsWithoutTls) {
  std::vector<std::string> without;
  {
    Cluster cluster(false);
    without = train(cluster.tasks[worker0]->target());
  }
  Cluster cluster(true);
  be_client(paths("client"));
  EXPECT_EQ(train(cluster.tasks[worker0]->target()), without);
  EXPECT_THAT(to_text(view_cluster(cluster.tasks[ps0]->target())), HasSubstr("/job:worker/task:1"));
}

// Any stranger is rejected soon and learns nothing; its address is in the log.
TEST_F(Tls, RejectsAndLogsStrangers) {
  Cluster cluster(true);
  TlsPaths expired = paths("client");
  expired.certificate = *folder_ / "old.pem";
  TlsPaths only_ca = paths("client", "other");
  only_ca.ca = paths("client").ca;
  const std::pair<const char*, TlsPaths> strangers[] = {
      {"plaintext", {}},
      {"signed by another CA", only_ca},
      {"trusts another CA", paths("client", "other")},
      {"expired", expired},
  };
  for (const auto& [what, files] : strangers) {
    SCOPED_TRACE(what);
    testing::internal::CaptureStderr();
    const auto begin = Clock::now();
    RpcClient client(cluster.tasks[ps0]->address(), {.tls = read_tls(files, client_name)});
    const auto [status, answer] =
        client.call_and_wait(identify_method, "", {.deadline = begin + std::chrono::seconds(5)});
    const auto took = Clock::now() - begin;
    EXPECT_FALSE(status.is_ok());
    EXPECT_EQ(answer, "");
    EXPECT_LT(took, milliseconds(1'000)) << status.message;
    EXPECT_EQ(static_cast<int>(status.cause), static_cast<int>(RpcCause::untrusted))
        << status.message;
    client.close();
    std::this_thread::sleep_for(milliseconds(300));
    const std::string log = testing::internal::GetCapturedStderr();
    EXPECT_THAT(log, HasSubstr("/job:ps/task:0 refused ipv4:127.0.0.1:")) << status.message;
    EXPECT_THAT(log, Not(HasSubstr("gRPC:")));
  }
}

TEST_F(Tls, TellsATlsClientThatTheServerHasNoTls) {
  Cluster cluster(false);
  be_client(paths("client"));
  const auto begin = Clock::now();
  const Status status = error_of([&] { train(cluster.tasks[worker0]->target()); });
  EXPECT_LT(Clock::now() - begin, milliseconds(1'000));
  EXPECT_EQ(code_name(status.code), code_name(Code::unavailable)) << status.message;
  EXPECT_THAT(status.message, HasSubstr("TLS"));
}

TEST_F(Tls, TellsAPlainClientThatTheServerNeedsTls) {
  Cluster cluster(true);
  const auto begin = Clock::now();
  const Status status = error_of([&] { train(cluster.tasks[worker0]->target()); });
  EXPECT_LT(Clock::now() - begin, milliseconds(1'000));
  EXPECT_EQ(code_name(status.code), code_name(Code::unavailable)) << status.message;
}

TEST_F(Tls, ClientCertificateOpensOnlySessions) {
  Cluster cluster(true);
  RpcClient client(cluster.tasks[ps0]->address(),
                   {.tls = read_tls(paths("client"), client_name), .check_server = is_any_task()});
  testing::internal::CaptureStderr();
  for (const char* method :
       {"/leat.Worker/RegisterGraph", "/leat.Worker/GetStatus", "/leat.Worker/Reset"}) {
    const auto [status, answer] = client.call_and_wait(method, "");
    EXPECT_EQ(status.code, static_cast<int>(Code::permission_denied)) << status.message;
    EXPECT_THAT(status.message, HasSubstr("client"));
  }
  // A task's place, through the channel.
  const auto stream = client.open("/leat.Channel/Connect");
  std::promise<RpcStatus> ended;
  stream->start({.on_message = [](const Bytes&) { ADD_FAILURE() << "an answer"; },
                 .on_end = [&](const RpcStatus& status) { ended.set_value(status); },
                 .on_written = {}});
  EXPECT_EQ(ended.get_future().get().code, static_cast<int>(Code::permission_denied));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("refused ipv4:127.0.0.1:"), HasSubstr("/leat.Channel/Connect")));
}

TEST_F(Tls, TaskCertificateIsValidOnlyForItsTask) {
  Cluster cluster(true);
  cluster.tasks[worker1].reset();
  ClusterSpec spec = cluster.spec;
  spec.set_tls(paths("worker-0"));
  testing::internal::CaptureStderr();
  Task impostor(spec, worker1, TaskOptions{.threads = 1});
  impostor.start(spec);
  const Status status = error_of([&] { impostor.wait_for_peers(std::chrono::seconds(1)); });
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(status.message, HasSubstr("not /job:worker/task:1, which it claims to be"));
  EXPECT_THAT(log, AllOf(HasSubstr("/job:ps/task:0 refused ipv4:127.0.0.1:"),
                         HasSubstr("which it claims to be")));
  EXPECT_NE(peer_state_name(cluster.tasks[ps0]->membership().peer(worker1).state), "connected");
}

// The other way round: the dialled task must be the expected one, or the dialler sends nothing.
TEST_F(Tls, DialledTaskMustHaveTheExpectedCertificate) {
  Cluster cluster(true);
  RpcClient client(cluster.tasks[worker1]->address(),
                   {.tls = read_tls(paths("worker-0"), ""), .check_server = is_task(ps0, "blue")});
  const auto begin = Clock::now();
  const auto [status, answer] = client.call_and_wait(identify_method, "");
  EXPECT_LT(Clock::now() - begin, milliseconds(1'000));
  EXPECT_THAT(status.message, AllOf(HasSubstr("worker-1.blue"), HasSubstr("/job:ps/task:0")));
  EXPECT_EQ(static_cast<int>(status.cause), static_cast<int>(RpcCause::untrusted));
}

TEST_F(Tls, PlaintextPortServesOnlyLocalSessions) {
  constexpr int any = 0;
  Cluster cluster(true, any);
  const std::string address = concat("127.0.0.1:", cluster.tasks[worker0]->plaintext_port());
  EXPECT_EQ(train("grpc://" + address).back(), "float[] 5.25");
  RpcClient client(address);
  EXPECT_EQ(client.call_and_wait("/leat.Worker/RegisterGraph", "").first.code,
            static_cast<int>(Code::permission_denied));
}

// Larger than a frame of the client's channel, in the first step and when the channel is there.
TEST_F(Tls, PlaintextPortGivesLargeTensors) {
  constexpr int any = 0, elements = 1 << 20;
  Cluster cluster(true, any);
  SessionOptions options;
  options.target = concat("grpc://127.0.0.1:", cluster.tasks[worker0]->plaintext_port());
  options.timeout = std::chrono::seconds(30);
  const auto session = make_grpc_session(options);
  session->extend(
      parse(concat("n = Const(dtype=int32, value=int32[1] [", elements, "])\n",
                   "zero = Const(dtype=float, value=float[] [1])\n", "x = Fill(n, zero)")));
  for (int step = 0; step < 20; ++step) {
    ASSERT_EQ(session->run({}, {"x:0"}, {})[0].elements(), elements);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

TEST_F(Tls, NamesMissingTlsFilesAndSettings) {
  const auto task = [](const TlsPaths& tls, const char* text = cluster_json) {
    ClusterSpec spec = ClusterSpec::parse(text);
    spec.set_tls(tls);
    Task(spec, ps0, TaskOptions{.threads = 1});
  };
  expect_error_with(Code::not_found, "no-such.pem", [&] {
    task({*folder_ / "no-such.pem", "b", "c"});
  });
  expect_error_with(Code::invalid_argument, "a key (key", [&] { task({"a", "b", ""}); });
  expect_error_with(Code::invalid_argument, "PEM", [&] {
    task({*folder_ / "cluster.json", "b", "c"});
  });
  expect_error_with(Code::invalid_argument, "cluster_id",
                    [&] { task(paths("ps-0"), R"({"cluster": {"ps": ["127.0.0.1:0"]}})"); });
  TlsPaths mixed = paths("ps-0");
  mixed.key = paths("worker-0").key;
  expect_error_with(Code::unavailable, "the key does not belong to the certificate",
                    [&] { task(mixed); });
}

// Without TLS: a peer that does not know the cluster's id does not learn it either.
TEST(Identify, RevealsNothingToStrangers) {
  ClusterSpec spec = ClusterSpec::parse(cluster_json);
  Task task(spec, ps0, TaskOptions{.threads = 1});
  RpcClient client(task.address());
  for (const char* id : {"", "green"}) {
    const std::string request = encode(Hello{make_identity(id, worker0), ps0, 0, {}, {}});
    const auto [status, answer] = client.call_and_wait(identify_method, request);
    ASSERT_TRUE(status.is_ok()) << status.message;
    EXPECT_THAT(answer, Not(HasSubstr("blue")));
    const Hello told = decode_hello(answer);
    EXPECT_THAT(told.from.task.job, IsEmpty());
    EXPECT_THAT(told.from.process, IsEmpty());
    EXPECT_THAT(told.proof, IsEmpty());
    EXPECT_NE(told.from.incarnation, task.incarnation());
  }
  const std::string request = encode(Hello{make_identity("blue", worker0), ps0, 0, {}, {}});
  EXPECT_EQ(decode_hello(client.call_and_wait(identify_method, request).second).from.task, ps0);
  const auto [status, answer] = client.call_and_wait("/leat.Worker/GetStatus", "");
  EXPECT_THAT(answer, Not(HasSubstr("blue")));
}

// A proof for one task does not convince another.
TEST(Identify, ProofIsValidForOneTaskAndOneProcess) {
  const TaskIdentity self = make_identity("blue", ps0, true);
  const TaskIdentity caller = make_identity("blue", worker0, true);
  Hello hello = decode_hello(encode(Hello{caller, ps0, 0, {}, {}}));
  EXPECT_TRUE(check_hello(hello, self).is_ok());
  Hello elsewhere = decode_hello(encode(Hello{caller, worker1, 0, {}, {}}));
  elsewhere.to = ps0;
  EXPECT_FALSE(check_hello(elsewhere, self).is_ok());
  hello.from.incarnation += 1;
  EXPECT_FALSE(check_hello(hello, self).is_ok());
  const Hello without = decode_hello(encode(Hello{make_identity("", worker0), ps0, 0, {}, {}}));
  EXPECT_THAT(check_hello(without, self).message, HasSubstr("does not know the cluster_id"));
}

}  // namespace
}  // namespace leat
