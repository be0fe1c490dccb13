#include "distributed/worker/worker_replies.h"

#include <array>
#include <cstdio>

namespace leat {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t remembered = 1 << 12;
constexpr size_t listed_bytes = 1 << 20;  // smaller ones leave at once

// "2.4 GB"
std::string bytes_text(size_t bytes) {
  constexpr std::array units = {"KB", "MB", "GB", "TB"};
  if (bytes < 1'000) return concat(bytes, " bytes");
  auto value = static_cast<double>(bytes) / 1e3;
  size_t unit = 0;
  for (; value >= 999.95 && unit + 1 < units.size(); ++unit) value /= 1e3;
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %s", value, units[unit]);
  return text;
}

}  // namespace

size_t bytes_of(const RunGraphResult& result) {
  size_t out = sizeof(result);
  for (const auto& [name, tensor] : result.fetches) out += name.size() + tensor.bytes();
  return out;
}

WorkerReplies::WorkerReplies() : replies_(remembered) {}

StepActivity WorkerReplies::activity_of(const Reply& reply, bool is_leaving) {
  return {concat(reply.has_failed ? "has ended its part with an error" : "has done its part",
                 "; its reply of ", bytes_text(reply.bytes),
                 is_leaving ? " is on the way" : " has left"),
          "", std::chrono::nanoseconds(Clock::now() - reply.since).count()};
}

void WorkerReplies::add(int64_t step, const RunGraphResult& result) {
  const Reply reply{bytes_of(result), !result.status.is_ok(), Clock::now()};
  std::lock_guard lock(mutex_);
  replies_.insert(static_cast<uint64_t>(step), reply);
}

std::shared_ptr<const void> WorkerReplies::leaves(int64_t step, const std::string& session) {
  std::lock_guard lock(mutex_);
  const Reply* reply = replies_.find(static_cast<uint64_t>(step));
  if (reply == nullptr || reply->bytes < listed_bytes) return nullptr;
  const auto entry = leaving_.emplace(step, session);
  return {this, [kept = weak_from_this(), entry](const void*) {
            const auto self = kept.lock();
            if (self == nullptr) return;
            std::lock_guard lock(self->mutex_);
            self->leaving_.erase(entry);
          }};
}

std::optional<StepActivity> WorkerReplies::activity(int64_t step) const {
  std::lock_guard lock(mutex_);
  const Reply* reply = replies_.find(static_cast<uint64_t>(step));
  if (reply == nullptr) return std::nullopt;
  return activity_of(*reply, leaving_.contains(step));
}

std::vector<RunningStep> WorkerReplies::leaving() const {
  std::vector<RunningStep> out;
  std::lock_guard lock(mutex_);
  for (const auto& [step, session] : leaving_) {
    const Reply* reply = replies_.find(static_cast<uint64_t>(step));
    if (reply == nullptr) continue;
    StepActivity activity = activity_of(*reply, true);
    out.push_back({step, session, TaskName(), activity.ns, {std::move(activity)}});
  }
  return out;
}

}  // namespace leat
