// A one-way digest, from the cryptographic library that gRPC uses.
#pragma once

#include <string>
#include <string_view>

namespace leat {

std::string sha256(std::string_view text);  // 64 hexadecimal digits

}  // namespace leat
