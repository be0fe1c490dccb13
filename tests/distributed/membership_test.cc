// Who is connected, who is not and why, and how fast a loss is reported.
#include "distributed/cluster/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <fstream>

#include "distributed/grpc/rpc_client.h"
#include "tests/support/connected_tasks.h"
#include "tests/support/eventually.h"
#include "tests/support/expect_error.h"
#include "tests/support/faulty_stream.h"
#include "tests/support/scratch_directory.h"

extern char** environ;  // NOLINT

namespace leat {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const TaskName ps0{"ps", 0}, worker0{"worker", 0}, worker1{"worker", 1};

template <class Call>
Error error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error was thrown";
  return {Code::ok, ""};
}

TEST(Identity, RoundTripsAsBytesAndPrintsAsText) {
  TaskIdentity identity = make_identity("our-cluster", worker1);
  EXPECT_NE(identity.incarnation, 0u);
  EXPECT_NE(identity.incarnation, make_identity("our-cluster", worker1).incarnation);
  EXPECT_THAT(identity.to_string(),
              AllOf(HasSubstr("/job:worker/task:1"), HasSubstr(identity.process)));
  const Hello hello{identity, ps0, 123, "silence"};
  const Hello copy = decode_hello(encode(hello));
  EXPECT_EQ(copy.from.task, identity.task);
  EXPECT_EQ(copy.from.incarnation, identity.incarnation);
  EXPECT_EQ(copy.from.process, identity.process);
  // A name that no hexadecimal digest can contain by chance.
  EXPECT_THAT(encode(hello), Not(HasSubstr("our-cluster")));
  EXPECT_EQ(copy.to, ps0);
  EXPECT_EQ(copy.window, 123u);
  EXPECT_EQ(copy.why_again, "silence");
  const std::string bytes = encode(hello);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THROW(decode_hello(std::string_view(bytes).substr(0, size)), Error) << size;
  }
}

TEST(Identity, ChecksHellosAndAnswers) {
  const TaskIdentity ps = make_identity("our-cluster", ps0),
                     worker = make_identity("our-cluster", worker1);
  const auto sent = [](const Hello& hello) { return decode_hello(encode(hello)); };
  EXPECT_TRUE(check_hello(sent({worker, ps0, 1}), ps).is_ok());
  EXPECT_TRUE(check_answer(sent({ps, worker1}), ps0, "h:1", worker).is_ok());

  Status status = check_hello(sent({make_identity("other", worker1), ps0, 1}), ps);
  EXPECT_EQ(status.code, Code::failed_precondition);
  EXPECT_THAT(status.message, AllOf(HasSubstr("another cluster"), Not(HasSubstr("our-cluster")),
                                    HasSubstr("/job:worker/task:1"), HasSubstr("/job:ps/task:0")));
  EXPECT_TRUE(check_hello(sent({make_identity("", worker1), ps0, 1}), ps).is_ok())
      << "a sparse spec does not know the id";

  status = check_hello(sent({worker, worker0, 1}), ps);
  EXPECT_THAT(status.message, AllOf(HasSubstr("another task answers there"),
                                    HasSubstr("/job:worker/task:0"), HasSubstr("/job:ps/task:0")));
  status = check_answer(sent({ps, worker1}), worker0, "h:1", worker);
  EXPECT_THAT(status.message, AllOf(HasSubstr("another task answers there"), HasSubstr("h:1"),
                                    HasSubstr("/job:worker/task:0"), HasSubstr("/job:ps/task:0")));

  TaskIdentity newer = worker;
  newer.version = protocol_version + 1;
  status = check_hello(decode_hello(encode(Hello{newer, ps0, 1})), ps);
  EXPECT_THAT(status.message, AllOf(HasSubstr(concat("version ", protocol_version + 1)),
                                    HasSubstr(concat("version ", protocol_version))));
}

TEST(Membership, AllTasksFindEachOther) {
  ConnectedTasks tasks({"ps:0", "ps:1", "worker:0", "worker:1", "worker:2"});
  tasks.start_all();
  tasks.wait_until_connected();
  for (const PeerStatus& peer : tasks["worker:1"].membership->peers()) {
    EXPECT_EQ(peer.state, PeerState::connected) << peer.task;
    EXPECT_EQ(peer.reason, "");
    EXPECT_NE(peer.incarnation, 0u);
    EXPECT_GE(peer.last_heard.count(), 0);
  }
  EXPECT_EQ(tasks["worker:1"].membership->peer(ps0).incarnation,
            tasks["ps:0"].identity.incarnation);
  EXPECT_EQ(tasks["ps:0"].membership->peer(worker1).incarnation,
            tasks["worker:1"].identity.incarnation);
  EXPECT_TRUE(tasks["ps:0"].membership->status_of(worker1).is_ok());
  EXPECT_THAT(tasks["ps:0"].membership->last_heard(worker1), HasSubstr("last heard 0."));
}

TEST(Membership, TableNamesMissingTasksAndReasons) {
  ConnectedTasks tasks({"ps:0", "worker:0"});
  int free_port;
  {
    RpcServer probe;
    free_port = probe.start("127.0.0.1:0");
  }
  const std::string nobody = "127.0.0.1:" + std::to_string(free_port);
  tasks.spec.add({"ps", 1}, nobody);  // worker:0 dials it
  tasks.spec.add({"ps", 2}, "no-such-host.invalid:2222");
  tasks.spec.add({"worker", 1}, "127.0.0.1:1");  // it would dial worker:0
  tasks.start_all();
  tasks["worker:0"].membership->wait_until_connected(seconds(60), std::vector{ps0});
  auto& membership = *tasks["worker:0"].membership;
  ASSERT_TRUE(eventually([&] {
    return membership.peer({"ps", 1}).state == PeerState::refused &&
           membership.peer({"ps", 2}).state == PeerState::unresolvable;
  }));
  const Error error = error_of([&] { membership.wait_until_connected(milliseconds(10)); });
  EXPECT_EQ(error.code(), Code::unavailable);
  EXPECT_THAT(error.message(),
              AllOf(HasSubstr("/job:worker/task:0 could not connect to 3 tasks within 0.0 s"),
                    HasSubstr("/job:ps/task:1"), HasSubstr(nobody), HasSubstr("refused"),
                    HasSubstr("Connection refused"), HasSubstr("unresolvable"),
                    HasSubstr("no-such-host.invalid:2222"), Not(HasSubstr("/job:ps/task:0"))));
  EXPECT_THAT(membership.table(), AllOf(HasSubstr("/job:ps/task:0"), HasSubstr("connected")));
  EXPECT_THAT(membership.status_of({"ps", 1}).message,
              HasSubstr("is not connected: refused: Connection refused, never heard from"));
  // A task probes a peer even if that peer is to dial it.
  auto& ps = *tasks["ps:0"].membership;
  EXPECT_TRUE(eventually([&] { return ps.peer({"ps", 1}).state == PeerState::refused; }));
}

TEST(Membership, FindsLateTasks) {
  ConnectedTasks tasks({"ps:0", "worker:0"});
  tasks.start("ps:0");
  auto& ps = *tasks["ps:0"].membership;
  ASSERT_TRUE(eventually([&] { return ps.peer(worker0).state == PeerState::waiting; }));
  EXPECT_EQ(ps.peer(worker0).reason, "it has not connected yet");
  tasks.start("worker:0");
  tasks.wait_until_connected();
}

TEST(Membership, AsksUnreadyTasksAgain) {
  ConnectedTasks tasks({"ps:0", "worker:0"});
  tasks.start("worker:0");  // the server of ps:0 runs, its membership does not
  auto& worker = *tasks["worker:0"].membership;
  ASSERT_TRUE(eventually([&] { return worker.peer(ps0).reason == "it is not ready yet"; }))
      << worker.table();
  tasks.start("ps:0");
  tasks.wait_until_connected();
}

TEST(Membership, RejectsAnotherCluster) {
  ConnectedTasks tasks({"ps:0"});
  tasks.add("worker:0", "other");
  tasks.start_all();
  for (const auto& [at, other] : {std::pair("ps:0", worker0), std::pair("worker:0", ps0)}) {
    auto& membership = *tasks[at].membership;
    ASSERT_TRUE(eventually([&, &of = other] {
      return membership.peer(of).state == PeerState::rejected;
    })) << membership.table();
    EXPECT_THAT(membership.peer(other).reason,
                AllOf(HasSubstr("another cluster"), Not(HasSubstr("\"other\"")),
                      Not(HasSubstr("\"test\""))));
  }
}

TEST(Membership, RejectsAnotherTaskAtTheAddress) {
  ConnectedTasks tasks({"ps:0", "ps:1", "worker:0"});
  ClusterSpec swapped = tasks.spec;
  const std::string first = swapped.address(ps0), second = swapped.address({"ps", 1});
  swapped.set_address(ps0, "127.0.0.1:1");
  swapped.set_address({"ps", 1}, first);
  swapped.set_address(ps0, second);
  tasks.start("ps:0");
  tasks.start("ps:1");
  tasks["worker:0"].membership->start(swapped, tasks["worker:0"].router);
  auto& worker = *tasks["worker:0"].membership;
  ASSERT_TRUE(eventually([&] {
    return worker.peer(ps0).state == PeerState::rejected &&
           worker.peer({"ps", 1}).state == PeerState::rejected;
  })) << worker.table();
  EXPECT_THAT(worker.peer(ps0).reason,
              AllOf(HasSubstr("another task answers there"), HasSubstr("/job:ps/task:0"),
                    HasSubstr("/job:ps/task:1")));
}

TEST(Membership, RejectsASecondOwnerOfATask) {
  MembershipOptions options;
  options.heartbeat = milliseconds(50);
  options.silence = milliseconds(2'000);
  ConnectedTasks tasks({"ps:0", "worker:0"}, options);
  tasks.start_all();
  tasks.wait_until_connected();
  const uint64_t first = tasks["worker:0"].identity.incarnation;

  ConnectedTask second(make_identity("test", worker0), options, {});
  ClusterSpec spec = tasks.spec;
  spec.set_address(worker0, second.address);
  second.membership->start(spec, second.router);
  const Error error = error_of([&] { second.membership->wait_until_connected(); });
  EXPECT_EQ(error.code(), Code::already_exists);
  EXPECT_THAT(error.message(),
              AllOf(HasSubstr("/job:worker/task:0 has an owner already"),
                    HasSubstr(tasks["worker:0"].identity.process), HasSubstr("last heard")));
  EXPECT_EQ(tasks["ps:0"].membership->peer(worker0).incarnation, first);
  EXPECT_TRUE(tasks["ps:0"].membership->is_connected(worker0));
}

// Counts losses. Outlives the membership that it listens to.
struct Losses {
  std::mutex mutex;
  std::vector<std::pair<TaskName, Status>> all;
  void listen(Membership& membership) {
    membership.on_lost([this](const TaskName& task, const Status& status) {
      std::lock_guard lock(mutex);
      all.emplace_back(task, status);
    });
  }
  size_t count() {
    std::lock_guard lock(mutex);
    return all.size();
  }
};

TEST(Membership, SurvivesListenersThatThrow) {
  ConnectedTasks tasks({"ps:0", "worker:0"});
  Membership& membership = *tasks["worker:0"].membership;
  std::atomic<int> changes{0}, losses{0};
  membership.on_change([&](const PeerStatus&) {
    ++changes;
    throw std::runtime_error("no more");
  });
  membership.on_lost([&](const TaskName&, const Status&) {
    ++losses;
    fail(Code::internal, "no more");
  });
  tasks.start_all();
  tasks.wait_until_connected();
  tasks.stop("ps:0");
  EXPECT_TRUE(eventually([&] { return losses == 1; }));
  EXPECT_GE(changes, 2);
  tasks.stop("worker:0");  // ends the process if a callback still seems to run
}

TEST(Membership, LostTaskMayComeBack) {
  Losses losses;
  ConnectedTasks tasks({"ps:0", "worker:0", "worker:1"});
  losses.listen(*tasks["worker:0"].membership);
  tasks.start_all();
  tasks.wait_until_connected();
  const uint64_t first = tasks["ps:0"].identity.incarnation;
  tasks.stop("ps:0", /*politely=*/false);
  ASSERT_TRUE(eventually([&] { return losses.count() == 1; }));
  EXPECT_EQ(losses.all[0].first, ps0);
  EXPECT_EQ(losses.all[0].second.code, Code::unavailable);
  EXPECT_THAT(losses.all[0].second.message,
              AllOf(HasSubstr("/job:ps/task:0 (" + tasks.spec.address(ps0) + ") is gone: "),
                    HasSubstr("last heard 0.")));
  auto& worker = *tasks["worker:0"].membership;
  EXPECT_FALSE(worker.is_connected(ps0));
  EXPECT_EQ(worker.status_of(ps0).code, Code::unavailable);
  EXPECT_TRUE(worker.is_connected(worker1));

  // The same task as a new process at the same address.
  const std::string address = tasks.spec.address(ps0);
  Membership again(make_identity("test", ps0));
  RpcServer server;
  again.attach(server);
  server.start(address);
  again.start(tasks.spec, std::make_shared<RendezvousRouter>(ps0));
  again.wait_until_connected();
  ASSERT_TRUE(eventually([&] { return worker.is_connected(ps0); }));
  EXPECT_NE(worker.peer(ps0).incarnation, first);
  EXPECT_EQ(worker.peer(ps0).incarnation, again.self().incarnation);
}

TEST(Membership, ReportsAStoppedTaskAsStopped) {
  Losses losses;
  ConnectedTasks tasks({"ps:0", "worker:0"});
  losses.listen(*tasks["ps:0"].membership);
  tasks.start_all();
  tasks.wait_until_connected();
  tasks.stop("worker:0");
  ASSERT_TRUE(eventually([&] { return losses.count() == 1; }));
  EXPECT_THAT(losses.all[0].second.message, HasSubstr("it was stopped"));
}

TEST(Membership, ReconnectsABrokenConnection) {
  Faults faults;
  MembershipOptions options;
  options.wrap_stream = [&](const TaskName&, std::shared_ptr<RpcStream> stream) {
    return faults.wrap(std::move(stream));
  };
  Losses losses;
  ConnectedTasks tasks({"ps:0", "worker:0"}, options);
  losses.listen(*tasks["ps:0"].membership);
  tasks.start_all();
  for (size_t round = 1; round <= 5; ++round) {
    tasks.wait_until_connected();
    faults.cut();
    ASSERT_TRUE(eventually([&] { return losses.count() == round; }));
  }
  tasks.wait_until_connected();
}

TEST(Membership, SilentTaskIsLost) {
  Faults faults;
  MembershipOptions options;
  options.heartbeat = milliseconds(20);
  options.silence = milliseconds(600);
  options.wrap_stream = [&](const TaskName&, std::shared_ptr<RpcStream> stream) {
    return faults.wrap(std::move(stream));
  };
  Losses at_ps, at_worker;
  ConnectedTasks tasks({"ps:0", "worker:0"}, options);
  at_ps.listen(*tasks["ps:0"].membership);
  at_worker.listen(*tasks["worker:0"].membership);
  tasks.start_all();
  tasks.wait_until_connected();
  faults.freeze();
  ASSERT_TRUE(eventually([&] { return at_ps.count() == 1 && at_worker.count() == 1; }));
  // The end that notices first ends the stream of both.
  EXPECT_THAT(at_ps.all[0].second.message + at_worker.all[0].second.message,
              AllOf(HasSubstr("it has been silent for 0."), HasSubstr("last heard 0.")));
  faults.freeze(false);
  tasks.wait_until_connected();
}

TEST(Membership, MissesNoHeartbeatWithoutFaults) {
  MembershipOptions options;
  options.heartbeat = milliseconds(20);
  options.silence = milliseconds(2'000);
  Losses losses;
  ConnectedTasks tasks({"ps:0", "worker:0"}, options);
  losses.listen(*tasks["ps:0"].membership);
  tasks.start_all();
  tasks.wait_until_connected();
  const auto received = [&] { return tasks["ps:0"].membership->peer(worker0).last_heard; };
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(eventually([&] { return received() > milliseconds(5); }));
    ASSERT_TRUE(eventually([&] { return received() < milliseconds(5); }));
  }
  EXPECT_EQ(losses.count(), 0u);
}

// ---- A peer that is another process ----

// Not a test: the child process runs this. It takes its place in the cluster and stays until it is
// killed.
TEST(MembershipChild, DISABLED_Runs) {
  const char* spec_text = std::getenv("LEAT_TEST_SPEC");
  ASSERT_NE(spec_text, nullptr);
  ClusterSpec spec = ClusterSpec::parse(spec_text);
  Membership membership(make_identity(spec.id(), worker0));
  RpcServer server;
  membership.attach(server);
  server.start("127.0.0.1:0");
  membership.on_lost([](const TaskName&, const Status& status) {
    if (const char* path = std::getenv("LEAT_TEST_LOSSES"))
      std::ofstream(path, std::ios::app) << status.message << std::endl;
  });
  membership.start(spec, std::make_shared<RendezvousRouter>(worker0));
  membership.wait_until_connected();
  if (const char* path = std::getenv("LEAT_TEST_LOSSES"))
    std::ofstream(path, std::ios::app) << "connected" << std::endl;
  const pid_t parent = getppid();
  eventually([&] { return getppid() != parent; }, seconds(100));
}

struct Child {
  pid_t pid = -1;

  explicit Child(const ClusterSpec& spec) {
    std::vector<std::string> environment;
    for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
    environment.push_back("LEAT_TEST_SPEC=" + spec.to_json());
    std::vector<char*> environment_pointers;
    for (std::string& entry : environment) environment_pointers.push_back(entry.data());
    environment_pointers.push_back(nullptr);
    std::string program = "/proc/self/exe", filter = "--gtest_filter=MembershipChild.DISABLED_Runs",
                disabled = "--gtest_also_run_disabled_tests", quiet = "--gtest_brief=1";
    char* arguments[] = {program.data(), filter.data(), disabled.data(), quiet.data(), nullptr};
    const int error = posix_spawn(&pid, program.c_str(), nullptr, nullptr, arguments,
                                  environment_pointers.data());
    EXPECT_EQ(error, 0);
  }
  void signal(int number) const { kill(pid, number); }
  ~Child() {
    signal(SIGKILL);
    waitpid(pid, nullptr, 0);
  }
};

struct WithChild {
  Losses losses;
  ConnectedTasks tasks{std::vector<std::string>{"ps:0"}};
  std::unique_ptr<Child> child;

  WithChild() {
    tasks.spec.add(worker0, "127.0.0.1:1");  // it dials
    tasks.spec.set_id("test");
    losses.listen(*tasks["ps:0"].membership);
    tasks.start_all();
    child = std::make_unique<Child>(tasks.spec);
    tasks.wait_until_connected();
  }
};

TEST(MembershipProcess, KilledTaskIsLostAtOnce) {
  WithChild with;
  const auto begin = std::chrono::steady_clock::now();
  with.child->signal(SIGKILL);
  ASSERT_TRUE(eventually([&] { return with.losses.count() == 1; }));
  RecordProperty("milliseconds",
                 static_cast<int>((std::chrono::steady_clock::now() - begin) / milliseconds(1)));
  EXPECT_THAT(with.losses.all[0].second.message,
              HasSubstr("/job:worker/task:0 (127.0.0.1:1) is gone"));
  EXPECT_THAT(with.losses.all[0].second.message, HasSubstr("last heard 0."));
}

TEST(MembershipProcess, FrozenTaskIsLostAfterTheSilence) {
  const ScratchDirectory folder;
  const std::string losses = folder / "losses";
  setenv("LEAT_TEST_LOSSES", losses.c_str(), 1);  // for the child
  WithChild with;
  unsetenv("LEAT_TEST_LOSSES");
  std::string told;
  const auto child_tells = [&](const std::string& text) {
    return eventually([&] {
      std::ifstream file(losses);
      told.assign(std::istreambuf_iterator<char>(file), {});
      return told.find(text) != std::string::npos;
    });
  };
  ASSERT_TRUE(child_tells("connected"));
  with.child->signal(SIGSTOP);
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(eventually([&] { return with.losses.count() == 1; }));
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_THAT(with.losses.all[0].second.message, HasSubstr("it has been silent for 6."));
  RecordProperty("milliseconds", static_cast<int>(took / milliseconds(1)));
  // It wakes up, sees that the others gave it up, and comes back as the same incarnation.
  const uint64_t first = with.tasks["ps:0"].membership->peer(worker0).incarnation;
  with.child->signal(SIGCONT);
  with.tasks.wait_until_connected();
  EXPECT_EQ(with.tasks["ps:0"].membership->peer(worker0).incarnation, first);
  // It blames itself, not the innocent.
  EXPECT_TRUE(child_tells("/job:worker/task:0 itself was frozen for ")) << told;
}

}  // namespace
}  // namespace leat
