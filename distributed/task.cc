#include "distributed/task.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <future>
#include <iostream>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "core/device.h"
#include "core/execution/thread_pool.h"
#include "core/execution/work_source.h"
#include "core/file_roots.h"
#include "core/memory/block_memory.h"
#include "core/memory/malloc_heap.h"
#include "core/memory/memory_limit.h"
#include "distributed/cluster/exposure.h"
#include "distributed/cluster/identity.h"
#include "distributed/cluster/membership.h"
#include "distributed/cluster/tls.h"
#include "distributed/cluster_view.h"
#include "distributed/grpc/rpc_client.h"
#include "distributed/grpc/rpc_server.h"
#include "distributed/master/client_links.h"
#include "distributed/master/local_master.h"
#include "distributed/master/master.h"
#include "distributed/master/master_service.h"
#include "distributed/timer.h"
#include "distributed/wire/master_codec.h"
#include "distributed/worker/remote_worker.h"
#include "distributed/worker/rendezvous_router.h"
#include "distributed/worker/worker.h"
#include "distributed/worker/worker_service.h"
#include "distributed/worker/worker_wire.h"

namespace leat {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto close_limit = std::chrono::seconds(3);
constexpr auto drain_interval = std::chrono::milliseconds(10);
// How often a task looks what it can give back.
constexpr auto look_interval = std::chrono::seconds(1);
// The memory of steps that have not been run for so long, or twice as long, is given back.
constexpr auto memory_of_steps = std::chrono::seconds(10);
// Big buffers that nothing has used for so long, or twice as long: longer than from one checkpoint
// to the next, which need them again.
constexpr auto memory_of_blocks = std::chrono::seconds(4);
// Programs that nobody has asked for for so long make room, if making them again is quick even
// sooner: they were needed once (to initialise, to restore), or their client has been killed.
constexpr auto memory_of_programs = std::chrono::seconds(30);
// For who has the port of a task to say so.
constexpr auto owner_limit = std::chrono::milliseconds(1'500);
// Trimming the heap takes a thousandth of the time at most.
constexpr int trim_share = 1'000;

// The pool counts a caller, but all work of a task comes from its queue: one thread more makes
// `threads` that compute. (1 would be a pool whose loops never ask for their step's end.)
int pool_size(int threads) {
  const int wanted =
      threads > 0 ? threads : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  return wanted == 1 ? 0 : wanted + 1;
}

// Who listens where a task cannot.
std::string owner_of_port(const std::string& address, const TaskIdentity& self,
                          const std::shared_ptr<const RpcTls>& tls) {
  RpcClient client(address, {.connect_timeout = owner_limit, .tls = tls});
  const auto [status, answer] =
      client.call_and_wait(identify_method, encode(Hello{self, self.task, 0, {}, {}}),
                           {.deadline = Clock::now() + owner_limit});
  client.close(owner_limit);
  if (status.cause == RpcCause::silent ||
      status.code == static_cast<int>(Code::deadline_exceeded)) {
    return "the process that uses it does not answer; it may be frozen";
  }
  try {
    if (status.is_ok()) {
      const TaskIdentity owner = decode_hello(answer).from;
      if (owner.incarnation == 0) return "a task of another version of Leat uses it";
      if (owner.task.job.empty()) return "a task of another cluster uses it";
      const size_t colon = owner.process.rfind(':');
      return concat(owner.task, " already uses it, process ", owner.process.substr(colon + 1),
                    " on ", owner.process.substr(0, colon),
                    self.cluster_id.empty() ? "" : ", cluster ", self.cluster_id);
    }
  } catch (const Error&) {  // no greeting
  }
  return "a program that is not a Leat task uses it";
}

FileRoots files_in(const ClusterSpec& spec) {
  return spec.files() ? FileRoots(*spec.files()) : any_file;
}

// Tells of refused peers, but no more than a log can hold of someone who tries all day.
class RefusalLog {
 public:
  void tell(const TaskName& self, const std::string& peer, const std::string& why) {
    std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    if (now - begin_ > interval) {
      if (told_ > most) std::cerr << concat("leat: ", self, " refused ", told_ - most, " more\n");
      begin_ = now;
      told_ = 0;
    }
    if (++told_ <= most)
      std::cerr << concat("leat: ", self, " refused ", peer, ": ", why, "\n") << std::flush;
  }

 private:
  static constexpr auto interval = std::chrono::seconds(10);
  static constexpr int most = 20;  // in one interval
  std::mutex mutex_;
  Clock::time_point begin_;
  int told_ = 0;
};

// Lets calls that come over channels in until the task goes. Channels may outlive it.
class CallGate : public std::enable_shared_from_this<CallGate> {
 public:
  explicit CallGate(const RpcServer& server)
      : dispatch_(server.dispatcher()), keep_(server.keeper()) {}

  // Only of methods that begin with `prefix`.
  CallHandlers handlers(std::string prefix) {
    const auto handle = [self = shared_from_this(), prefix = std::move(prefix)](RpcCall call) {
      std::shared_lock lock(self->mutex_);
      if (!self->dispatch_) return refuse(call, Code::unavailable, "the task has ended");
      if (call.method().starts_with(prefix)) return self->dispatch_(std::move(call));
      refuse(call, Code::permission_denied,
             concat(call.method(), " may not be called over this channel"));
    };
    return {.handle = handle, .keep = keep_};
  }
  // Waits for those that are inside.
  void close() {
    std::function<void(RpcCall)> last;  // what it holds goes after the lock
    std::unique_lock lock(mutex_);
    last.swap(dispatch_);
  }

 private:
  static void refuse(RpcCall& call, Code code, std::string why) {
    call.fail({static_cast<int>(code), std::move(why)});
  }

  std::shared_mutex mutex_;
  std::function<void(RpcCall)> dispatch_;  // empty once closed
  const std::function<RpcStatus(Slices, std::shared_ptr<const void>)> keep_;
};

DeviceName cpu_of(const TaskName& task) {
  DeviceName name = task.device_name();
  name.type = "CPU";
  name.id = 0;
  return name;
}

}  // namespace

// The members are destroyed from the last to the first: whatever calls goes before what is called.
class Task::State {
 public:
  State(const ClusterSpec& spec, const TaskName& name, const TaskOptions& options)
      : name_(name),
        pool_(pool_size(options.threads)),
        identity_(make_identity(spec.id(), name, spec.has_given_id())),
        tls_(read_tls(spec.tls(), certificate_name(name))),
        router_(std::make_shared<RendezvousRouter>(
            name, RouterOptions{.executor =
                                    [this](std::function<void()> work) {
                                      pool_.schedule(std::move(work));
                                    }})),
        membership_(std::make_shared<Membership>(
            identity_,
            MembershipOptions{
                .heartbeat = options.heartbeat, .silence = options.silence, .tls = tls_})),
        server_(server_options()) {
    const HostPort asked = HostPort::parse(spec.address(name));
    check(tls_ == nullptr || identity_.is_id_given,
          "a cluster with TLS needs a name, which its certificates contain: set \"cluster_id\"");
    check(tls_ != nullptr || options.plaintext_port < 0,
          "a separate plaintext port needs TLS: without it, every port of ", name, " is plaintext");
    devices_.push_back(make_cpu_device(cpu_of(name), pool_, files_in(spec)));
    if (options.gpus || spec.offers_gpus(name)) {
      for (auto& gpu : make_gpu_devices(name.device_name())) devices_.push_back(std::move(gpu));
    }
    WorkerOptions worker;
    worker.task = name;
    worker.cluster_id = identity_.cluster_id;
    worker.incarnation = identity_.incarnation;
    for (const auto& device : devices_) worker.devices.push_back(device.get());
    worker.pool = &pool_;
    worker.waits = &waits_;
    // Not by way of `this`: a kernel that ends late may end its step after the task has gone.
    worker.exchange.open = [router = router_](int64_t step, const auto& edges) {
      return router->open(step, edges);
    };
    worker.exchange.close = [router = router_](int64_t step) { router->close(step); };
    worker.exchange.meet = [router = router_](const auto& edges, std::function<void()> ready) {
      router->meet(edges, std::move(ready));
    };
    worker.exchange.sent_bytes = [router = router_] { return router->sent_bytes(); };
    worker.exchange.links = [membership = std::weak_ptr<Membership>(membership_)] {
      std::vector<PeerLink> links;
      const auto alive = membership.lock();
      if (alive == nullptr) return links;
      for (const PeerStatus& peer : alive->peers()) {
        if (peer.state == PeerState::connected) links.push_back({peer.task, peer.shares_memory});
      }
      return links;
    };
    worker_ = std::make_shared<Worker>(std::move(worker));
    master_ = std::make_shared<Master>(identity_.incarnation, pool_);
    listed_ = waits_.add([master = std::weak_ptr<Master>(master_)] {
      const auto alive = master.lock();
      return alive != nullptr ? alive->idle_sessions() : std::vector<StepActivity>();
    });
    serve_worker(server_, worker_);
    serve_master(server_, master_, pool_, timer_);
    serve_view(server_, [master = std::weak_ptr<Master>(master_)] {
      const auto alive = master.lock();
      if (alive == nullptr) fail(Code::unavailable, "this task is shutting down");
      return alive->peers();
    });
    membership_->attach(server_);
    membership_->serve_calls(gate_->handlers(worker_service));
    links_ = std::make_unique<ClientLinks>(identity_.incarnation, gate_->handlers(master_service));
    links_->attach(server_);
    membership_->on_lost([this](const TaskName& peer, const Status& status) {
      master_->task_lost(peer, status.message);
    });
    membership_->on_change([this, changed = options.on_peer_change](const PeerStatus& peer) {
      if (peer.state == PeerState::connected)
        worker_->master_connected(peer.task, peer.incarnation);
      if (changed) changed();
    });
    try {
      const int port = server_.start(
          asked.to_string(),
          options.plaintext_port < 0 ? "" : concat("127.0.0.1:", options.plaintext_port));
      address_ = HostPort{asked.host, port}.to_string();
      exposure_ = exposure_line(address_, tls_ != nullptr, files_in(spec).to_string());
    } catch (const std::exception& error) {
      std::string text = error.what();  // "cannot listen on …"
      if (text.ends_with(std::strerror(EADDRINUSE)))
        text += ": " + owner_of_port(spec.address(name), identity_, tls_);
      fail(Code::unavailable, name, " ", text);
    }
  }

  ~State() {
    shutdown(std::chrono::milliseconds(0));
    // What still comes from these uses the members.
    timer_.stop();
    pool_.wait_until_idle();
  }

  void start(const ClusterSpec& spec) {
    check(!spec.has_open_ports(), "the cluster has ports that are not known yet: ", spec.to_json());
    check(spec.contains(name_) && spec.address(name_) == address_, name_, " listens on ", address_,
          ", but the cluster says ", spec.to_json());
    const auto peers = std::make_shared<Peers>();
    peers->spec = spec;
    peers->cluster_id = identity_.cluster_id;
    peers->self = name_;
    peers->worker = [this](const TaskName& task) { return worker_of(task); };
    peers->last_heard = [this](const TaskName& task) {
      const std::shared_ptr<Membership> membership = this->membership();
      return task == name_ || membership == nullptr ? std::string() : membership->last_heard(task);
    };
    peers->is_lost = [this](const TaskName& task) {
      const std::shared_ptr<Membership> membership = this->membership();
      return task != name_ && membership != nullptr && membership->is_lost(task);
    };
    peers->timer = &timer_;
    peers->waits = &waits_;
    {
      std::lock_guard lock(mutex_);
      spec_ = spec;
    }
    router_->know(spec.tasks());
    membership_->start(spec, router_);
    if (spec.shares_memory()) links_->share_memory(concat(name_));
    master_->start(peers);
    local_ = register_local_master("grpc://" + address_, master_);
    next_drop_ = Clock::now() + memory_of_steps;
    keep_heap_ends();
    trim_heaps();  // before any work: what a step leaves free is not what the task began with
    drop_unused_later();
  }

  // What a burst (a recovery, a checkpoint) leaves free goes back to the system soon after it.
  void drop_unused_later() {
    timer_.after(look_interval, [this] {
      const WorkSource::Scope source(WorkSource::requests);
      pool_.schedule([this] { drop_unused(); });
    });
  }

  void drop_unused() {
    std::lock_guard lock(dropping_);
    if (is_shut_down_) return;
    master_->drop_unused(memory_of_programs);
    server_.drop_unasked();
    const Clock::time_point begin = Clock::now();
    if (begin >= next_block_trim_) {
      BlockMemory::process().trim();
      next_block_trim_ = begin + memory_of_blocks;
    }
    if (begin >= next_drop_) {
      next_drop_ = begin + memory_of_steps;
      worker_->drop_unused();  // trims the heap as well
    } else if (begin >= next_trim_) {
      trim_heaps();
      next_trim_ = Clock::now() + trim_share * (Clock::now() - begin);
    }
    drop_unused_later();
  }

  void shutdown(std::chrono::milliseconds grace) {
    if (is_shut_down_.exchange(true)) return;
    local_ = nullptr;
    { std::lock_guard no_more(dropping_); }
    const Status status{Code::unavailable, concat(name_, " (", address_, ") is shutting down"),
                        false};
    const Clock::time_point until = Clock::now() + grace;
    master_->refuse(status);
    has_work_left_ = !worker_->drain(status, grace);
    // Steps that clients of this task run on other tasks have the same grace.
    while (master_->running_steps() > 0 && Clock::now() < until)
      std::this_thread::sleep_for(drain_interval);
    const auto closed = std::make_shared<std::promise<void>>();
    master_->close(status, [closed] { closed->set_value(); });
    closed->get_future().wait_for(close_limit);
    std::shared_ptr<Membership> membership;
    {
      std::lock_guard lock(mutex_);
      membership.swap(membership_);
    }
    membership.reset();
    links_->stop();
    gate_->close();
    server_.stop(std::min<std::chrono::milliseconds>(grace, std::chrono::seconds(1)));
    std::map<TaskName, std::shared_ptr<RpcClient>> clients;
    {
      std::lock_guard lock(mutex_);
      clients.swap(clients_);
    }
    for (const auto& [task, client] : clients) client->close();
  }

  RpcServerOptions server_options() {
    RpcServerOptions out{.largest_message = largest_message()};
    if (tls_ == nullptr) return out;
    out.tls = tls_;
    out.authorize = [cluster = identity_.cluster_id](const std::string& method,
                                                     const RpcPeer& peer) {
      return authorize_call(method, peer, cluster);
    };
    out.on_refused = [this](const std::string& peer, const std::string& why) {
      refusals_.tell(name_, peer, why);
    };
    return out;
  }

  // Null after the shutdown.
  std::shared_ptr<Membership> membership() {
    std::lock_guard lock(mutex_);
    return membership_;
  }
  std::shared_ptr<Membership> open_membership() {
    std::shared_ptr<Membership> out = membership();
    if (out == nullptr) fail(Code::unavailable, name_, " (", address_, ") has been shut down");
    return out;
  }

  std::shared_ptr<WorkerClient> worker_of(const TaskName& task) {
    if (task == name_) return worker_;
    std::lock_guard lock(mutex_);
    std::shared_ptr<RpcClient>& client = clients_[task];
    if (client == nullptr)
      client = std::make_shared<RpcClient>(
          spec_.address(task),
          RpcClientOptions{.largest_message = largest_message(),
                           .tls = tls_,
                           .check_server = is_task(task, identity_.cluster_id)});
    return std::make_shared<RemoteWorker>(task, client, [this, task] {
      const std::shared_ptr<Membership> membership = this->membership();
      return membership == nullptr ? nullptr : membership->channel(task);
    });
  }

  const TaskName name_;
  ThreadPool pool_;
  Timer timer_;
  WaitList waits_;
  const TaskIdentity identity_;
  const std::shared_ptr<const RpcTls> tls_;
  RefusalLog refusals_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::mutex mutex_;     // of spec_, clients_ and membership_
  std::mutex dropping_;  // held while the memory of old steps is given back
  Clock::time_point next_block_trim_, next_drop_, next_trim_;
  ClusterSpec spec_;
  std::map<TaskName, std::shared_ptr<RpcClient>> clients_;
  std::shared_ptr<RendezvousRouter> router_;
  std::shared_ptr<Worker> worker_;
  std::shared_ptr<Master> master_;
  std::shared_ptr<Membership> membership_;
  RpcServer server_;
  const std::shared_ptr<CallGate> gate_ = std::make_shared<CallGate>(server_);
  std::unique_ptr<ClientLinks> links_;
  std::string address_, exposure_;
  std::atomic<bool> is_shut_down_{false};
  bool has_work_left_ = false;          // after the shutdown
  std::shared_ptr<const void> listed_;  // in waits_
  std::shared_ptr<const void> local_;   // among the masters of this process
};

Task::Task(const ClusterSpec& spec, const TaskName& name, TaskOptions options)
    : state_(std::make_unique<State>(spec, name, options)) {}

// A kernel that outlives the grace (a checkpoint on a slow disk) ends on the pool and the devices:
// they stay for it, as long as the process.
Task::~Task() {
  state_->shutdown(std::chrono::milliseconds(0));
  if (state_->has_work_left_) (void)state_.release();
}

const TaskName& Task::name() const { return state_->name_; }
std::string Task::address() const { return state_->address_; }
std::string Task::target() const { return "grpc://" + state_->address_; }
const std::string& Task::exposure() const { return state_->exposure_; }
int Task::plaintext_port() const { return state_->server_.plaintext_port(); }
uint64_t Task::incarnation() const { return state_->identity_.incarnation; }
void Task::start(const ClusterSpec& spec) { state_->start(spec); }
void Task::wait_for_peers(std::chrono::milliseconds limit) {
  state_->open_membership()->wait_until_connected(limit);
}
void Task::shutdown(std::chrono::milliseconds grace) { state_->shutdown(grace); }
Master& Task::master() { return *state_->master_; }
Worker& Task::worker() { return *state_->worker_; }
Membership& Task::membership() { return *state_->open_membership(); }

}  // namespace leat
