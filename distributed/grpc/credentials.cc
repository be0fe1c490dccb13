#include "distributed/grpc/credentials.h"

#include <grpc/support/log.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <chrono>
#include <cstdio>
#include <deque>
#include <mutex>
#include <stdexcept>
#include <string_view>

namespace leat::transport {
namespace {

using Clock = std::chrono::steady_clock;

class NameVerifier final : public grpc::experimental::ExternalCertificateVerifier {
 public:
  explicit NameVerifier(NameCheck check) : check_(std::move(check)) {}

  bool Verify(grpc::experimental::TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)>, grpc::Status* status) override {
    std::vector<std::string> names;
    for (const grpc::string_ref& name : request->uri_names())
      names.emplace_back(name.data(), name.size());
    for (const grpc::string_ref& name : request->dns_names())
      names.emplace_back(name.data(), name.size());
    const std::string problem = check_(names);
    *status =
        problem.empty() ? grpc::Status() : grpc::Status(grpc::StatusCode::UNAUTHENTICATED, problem);
    return true;
  }
  void Cancel(grpc::experimental::TlsCustomVerificationCheckRequest*) override {}

 private:
  const NameCheck check_;
};

// gRPC would start with a key that is not the certificate's, and then refuse everybody.
void check_pair(const RpcTls& tls) {
  const auto text = [](const std::string& pem) {
    return std::unique_ptr<BIO, decltype(&BIO_free)>(
        BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  };
  const auto certificate_text = text(tls.certificate), key_text = text(tls.key);
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(
      PEM_read_bio_X509(certificate_text.get(), nullptr, nullptr, nullptr), X509_free);
  if (certificate == nullptr) throw std::runtime_error("the certificate cannot be read");
  // An empty passphrase: a key that has one must not ask the terminal.
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      PEM_read_bio_PrivateKey(key_text.get(), nullptr, nullptr, const_cast<char*>("")),
      EVP_PKEY_free);
  if (key == nullptr)
    throw std::runtime_error("the key cannot be read (a key with a passphrase is not supported)");
  if (X509_check_private_key(certificate.get(), key.get()) != 1)
    throw std::runtime_error("the key does not belong to the certificate");
}

// Never destroyed: threads of gRPC may log until the end of the process.
struct Failures {
  std::mutex mutex;
  std::deque<std::pair<Clock::time_point, std::string>> kept;
};
Failures& failures() {
  static auto* const made = new Failures;
  return *made;
}

constexpr size_t most_failures = 64;
constexpr auto failure_age = std::chrono::seconds(2);

// "Handshake failed with fatal error SSL_ERROR_SSL: error:0A0000C7:SSL routines::peer did not
// return a certificate." without the codes.
std::string in_short(std::string_view text) {
  if (const size_t at = text.rfind("::"); at != std::string_view::npos) text.remove_prefix(at + 2);
  while (!text.empty() && (text.back() == '.' || text.back() == ' ')) text.remove_suffix(1);
  return std::string(text);
}

void log(gpr_log_func_args* line) {
  const std::string_view text = line->message;
  if (text.starts_with("Handshake failed") || text.starts_with("Handshaker shutdown")) {
    std::lock_guard lock(failures().mutex);
    failures().kept.emplace_back(Clock::now(), in_short(text));
    if (failures().kept.size() > most_failures) failures().kept.pop_front();
    return;
  }
  // Of every handshake: the clients' check of names is another one.
  if (text.starts_with("No match found for server name")) return;
  std::fprintf(stderr, "gRPC: %s (%s:%d)\n", line->message, line->file, line->line);
}

}  // namespace

std::shared_ptr<grpc::ChannelCredentials> client_credentials(
    const std::shared_ptr<const RpcTls>& tls, const NameCheck& check) {
  if (tls == nullptr) return grpc::InsecureChannelCredentials();
  keep_handshake_failures();
  // Not SslCredentials: they compare DNS names only, and with the name that was dialled.
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(
      std::make_shared<grpc::experimental::StaticDataCertificateProvider>(
          tls->ca, std::vector<grpc::experimental::IdentityKeyCertPair>{
                       {.private_key = tls->key, .certificate_chain = tls->certificate}}));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_check_call_host(false);
  const NameCheck any = [](const std::vector<std::string>&) { return std::string(); };
  options.set_certificate_verifier(
      grpc::experimental::ExternalCertificateVerifier::Create<NameVerifier>(check ? check : any));
  return grpc::experimental::TlsCredentials(options);
}

std::shared_ptr<grpc::ServerCredentials> server_credentials(
    const std::shared_ptr<const RpcTls>& tls) {
  if (tls == nullptr) return grpc::InsecureServerCredentials();
  check_pair(*tls);
  keep_handshake_failures();
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = tls->ca;
  options.pem_key_cert_pairs = {{.private_key = tls->key, .cert_chain = tls->certificate}};
  return grpc::SslServerCredentials(options);
}

RpcPeer peer_of(const grpc::ServerContextBase& context) {
  RpcPeer peer{.address = context.peer(), .is_certified = false, .names = {}};
  const auto auth = context.auth_context();
  if (auth == nullptr) return peer;
  for (const grpc::string_ref& type : auth->FindPropertyValues("transport_security_type")) {
    // Of SslServerCredentials, which require a certificate.
    peer.is_certified |= std::string_view(type.data(), type.size()) == "ssl";
  }
  if (!peer.is_certified) return peer;
  for (const char* kind : {"peer_uri", "peer_dns"}) {
    for (const grpc::string_ref& name : auth->FindPropertyValues(kind))
      peer.names.emplace_back(name.data(), name.size());
  }
  return peer;
}

void keep_handshake_failures() {
  static const bool is_kept = [] {
    gpr_set_log_function(log);
    return true;
  }();
  (void)is_kept;
}

std::string take_handshake_failure() {
  std::lock_guard lock(failures().mutex);
  auto& kept = failures().kept;
  while (!kept.empty() && Clock::now() - kept.front().first > failure_age) kept.pop_front();
  if (kept.empty()) return {};
  std::string out = std::move(kept.front().second);
  kept.pop_front();
  return out;
}

}  // namespace leat::transport
