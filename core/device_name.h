// Device names: /job:worker/replica:0/task:1/device:GPU:0, any part of which may be missing or *.
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
  // "/job:ps/replica:0/task:0/device:CPU:0", the parts that are set.
  std::string to_string() const;
  // "/job:ps/task:0", the task's part; the key of everything that is kept per task.
  std::string task_string() const;
  DeviceName task_name() const;  // job, replica and task only

  bool operator==(const DeviceName&) const = default;
  // Every part that is set here equals the other's part ("a device that satisfies me").
  bool matches(const DeviceName& device) const;
  bool is_compatible(const DeviceName& other) const;  // no part contradicts
  // Both constraints at once; INVALID_ARGUMENT if they contradict each other.
  DeviceName merged(const DeviceName& other) const;
  // This one, with the parts that are absent here taken from `defaults`.
  DeviceName with_defaults(const DeviceName& defaults) const;
};

std::ostream& operator<<(std::ostream& out, const DeviceName& name);

}  // namespace leat
