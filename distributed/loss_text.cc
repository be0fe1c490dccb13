#include "distributed/loss_text.h"

#include "core/error.h"
#include "runtime/step_activity.h"

namespace leat {
namespace {

constexpr std::string_view last_heard = "last heard ", it_owed = "it owed ";

}  // namespace

std::string heard_text(std::chrono::nanoseconds ago) {
  return concat(last_heard, seconds_text(ago), " ago");
}

std::string heard_text(std::chrono::steady_clock::time_point heard) {
  return heard_text(std::chrono::steady_clock::now() - heard);
}

bool tells_when_heard(std::string_view message) {
  return message.find(last_heard) != std::string_view::npos;
}

std::string debt_text(std::string_view debt) { return concat(it_owed, debt); }

bool tells_debt(std::string_view message) {
  return message.find(it_owed) != std::string_view::npos;
}

}  // namespace leat
