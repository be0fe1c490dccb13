#include "tests/support/cuda/kernel_name.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

namespace cuda_on_host {
namespace {

template <class T>
std::vector<T> read(std::ifstream& file, uint64_t at, uint64_t bytes) {
  std::vector<T> out(bytes / sizeof(T));
  file.seekg(static_cast<std::streamoff>(at));
  file.read(reinterpret_cast<char*>(out.data()),
            static_cast<std::streamsize>(out.size() * sizeof(T)));
  return out;
}

// The symbol at `offset` from where the file was loaded; empty if there is none.
std::string symbol_at(const char* path, uint64_t offset) {
  std::ifstream file(path, std::ios::binary);
  ElfW(Ehdr) header{};
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  if (!file || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return "";
  const auto sections =
      read<ElfW(Shdr)>(file, header.e_shoff, uint64_t{header.e_shnum} * sizeof(ElfW(Shdr)));
  for (const auto& section : sections) {
    if (section.sh_type != SHT_SYMTAB || section.sh_link >= sections.size()) continue;
    const auto& names_at = sections[section.sh_link];
    const auto names = read<char>(file, names_at.sh_offset, names_at.sh_size);
    for (const auto& symbol : read<ElfW(Sym)>(file, section.sh_offset, section.sh_size)) {
      if (symbol.st_value == offset && (symbol.st_info & 0xf) == STT_FUNC &&
          symbol.st_name < names.size())
        return names.data() + symbol.st_name;
    }
  }
  return "";
}

}  // namespace

std::string kernel_name(const void* function) {
  Dl_info info{};
  if (dladdr(function, &info) != 0 && info.dli_fname != nullptr) {
    const uint64_t offset =
        reinterpret_cast<uint64_t>(function) - reinterpret_cast<uint64_t>(info.dli_fbase);
    std::string mangled = symbol_at(info.dli_fname, offset);
    if (mangled.empty()) mangled = symbol_at("/proc/self/exe", offset);
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> plain(
        abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), std::free);
    if (plain != nullptr) return plain.get();
    if (!mangled.empty()) return mangled;
  }
  char text[32];
  std::snprintf(text, sizeof text, "kernel at %p", function);
  return text;
}

}  // namespace cuda_on_host
