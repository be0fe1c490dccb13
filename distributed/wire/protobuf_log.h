// What the protobuf library has to say about bytes that it parses.
#pragma once

namespace leat {

// It writes a line to stderr for every string of a request that is no UTF-8, so that a client could
// fill the log. From now on this process writes 100 lines of it, and those before its end.
void limit_protobuf_log();

}  // namespace leat
