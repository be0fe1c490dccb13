#include "tests/support/connected_tasks.h"

namespace leat {

ConnectedTask::ConnectedTask(TaskIdentity identity, MembershipOptions membership_options,
                             RouterOptions router_options)
    : identity(std::move(identity)),
      router(std::make_shared<RendezvousRouter>(this->identity.task, std::move(router_options))),
      membership(std::make_unique<Membership>(this->identity, std::move(membership_options))) {
  membership->attach(server);
  address = "127.0.0.1:" + std::to_string(server.start("127.0.0.1:0"));
}

void ConnectedTask::stop(bool politely) {
  if (!politely) server.stop();
  membership.reset();
  server.stop();
}

ConnectedTasks::ConnectedTasks(const std::vector<std::string>& names, MembershipOptions options,
                               RouterOptions router)
    : options_(std::move(options)), router_options_(std::move(router)) {
  for (const std::string& name : names) add(name);
}

TaskName ConnectedTasks::task(const std::string& name) {
  const size_t colon = name.find(':');
  return {name.substr(0, colon), std::stoi(name.substr(colon + 1))};
}

ConnectedTask& ConnectedTasks::add(const std::string& name, const std::string& cluster_id) {
  auto made = std::make_unique<ConnectedTask>(make_identity(cluster_id, task(name)), options_,
                                              router_options_);
  if (spec.contains(task(name))) {
    spec.set_address(task(name), made->address);
  } else {
    spec.add(task(name), made->address);
  }
  return *(tasks_[name] = std::move(made));
}

void ConnectedTasks::start_all() {
  for (auto& [name, task] : tasks_) start(name);
}

void ConnectedTasks::wait_until_connected() {
  for (auto& [name, task] : tasks_) {
    if (task->membership) task->membership->wait_until_connected();
  }
}

}  // namespace leat
