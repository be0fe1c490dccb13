// Limits what the protobuf library logs about bytes that it parses.
#pragma once

namespace leat {

// Protobuf writes a line to stderr for every string of a request that is not UTF-8, so a client
// could fill the log. From now on this process writes 100 such lines, and any that precede its end.
void limit_protobuf_log();

}  // namespace leat
