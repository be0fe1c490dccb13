#include "distributed/cluster/tls.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "core/error.h"
#include "distributed/cluster/cluster_spec.h"

namespace leat {
namespace {

using Kind = CertifiedPeer::Kind;

constexpr std::string_view place_of_name = "{name}";
constexpr std::string_view spiffe = "spiffe://";

// Sessions: a client's calls, the channel on which only these may be made (master/client_links.h),
// and what fetches their large answers, each under a random key that only its caller knows.
constexpr std::string_view for_sessions[] = {"/tensorflow.MasterService/", "/leat.Client/",
                                             "/leat.Pieces/"};
// What else a client may call. Identify reveals no more than the caller already knows.
constexpr std::string_view for_clients[] = {"/leat.Cluster/View", "/leat.Channel/Identify"};

template <size_t count>
bool is_one_of(const std::string_view (&prefixes)[count], const std::string& method) {
  return std::any_of(std::begin(prefixes), std::end(prefixes),
                     [&](std::string_view prefix) { return method.starts_with(prefix); });
}

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

CertifiedPeer task_peer(std::string_view job, std::string_view digits) {
  CertifiedPeer out;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), out.index);
  const bool is_index = error == std::errc() && end == digits.data() + digits.size() &&
                        out.index >= 0 && std::to_string(out.index) == digits;
  const bool is_job = std::all_of(job.begin(), job.end(),
                                  [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
  if (job.empty() || !is_job || !is_index) return {};
  out.job = job;
  out.kind = Kind::task;
  return out;
}

CertifiedPeer named_by(std::string_view name, std::string_view cluster) {
  if (take(name, spiffe)) {
    const size_t slash = name.find('/');
    if (slash == std::string_view::npos || slash == 0) return {};
    if (!cluster.empty() && name.substr(0, slash) != cluster) return {};
    name.remove_prefix(slash);
    if (take(name, "/client/"))
      return name.empty() ? CertifiedPeer{} : CertifiedPeer{.kind = Kind::client, .job = {}};
    const size_t middle = name.find("/task/");
    if (!take(name, "/job/") || middle == std::string_view::npos) return {};
    const std::string_view job = name.substr(0, middle - 5);
    return task_peer(job, name.substr(job.size() + 6));
  }
  const size_t dot = name.find('.');
  if (dot == std::string_view::npos) return {};
  if (!cluster.empty() && name.substr(dot + 1) != cluster) return {};
  const std::string_view host = name.substr(0, dot);
  if (host == client_name) return {.kind = Kind::client, .job = {}};
  const size_t dash = host.rfind('-');
  return dash == std::string_view::npos ? CertifiedPeer{}
                                        : task_peer(host.substr(0, dash), host.substr(dash + 1));
}

std::string read_pem(const std::string& path, const char* what) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  if (file) text.assign(std::istreambuf_iterator<char>(file), {});
  if (!file || file.bad()) {
    fail(Code::not_found, "cannot read the ", what, " ", path,
         ": no such file, or no permission; `leat certificates` makes files for development");
  }
  check(text.find("-----BEGIN ") != std::string::npos, path, ": the ", what,
        " must be in PEM format, with a line -----BEGIN …");
  return text;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string certificate_name(const TaskName& task) { return concat(task.job, "-", task.index); }

TlsPaths merged(TlsPaths paths, const TlsPaths& over) {
  if (!over.ca.empty()) paths.ca = over.ca;
  if (!over.certificate.empty()) paths.certificate = over.certificate;
  if (!over.key.empty()) paths.key = over.key;
  return paths;
}

TlsPaths tls_from_environment() {
  return {variable(tls_ca_variable), variable(tls_certificate_variable),
          variable(tls_key_variable)};
}

TlsPaths with_name(TlsPaths paths, std::string_view name) {
  for (std::string* path : {&paths.ca, &paths.certificate, &paths.key}) {
    for (size_t at = 0; (at = path->find(place_of_name, at)) != std::string::npos;
         at += name.size())
      path->replace(at, place_of_name.size(), name);
  }
  return paths;
}

std::shared_ptr<const RpcTls> read_tls(const TlsPaths& paths, std::string_view name) {
  if (!paths.is_set()) return nullptr;
  check(!paths.ca.empty() && !paths.certificate.empty() && !paths.key.empty(),
        "TLS needs three files, and ",
        paths.ca.empty()            ? "the CA's certificate (ca, --tls-ca, LEAT_TLS_CA)"
        : paths.certificate.empty() ? "a certificate (certificate, --tls-certificate, "
                                      "LEAT_TLS_CERTIFICATE)"
                                    : "a key (key, --tls-key, LEAT_TLS_KEY)",
        " is not given");
  const TlsPaths files = with_name(paths, name);
  return std::make_shared<const RpcTls>(RpcTls{read_pem(files.ca, "CA's certificate"),
                                               read_pem(files.certificate, "certificate"),
                                               read_pem(files.key, "key")});
}

std::shared_ptr<const RpcTls> client_tls() { return read_tls(tls_from_environment(), client_name); }

std::optional<TaskName> CertifiedPeer::task() const {
  return kind == Kind::task ? std::optional(TaskName{job, index}) : std::nullopt;
}

// Who has names of two is nobody: which of them it is would be its choice.
CertifiedPeer certified_peer(const std::vector<std::string>& names, std::string_view cluster) {
  CertifiedPeer out;
  for (const std::string& name : names) {
    const CertifiedPeer peer = named_by(name, cluster);
    if (peer.kind == Kind::stranger) continue;
    if (out.kind != Kind::stranger && (out.kind != peer.kind || out.task() != peer.task()))
      return {};
    out = peer;
  }
  return out;
}

std::string names_text(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out.empty() ? "nobody" : out;
}

NameCheck is_task(const TaskName& task, const std::string& cluster) {
  return [task, cluster](const std::vector<std::string>& names) {
    if (certified_peer(names, cluster).task() == task) return std::string();
    return concat("its certificate names ", names_text(names), ", not ", task, " of cluster ",
                  cluster);
  };
}

NameCheck is_any_task() {
  return [](const std::vector<std::string>& names) {
    if (certified_peer(names, "").kind == Kind::task) return std::string();
    return concat("its certificate names ", names_text(names), ", which is not a task");
  };
}

RpcStatus authorize_call(const std::string& method, const RpcPeer& peer,
                         const std::string& cluster) {
  const auto refuse = [](Code code, std::string text) {
    return RpcStatus{static_cast<int>(code), std::move(text), RpcCause::none};
  };
  if (!peer.is_certified) {
    if (is_one_of(for_sessions, method)) return {};
    return refuse(Code::permission_denied,
                  concat("without TLS a client may only open sessions, not call ", method));
  }
  switch (certified_peer(peer.names, cluster).kind) {
    case Kind::task:
      return {};
    case Kind::client:
      if (is_one_of(for_sessions, method) || is_one_of(for_clients, method)) return {};
      return refuse(Code::permission_denied,
                    concat("a client's certificate (", names_text(peer.names),
                           ") may open sessions; ", method, " is for tasks"));
    case Kind::stranger:
      break;
  }
  return refuse(Code::unauthenticated, concat("the certificate names ", names_text(peer.names),
                                              ", neither a task nor a client of this cluster"));
}

}  // namespace leat
