// A cluster of real processes over TLS, from `leat certificates` to a trained network.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <iterator>

#include "tests/support/child_process.h"
#include "tests/support/scratch_directory.h"

namespace leat {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class TlsCluster : public testing::Test {
 protected:
  static std::vector<std::string> leat(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), LEAT_BIN_DIR "/leat");
    return arguments;
  }
  // With "tls" in it if `has_tls`; the paths are relative to the file.
  std::string write_cluster(bool has_tls) const {
    const std::string path = folder_ / (has_tls ? "tls.json" : "plain.json");
    std::ofstream(path)
        << R"({"cluster": {"ps": ["127.0.0.1:0"], "worker": ["127.0.0.1:0"]}, "cluster_id": "e2e")"
        << (has_tls ? R"(, "tls": {"ca": "keys/ca.pem", "certificate": "keys/{name}.pem",
                                   "key": "keys/{name}.key"})"
                    : "")
        << "}\n";
    return path;
  }
  void make_certificates() const {
    ChildProcess made(leat({"certificates", folder_ / "keys", write_cluster(true)}));
    ASSERT_EQ(made.wait(), 0) << made.output();
  }
  std::string losses(bool has_tls) const {
    const std::string file = folder_ / (has_tls ? "tls.losses" : "plain.losses");
    ChildProcess run(
        leat({"run", write_cluster(has_tls), "--log-dir", folder_ / "logs", "--",
              LEAT_BIN_DIR "/examples/mnist", "--strategy", "parameter_server:staleness=0",
              "--epochs", "1", "--seed", "7", "--losses", file}));
    EXPECT_EQ(run.wait(), 0) << run.output();
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  const ScratchDirectory folder_;
};

TEST_F(TlsCluster, TrainsWithTheSameLossesAsWithoutTls) {
  make_certificates();
  const std::string with = losses(true), without = losses(false);
  EXPECT_GT(with.size(), 100u);
  EXPECT_EQ(with, without);
}

TEST_F(TlsCluster, TopNeedsAClientCertificate) {
  make_certificates();
  ChildProcess up(leat({"up", write_cluster(true), "--log-dir", folder_ / "logs"}));
  const std::string output = up.wait_for("Ctrl-C ends it");
  const size_t at = output.find("grpc://");
  const std::string target = output.substr(at, output.find(';', at) - at);
  ChildProcess top(leat({"top", target, "--tls-ca", folder_ / "keys/ca.pem", "--tls-certificate",
                         folder_ / "keys/client.pem", "--tls-key", folder_ / "keys/client.key"}));
  EXPECT_EQ(top.wait(), 0);
  EXPECT_THAT(top.output(), AllOf(HasSubstr("/job:ps/task:0"), HasSubstr("/job:worker/task:0")));
  ChildProcess without(leat({"top", target}));
  EXPECT_EQ(without.wait(), 1);
  EXPECT_THAT(up.wait_for(" refused "), HasSubstr("refused ipv4:127.0.0.1:"));
  up.send_signal(SIGTERM);
  EXPECT_EQ(up.wait(), 0);
}

TEST_F(TlsCluster, CertificatesNeedAClusterId) {
  std::ofstream(folder_ / "open.json") << R"({"cluster": {"ps": ["127.0.0.1:0"]}})";
  ChildProcess made(leat({"certificates", folder_ / "keys", folder_ / "open.json"}));
  EXPECT_EQ(made.wait(), 2);
  EXPECT_THAT(made.output(), HasSubstr("cluster_id"));
}

TEST_F(TlsCluster, CertificatesNeedOpenssl) {
  ChildProcess made(leat({"certificates", folder_ / "keys", write_cluster(true)}),
                    {{"PATH", folder_.path()}});
  EXPECT_EQ(made.wait(), 1);
  EXPECT_THAT(made.output(), HasSubstr("install the package openssl"));
}

}  // namespace
}  // namespace leat
