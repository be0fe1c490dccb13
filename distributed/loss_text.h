// What is said of a task that is lost: when it was heard last, and what it owed. Whoever hears of a
// loss first says so, in the text of an error that may come by way of other tasks; the master adds
// what that lacks. So these words are written, and looked for, here alone.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace leat {

std::string heard_text(std::chrono::nanoseconds ago);  // "last heard 4.2 s ago"
std::string heard_text(std::chrono::steady_clock::time_point heard);
bool tells_when_heard(std::string_view message);

std::string debt_text(std::string_view debt);  // "it owed edge_7_w (of node w)"
bool tells_debt(std::string_view message);

}  // namespace leat
