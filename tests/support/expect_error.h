// Expected errors: code and message.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "core/error.h"

namespace leat {

// Exactly this code and this whole message.
template <class F>
void expect_error(F&& f, Code code, std::string_view message) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(code_name(error.code()), code_name(code));
    EXPECT_EQ(error.message(), message);
    return;
  }
  ADD_FAILURE() << "no error, but expected " << code_name(code) << ": " << message;
}

// The same if the message also contains text that a test does not know (a line number): it must
// contain this part.
template <class F>
void expect_error_with(Code code, std::string_view part, F&& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(code_name(error.code()), code_name(code));
    EXPECT_NE(error.message().find(part), std::string::npos)
        << "'" << error.message() << "' does not contain '" << part << "'";
    return;
  }
  ADD_FAILURE() << "no error, but expected " << code_name(code) << " with: " << part;
}

// Of a call that waited when its session was closed; a thread that came to it later finds the
// session closed.
template <class F>
void expect_ended_by_close(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    const bool came_late = error.code() == Code::failed_precondition;
    EXPECT_EQ(code_name(error.code()),
              code_name(came_late ? Code::failed_precondition : Code::cancelled));
    const std::string_view text =
        came_late ? "Session is closed." : "explicit call to `Session::Close()`";
    EXPECT_NE(error.message().find(text), std::string::npos) << error.message();
    return;
  }
  ADD_FAILURE() << "no error, but expected that the session was closed";
}

// The error that the action throws; OK if it throws nothing.
template <class Action>
Status error_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.status();
  }
  return {};
}

}  // namespace leat
