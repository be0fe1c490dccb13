#include "distributed/wire/protobuf_log.h"

#include <google/protobuf/stubs/logging.h>

#include <atomic>
#include <iostream>
#include <string>

#include "core/error.h"

namespace leat {
namespace {

constexpr int64_t most_lines = 100;

void write(google::protobuf::LogLevel level, const char*, int, const std::string& message) {
  static std::atomic<int64_t> lines{0};
  const int64_t number = ++lines;
  if (level != google::protobuf::LOGLEVEL_FATAL && number > most_lines) return;
  std::string text = concat("protobuf: ", message, "\n");
  if (number == most_lines) text += "protobuf: no more lines of this kind are written\n";
  std::cerr << text << std::flush;
}

}  // namespace

void limit_protobuf_log() { google::protobuf::SetLogHandler(write); }

}  // namespace leat
