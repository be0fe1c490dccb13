// The files of a cluster's TLS.
#pragma once

#include <string>

namespace leat {

// PEM files. One description serves all tasks: in each path, "{name}" stands for the reader's name,
// "ps-0" for a task and "client" for a client.
struct TlsPaths {
  std::string ca, certificate, key;

  bool is_set() const { return !ca.empty() || !certificate.empty() || !key.empty(); }
  bool operator==(const TlsPaths&) const = default;
};

}  // namespace leat
