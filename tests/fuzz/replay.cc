// The main program of a fuzz target without libFuzzer.
//   replay_NAME [--seconds 5] [--seed 1] [FILE or DIRECTORY…]  runs seeds, files, then mutations
//   replay_NAME --write DIRECTORY                              writes the seeds for libFuzzer
// An input that ends the process is left in ./crash-NAME.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "tests/fuzz/target.h"

namespace {

namespace files = std::filesystem;
using Clock = std::chrono::steady_clock;

std::string current;     // the running input
std::string crash_file;  // receives it if it ends the process

// Only what a signal handler may do.
void leave_input(int signal) {
  std::ofstream(crash_file, std::ios::binary) << current;
  const std::string said = "\nthe input is in " + crash_file + "\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, said.data(), said.size());
  ::signal(signal, SIG_DFL);
  raise(signal);
}

void run(std::string input) {
  current = std::move(input);
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(current.data()), current.size());
}

std::string read(const files::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Mutator {
 public:
  Mutator(std::vector<std::string> inputs, uint64_t seed)
      : inputs_(std::move(inputs)), random_(seed) {}

  std::string next() {
    std::string out = inputs_[below(inputs_.size())];
    for (uint64_t changes = 1 + below(4); changes > 0; --changes) change(out);
    return out;
  }

 private:
  uint64_t below(uint64_t limit) { return limit == 0 ? 0 : random_() % limit; }

  void change(std::string& bytes) {
    const size_t at = below(bytes.size() + 1);
    static const std::string_view lures[] = {{"\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 9},
                                             {"\x80\x80\x80\x80\x10", 5},
                                             {"\0\0\0\0", 4},
                                             {"\xff\xff\xff\x7f", 4},
                                             {"-1", 2},
                                             {"99999999999", 11},
                                             {"{}", 2},
                                             {"\"", 1}};
    switch (below(7)) {
      case 0:  // flip a bit
        if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:  // change a byte
        if (at < bytes.size()) bytes[at] = static_cast<char>(random_());
        break;
      case 2:  // truncate
        bytes.resize(at);
        break;
      case 3:  // remove a part
        bytes.erase(at, 1 + below(16));
        break;
      case 4: {  // insert a typical value
        const std::string_view lure = lures[below(std::size(lures))];
        if (below(2) == 0) {
          bytes.insert(at, lure);
        } else {
          bytes.replace(at, std::min(lure.size(), bytes.size() - at), lure);
        }
        break;
      }
      case 5: {  // repeat a part
        const std::string part = bytes.substr(at, 1 + below(32));
        bytes.insert(below(bytes.size() + 1), part);
        break;
      }
      default: {  // insert a part of another input
        const std::string& other = inputs_[below(inputs_.size())];
        bytes.insert(at, other.substr(below(other.size() + 1), 1 + below(64)));
        break;
      }
    }
  }

  const std::vector<std::string> inputs_;
  std::mt19937_64 random_;
};

}  // namespace

int main(int argc, char** argv) {
  const std::string name = files::path(argv[0]).filename().string();
  crash_file = "crash-" + name;
  double seconds = 5;
  uint64_t seed = 1;
  std::vector<std::string> inputs = leat::fuzz::seeds();
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const bool has_value = argument.starts_with("--") && i + 1 < argc;
    if (has_value && argument == "--seconds") {
      seconds = std::atof(argv[++i]);
    } else if (has_value && argument == "--seed") {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (has_value && argument == "--write") {
      files::create_directories(argv[++i]);
      for (size_t s = 0; s < inputs.size(); ++s) {
        std::ofstream(files::path(argv[i]) / ("seed" + std::to_string(s)), std::ios::binary)
            << inputs[s];
      }
      return 0;
    } else if (files::is_directory(argument)) {
      for (const auto& entry : files::directory_iterator(argument)) inputs.push_back(read(entry));
    } else if (files::is_regular_file(argument)) {
      inputs.push_back(read(argument));
    } else if (argument.starts_with("--")) {
      std::cerr << name << ": no such option or file: " << argument << "\n";
      return 2;
    }
  }
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE, SIGBUS, SIGILL}) ::signal(signal, leave_input);
  for (const std::string& input : inputs) run(input);
  Mutator mutator(inputs, seed);
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  uint64_t runs = inputs.size();
  for (; Clock::now() < end; ++runs) run(mutator.next());
  std::cout << name << ": " << runs << " inputs, no mistake found\n";
  std::cout.flush();
  _exit(0);  // threads of a target may still wait
}
