// The words about a lost task: when it was last heard, and what it owed. The first to notice a loss
// puts them into an error that may travel through other tasks; the master adds what is missing. So
// they are written, and searched for, only here.
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
