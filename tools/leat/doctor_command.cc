// `leat doctor`: what is built in, which devices and libraries exist, which tasks reach each other.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "frontends/cpp/strategies/parts/link_speed.h"
#include "tools/leat/commands.h"
#include "tools/leat/doctor_text.h"
#include "tools/leat/tls_flags.h"
#include "tools/standard_output.h"

namespace leat {
namespace {

struct Flags {
  std::string target;
  bool has_speed = false;
  TlsPaths tls;
};

// Of the first two workers, else of the first two tasks.
std::string speed_text(const std::string& target, const std::vector<Reach>& reaches) {
  std::vector<TaskName> tasks;
  for (const Reach& each : reaches) tasks.push_back(each.from);
  std::stable_partition(tasks.begin(), tasks.end(),
                        [](const TaskName& task) { return task.job == "worker"; });
  if (tasks.size() < 2) return "speed: the cluster has one task\n";
  const auto device = [](const TaskName& task) { return DeviceName::parse(task.to_string()); };
  const LinkSpeed speed = measure_link_speed(target, device(tasks[0]), device(tasks[1]));
  return fmt::format(
      "speed: a trip between {} and {} takes {:.0f} µs; each sends and receives {:.0f} MB/s\n",
      tasks[0].to_string(), tasks[1].to_string(), speed.trip_us, speed.megabytes_per_second);
}

}  // namespace

void add_doctor_command(CLI::App& app, int& exit_status) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* doctor = app.add_subcommand("doctor",
                                        "Show what this build can do here, or which tasks reach "
                                        "each other: leat doctor grpc://host:port");
  CLI::Option* target =
      doctor->add_option("target", flags->target,
                         "A task of a cluster: grpc://host:port (default: only this machine)");
  doctor
      ->add_flag("--speed", flags->has_speed,
                 "With a target: also measure how fast two of its workers exchange tensors, as "
                 "strategies do; this takes a quarter of a second of their time")
      ->needs(target);
  add_tls_flags(*doctor, flags->tls);
  doctor->footer(R"(
With a target: a line for each task of its cluster. "reaches" is what the task itself reports about the others, and whether
tensors and steps go to them through shared memory (of one host) or gRPC; this machine cannot ask a task that it does not reach.

Exit status: 0; 1 if a task does not reach another or does not answer; 2 for a mistake in the command line.)");
  doctor->callback([flags, &exit_status] {
    exit_status = 0;
    std::string text = description_of_this_machine();
    if (!flags->target.empty()) {
      if (flags->target.find("://") == std::string::npos) flags->target = "grpc://" + flags->target;
      set_client_tls(flags->tls);
      bool all = true;
      const std::vector<Reach> reaches = who_reaches_whom(flags->target);
      text += "cluster\n" + to_text(reaches, all);
      if (flags->has_speed) text += speed_text(flags->target, reaches);
      if (!all) exit_status = 1;
    }
    std::cout << text;
    finish_standard_output();
  });
}

}  // namespace leat
