// Device names: /job:worker/replica:0/task:1/device:GPU:0. Any part may be missing or *.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

namespace leat {

// A parsed name, or a constraint on one: absent parts are unconstrained. Types are upper case
// ("CPU", "GPU").
struct DeviceName {
  std::optional<std::string> job;
  std::optional<int> replica;
  std::optional<int> task;
  std::optional<std::string> type;
  std::optional<int> id;

  // Accepts TensorFlow's forms: "/job:ps/task:0/device:CPU:0", "/cpu:0", "/gpu:*", "/device:GPU",
  // "". INVALID_ARGUMENT names the part that is wrong and shows a correct example.
  static DeviceName parse(std::string_view text);

  bool is_complete() const { return job && task && type && id; }
  bool is_empty() const { return !job && !replica && !task && !type && !id; }
  // "/job:ps/replica:0/task:0/device:CPU:0": only the parts that are set.
  std::string to_string() const;
  // The task's part, "/job:ps/task:0": the key of all per-task state.
  std::string task_string() const;
  DeviceName task_name() const;  // job, replica and task only

  bool operator==(const DeviceName&) const = default;
  // Each part that is set here equals the other's part ("a device that satisfies me").
  bool matches(const DeviceName& device) const;
  bool is_compatible(const DeviceName& other) const;  // no part contradicts
  // The conjunction of both constraints; INVALID_ARGUMENT if they contradict each other.
  DeviceName merged(const DeviceName& other) const;
  // A copy that takes absent parts from `defaults`.
  DeviceName with_defaults(const DeviceName& defaults) const;
};

std::ostream& operator<<(std::ostream& out, const DeviceName& name);

}  // namespace leat
