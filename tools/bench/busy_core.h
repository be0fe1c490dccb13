// Another process that computes on the last core, for programs that measure beside one.
#pragma once

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace leat::bench {

// The process lives as long as this object, and ends if its parent does.
class BusyCore {
 public:
  BusyCore() : process_(fork()) {
    if (process_ < 0) {
      std::perror("fork");
      std::exit(1);
    }
    if (process_ == 0) compute();
  }
  ~BusyCore() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  BusyCore(const BusyCore&) = delete;

 private:
  [[noreturn]] static void compute() {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(sysconf(_SC_NPROCESSORS_ONLN) - 1, &cores);
    sched_setaffinity(0, sizeof(cores), &cores);
    for (volatile unsigned i = 0;;) i = i + 1;
  }

  const pid_t process_;
};

}  // namespace leat::bench
