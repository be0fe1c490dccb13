#include "tools/leat/tls_flags.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>

namespace leat {
namespace {

TlsPaths absolute(TlsPaths paths) {
  for (std::string* path : {&paths.ca, &paths.certificate, &paths.key}) {
    if (!path->empty()) *path = std::filesystem::absolute(*path);
  }
  return paths;
}

}  // namespace

void add_tls_flags(CLI::App& command, TlsPaths& paths) {
  const std::string otherwise =
      " (default: \"tls\" of the cluster's description, then LEAT_TLS_CA, LEAT_TLS_CERTIFICATE, "
      "LEAT_TLS_KEY); {name} stands for the reader's name: ps-0, client";
  command.add_option("--tls-ca", paths.ca,
                     "PEM file of the CA that signs the certificates of all peers" + otherwise);
  command.add_option("--tls-certificate", paths.certificate, "PEM file with the certificate");
  command.add_option("--tls-key", paths.key, "PEM file with its private key");
}

void apply_tls_flags(const TlsPaths& flags, ClusterSpec& cluster) {
  cluster.set_tls(merged(cluster.tls(), absolute(flags)));
}

void set_client_tls(const TlsPaths& flags) {
  const auto set = [](const char* name, const std::string& value) {
    if (!value.empty()) setenv(name, value.c_str(), 1);
  };
  set(tls_ca_variable, flags.ca);
  set(tls_certificate_variable, flags.certificate);
  set(tls_key_variable, flags.key);
}

}  // namespace leat
