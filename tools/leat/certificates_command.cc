// `leat certificates DIR cluster.json`: a CA, and certificates that it signs, by running openssl.
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "distributed/cluster/tls.h"
#include "tools/leat/cluster_source.h"
#include "tools/leat/commands.h"
#include "tools/leat/process.h"

extern char** environ;

namespace leat {
namespace {

namespace fs = std::filesystem;

struct Flags {
  std::string directory, source;
  int days = 365;
};

// Runs openssl; INTERNAL with all that it said if it fails.
void run_openssl(const std::string& program, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), program);
  std::vector<char*> raw;
  for (std::string& argument : arguments) raw.push_back(argument.data());
  raw.push_back(nullptr);
  int ends[2];
  if (pipe(ends) != 0) fail(Code::resource_exhausted, "no file descriptors are left");
  Fd from(ends[0]), to(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to.get(), 1);
  posix_spawn_file_actions_adddup2(&actions, to.get(), 2);
  posix_spawn_file_actions_addclose(&actions, from.get());
  pid_t pid = 0;
  const int error = posix_spawn(&pid, program.c_str(), &actions, nullptr, raw.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) fail(Code::internal, "cannot run ", program, ": ", std::strerror(error));
  to.close();
  std::string said;
  char buffer[4096];
  for (ssize_t got;
       (got = read(from.get(), buffer, sizeof buffer)) > 0 || (got < 0 && errno == EINTR);)
    if (got > 0) said.append(buffer, static_cast<size_t>(got));
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    fail(Code::internal, program, " ", arguments[1], " failed:\n", said);
}

std::string find_openssl() {
  try {
    return find_program("openssl");
  } catch (const Error& error) {
    fail(Code::failed_precondition, error.message(),
         "; `leat certificates` needs it: install the package openssl");
  }
}

class Maker {
 public:
  Maker(fs::path directory, std::string cluster, int days)
      : openssl_(find_openssl()),
        directory_(std::move(directory)),
        cluster_(std::move(cluster)),
        days_(std::to_string(days)) {}

  // One that is there signs the new certificates as well: those that it has signed stay good.
  bool make_ca() {
    if (fs::exists(file("ca.pem")) && fs::exists(file("ca.key"))) return false;
    run_openssl(openssl_, {"req",      "-x509",
                           "-newkey",  "ec",
                           "-pkeyopt", "ec_paramgen_curve:prime256v1",
                           "-nodes",   "-sha256",
                           "-days",    "3650",
                           "-subj",    "/CN=Leat development CA",
                           "-addext",  "basicConstraints=critical,CA:TRUE",
                           "-addext",  "keyUsage=critical,keyCertSign,cRLSign",
                           "-keyout",  file("ca.key"),
                           "-out",     file("ca.pem")});
    fs::permissions(file("ca.pem"), fs::perms(0644));
    return true;
  }

  void make(const std::string& name, const std::string& uri) {
    const std::string request = file(name + ".csr"), extensions = file(name + ".ext");
    std::ofstream(extensions) << "subjectAltName=URI:spiffe://" << cluster_ << uri
                              << ",DNS:" << name << "." << cluster_
                              << "\nbasicConstraints=critical,CA:FALSE\n"
                                 "keyUsage=critical,digitalSignature\n"
                                 "extendedKeyUsage=serverAuth,clientAuth\n";
    run_openssl(openssl_, {"req", "-new", "-newkey", "ec", "-pkeyopt",
                           "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=" + name,
                           "-keyout", file(name + ".key"), "-out", request});
    run_openssl(openssl_, {"x509", "-req", "-sha256", "-days", days_, "-in", request, "-CA",
                           file("ca.pem"), "-CAkey", file("ca.key"), "-CAcreateserial", "-extfile",
                           extensions, "-out", file(name + ".pem")});
    fs::permissions(file(name + ".pem"), fs::perms(0644));
    fs::remove(request);
    fs::remove(extensions);
  }

 private:
  std::string file(const std::string& name) const { return directory_ / name; }

  const std::string openssl_;
  const fs::path directory_;
  const std::string cluster_;
  const std::string days_;
};

void make_certificates(const Flags& flags) {
  const ClusterSpec cluster = resolve_cluster(flags.source).spec;
  check(cluster.has_given_id(), flags.source,
        ": certificates contain the cluster's name: add a \"cluster_id\"");
  const std::string id = cluster.id();
  check(std::all_of(
            id.begin(), id.end(),
            [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '.' || c == '_'; }),
        flags.source, ": the cluster_id \"", id,
        "\" does not fit in a certificate: use only letters, digits, dots, - and _");
  umask(0077);  // keys are for this user only
  const fs::path directory = fs::absolute(flags.directory);
  std::error_code error;
  fs::create_directories(directory, error);
  if (error)
    fail(Code::not_found, "cannot make the folder ", flags.directory, ": ", error.message());
  Maker maker(directory, id, flags.days);
  const bool is_new = maker.make_ca();
  for (const TaskName& task : cluster.tasks())
    maker.make(certificate_name(task), concat("/job/", task.job, "/task/", task.index));
  maker.make(client_name, concat("/client/", client_name));
  const auto path = [&](const char* name) { return (fs::path(flags.directory) / name).string(); };
  std::cout << (is_new ? "made " : "kept ") << path("ca.pem") << ", and signed certificates of "
            << cluster.size() << (cluster.size() == 1 ? " task" : " tasks")
            << " and a client with it, for " << flags.days << " days\n"
            << "add to the cluster's description (paths are relative to it):\n"
            << R"(  "tls": {"ca": ")" << (directory / "ca.pem").string() << R"(", "certificate": ")"
            << (directory / "{name}.pem").string() << R"(", "key": ")"
            << (directory / "{name}.key").string() << "\"}\n"
            << "for clients:\n  export " << tls_ca_variable << "="
            << (directory / "ca.pem").string() << " " << tls_certificate_variable << "="
            << (directory / "client.pem").string() << " " << tls_key_variable << "="
            << (directory / "client.key").string() << "\n"
            << "copy ca.pem and the files of its tasks to each host; keep ca.key, the signing key, "
               "here\n";
}

}  // namespace

void add_certificates_command(CLI::App& app, int& exit_status) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "certificates", "A CA and certificates for development: leat certificates DIR cluster.json");
  command
      ->add_option("directory", flags->directory,
                   "The folder for the files; created if it does not exist")
      ->required();
  command->add_option("cluster", flags->source, "The cluster's description: its id and its tasks")
      ->required();
  command->add_option("--days", flags->days, "Days until the certificates expire")
      ->check(CLI::Range(1, 3650))
      ->capture_default_str();
  command->footer(R"(
DIR gets ca.pem and ca.key, ps-0.pem and ps-0.key for every task, client.pem and client.key. A certificate names its owner:
spiffe://CLUSTER/job/ps/task/0 and ps-0.CLUSTER, or spiffe://CLUSTER/client/client and client.CLUSTER, where CLUSTER is the
"cluster_id". A second run keeps the CA and renews the rest. Needs the program openssl.

Exit status: 0; 1 if openssl fails or cannot be run; 2 for a mistake in the command line or the cluster description.)");
  command->callback([flags, &exit_status] {
    make_certificates(*flags);
    exit_status = 0;
  });
}

}  // namespace leat
