// A full disk, for tests.
#pragma once

#include <signal.h>
#include <sys/resource.h>

namespace leat {

// While it exists, files of this process may not exceed so many bytes, as if the disk were full.
class MostBytes {
 public:
  explicit MostBytes(rlim_t bytes) : handler_(signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit most{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &most);
  }
  ~MostBytes() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, handler_);
  }
  MostBytes(const MostBytes&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
};

}  // namespace leat
