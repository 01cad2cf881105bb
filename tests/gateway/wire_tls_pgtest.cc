// TLS toward clients: libpq's ways of asking for it, direct TLS, what is refused, certificates that
// change, and authentication that passes through.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/child_process.h"
#include "gateway/test_certificate.h"
#include "tests/gateway/tls_client.h"
#include "tests/gateway/wire_fixture.h"
#include "wire/bytes.h"

namespace tidemark::tests {
namespace {

using base::Deadline;
using gateway::MakeCertificate;
using testing::HasSubstr;
using testing::Not;

class WireTls : public WireFixture {
 protected:
  void SetUp() override {
    WireFixture::SetUp();
    options_.tls = MakeCertificate(folder_.path(), "gateway");
  }
  /// Puts the certificate and key of `name` where the gateway looks.
  void Install(const std::string& name) {
    const auto made = MakeCertificate(folder_.path(), name);
    Copy(made.certificate_file, options_.tls->certificate_file);
    Copy(made.key_file, options_.tls->key_file);
  }
  static void Copy(const std::string& from, const std::string& to) {
    std::filesystem::copy_file(from, to, std::filesystem::copy_options::overwrite_existing);
  }
  /// How libpq checks that the certificate is that of `name`.
  std::string Verifying(const std::string& name) const {
    return fmt::format("sslmode=verify-ca sslrootcert={}/{}.crt", folder_.path().string(), name);
  }
  TlsClient Encrypted() { return TlsClient(listener().port(), {}); }

  TemporaryFolder folder_;
};

/// Reads up to ReadyForQuery, or the end.
template <typename Client>
std::string ReadAnswer(Client& client) {
  std::string all;
  for (std::string one = client.Read(); !one.empty(); one = client.Read()) {
    all += one;
    if (one[0] == 'Z') break;
  }
  return all;
}

TEST_F(WireTls, LibpqIsServedHoweverItAsks) {
  for (const char* mode : {"disable", "allow", "prefer", "require"}) {
    EXPECT_EQ(Connect(fmt::format("sslmode={}", mode)).Value("SELECT 1"), "1") << mode;
  }
  auto client = Connect("sslmode=require ssl_min_protocol_version=TLSv1.2");
  const std::string big(10'000'000, 'x');
  EXPECT_EQ(client.Value("SELECT $1::text", {big}), big);
  EXPECT_THAT(ConnectError("sslmode=require ssl_min_protocol_version=TLSv1.1 "
                           "ssl_max_protocol_version=TLSv1.1")
                  .message(),
              Not(HasSubstr("connected")));
}

TEST_F(WireTls, WithoutACertificateItIsRefusedAndPlainSessionsAreServed) {
  options_.tls.reset();
  EXPECT_EQ(Connect("sslmode=prefer").Value("SELECT 1"), "1");
  EXPECT_THAT(ConnectError("sslmode=require").message(), HasSubstr("does not support SSL"));
  auto direct = Raw();
  direct.Send("\x16\3\1\2\0\1\0\1\xfc\3\3");
  EXPECT_THAT(direct.Read(), HasSubstr("TLS is not offered"));
  EXPECT_EQ(direct.Read(), "");
}

TEST_F(WireTls, GssIsDeclinedAndTlsMayFollow) {
  auto client = Raw();
  std::string request;
  wire::WriteGssEncryptionRequest(request);
  client.Send(request);
  EXPECT_EQ(client.ReadBytes(1), "N");
  request.clear();
  wire::WriteTlsRequest(request);
  client.Send(request);
  EXPECT_EQ(client.ReadBytes(1), "S");
}

TEST_F(WireTls, UnencryptedSessionsAreRefusedWhereItIsRequired) {
  options_.requires_tls = true;
  const auto error = ConnectError("sslmode=disable");
  EXPECT_THAT(error.message(), HasSubstr("unencrypted sessions are refused here"));
  auto raw = Raw();
  raw.Send(StartupBytes(name_));
  const auto fields = wire::ErrorFields::Read(raw.Read().substr(1));
  EXPECT_EQ(fields.Find('C'), "28000");
  EXPECT_EQ(fields.Find('S'), "FATAL");
  for (const char* mode : {"allow", "prefer", "require"}) {
    EXPECT_EQ(Connect(fmt::format("sslmode={}", mode)).Value("SELECT 1"), "1") << mode;
  }
}

TEST_F(WireTls, PlaintextAfterTheRequestStartsNoSession) {
  auto client = Raw();
  std::string request;
  wire::WriteTlsRequest(request);
  client.Send(request);
  EXPECT_EQ(client.ReadBytes(1), "S");
  client.Send(StartupBytes(name_) + QueryBytes("CREATE TABLE must_not_be ()"));
  client.FinishSending();
  std::string answer;
  for (std::string one = client.ReadBytes(1); !one.empty(); one = client.ReadBytes(1)) {
    answer += one;
  }
  EXPECT_LT(answer.size(), 20u);  // an alert at most, and nothing of the protocol
  EXPECT_TRUE(BecomesTrue("SELECT to_regclass('must_not_be') IS NULL"));
  EXPECT_TRUE(BecomesDeserted());
}

TEST_F(WireTls, BytesStuffedBeforeTheHandshakeEndTheConnection) {
  for (const std::string& stuffed : {std::string("\0", 1), StartupBytes(name_)}) {
    auto client = Raw();
    std::string request;
    wire::WriteTlsRequest(request);
    client.Send(request + stuffed);
    const auto answer = client.Read();
    ASSERT_EQ(answer[0], 'E');
    EXPECT_EQ(wire::ErrorFields::Read(answer.substr(1)).Find('C'), "08P01");
    EXPECT_EQ(client.Read(), "");
  }
}

TEST_F(WireTls, DirectTlsIsServedToThoseWhoNameTheProtocol) {
  TlsClient ours(listener().port(), {.direct = true, .alpn = "postgresql"});
  ASSERT_TRUE(ours.connected());
  ours.Send(StartupBytes(name_));
  EXPECT_THAT(ReadAnswer(ours), HasSubstr("server_version"));
  ours.Send(QueryBytes("SELECT 'direct'"));
  EXPECT_THAT(ReadAnswer(ours), HasSubstr("direct"));

  TlsClient silent(listener().port(), {.direct = true, .alpn = ""});
  silent.Send(StartupBytes(name_));
  EXPECT_EQ(silent.Read(), "");
  TlsClient other(listener().port(), {.direct = true, .alpn = "http/1.1"});
  EXPECT_FALSE(other.connected());
  TlsClient other_after_request(listener().port(), {.alpn = "http/1.1"});
  EXPECT_FALSE(other_after_request.connected());
  TlsClient named_after_request(listener().port(), {.alpn = "postgresql"});
  EXPECT_TRUE(named_after_request.connected());
}

TEST_F(WireTls, CancelRequestsMayBeEncrypted) {
  options_.requires_tls = true;
  for (const bool encrypted : {true, false}) {
    auto client = Encrypted();
    client.Send(StartupBytes(name_));
    std::string key;
    for (std::string one = client.Read(); one[0] != 'Z'; one = client.Read()) {
      if (one[0] == 'K') key = one.substr(1);
    }
    client.Send(QueryBytes("SELECT pg_sleep(600)"));
    EXPECT_TRUE(
        BecomesTrue("SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND "
                    "datname = current_database()"));
    std::string cancel;
    wire::WriteCancelRequest(cancel, wire::LoadBigEndian<uint32_t>(key.data()), key.substr(4));
    if (encrypted) {
      auto canceler = Encrypted();
      canceler.Send(cancel);
      EXPECT_EQ(canceler.Read(), "");
      EXPECT_TRUE(canceler.ended_cleanly());
    } else {
      auto canceler = Raw();
      canceler.Send(cancel);
      EXPECT_EQ(canceler.Read(), "");
    }
    EXPECT_THAT(ReadAnswer(client), HasSubstr("57014"));
  }
}

TEST_F(WireTls, AHalfClosedConversationIsAnsweredToItsEnd) {
  auto client = Encrypted();
  client.Send(StartupBytes(name_));
  ReadAnswer(client);
  client.Send(QueryBytes("SELECT repeat('x', 1000000)") + QueryBytes("SELECT 'last'"));
  client.FinishSending();
  EXPECT_GT(ReadAnswer(client).size(), 1'000'000u);
  EXPECT_THAT(ReadAnswer(client), HasSubstr("last"));
  EXPECT_EQ(client.Read(), "");
  EXPECT_TRUE(client.ended_cleanly());
  EXPECT_TRUE(BecomesDeserted());
}

TEST_F(WireTls, NotificationsReachAnIdleClient) {
  auto client = Encrypted();
  client.Send(StartupBytes(name_));
  ReadAnswer(client);
  client.Send(QueryBytes("LISTEN news"));
  ReadAnswer(client);
  cluster().Connect(name_).Execute("NOTIFY news, 'hello'");
  EXPECT_THAT(client.Read(), testing::AllOf(testing::StartsWith("A"), HasSubstr("hello")));
}

TEST_F(WireTls, AHandshakeThatStallsEndsWithTheTimeForStartingUp) {
  options_.startup_timeout = std::chrono::milliseconds(300);
  auto client = Raw();
  std::string request;
  wire::WriteTlsRequest(request);
  client.Send(request);
  EXPECT_EQ(client.ReadBytes(1), "S");
  EXPECT_EQ(client.ReadBytes(1), "");
}

TEST_F(WireTls, ANewCertificateIsShownToNewSessionsAndTheOldOnesGoOn) {
  auto before = Connect(Verifying("gateway"));
  Copy(options_.tls->certificate_file, (folder_.path() / "old.crt").string());
  Install("renewed");
  EXPECT_EQ(Connect(Verifying("old")).Value("SELECT 1"), "1");  // not read yet
  listener().ReloadTls();
  EXPECT_EQ(Connect(Verifying("renewed")).Value("SELECT 1"), "1");
  EXPECT_THAT(ConnectError(Verifying("old")).message(), HasSubstr("certificate verify failed"));
  EXPECT_EQ(before.Value("SELECT 2"), "2");

  const auto other = MakeCertificate(folder_.path(), "other");
  Copy(other.certificate_file, options_.tls->certificate_file);  // but not its key
  EXPECT_THROW(listener().ReloadTls(), base::Error);
  EXPECT_EQ(Connect(Verifying("renewed")).Value("SELECT 1"), "1");
}

TEST_F(WireTls, UnusableFilesAreRefusedAtTheStart) {
  options_.tls->key_file = "/nowhere";
  EXPECT_THROW(listener(), base::Error);
}

TEST_F(WireTls, PasswordsPassThroughAndChannelsAreBoundOnlyIfThatMayBeLeft) {
  auto direct = cluster().Connect();
  direct.Execute("SET password_encryption = 'scram-sha-256'");
  direct.Execute("CREATE ROLE wire_scram LOGIN PASSWORD 'right'");
  const auto hba = cluster().directory() / "data/pg_hba.conf";
  std::ifstream in(hba);
  const std::string before{std::istreambuf_iterator<char>(in), {}};
  std::ofstream(hba) << "local all wire_scram scram-sha-256\n" << before;
  direct.Execute("SELECT pg_reload_conf()");
  const std::string as = "user=wire_scram sslmode=require password=";
  ASSERT_TRUE(Becomes([&] { return ConnectError(as + "wrong").message() != "connected"; }));
  EXPECT_THAT(ConnectError(as + "wrong").message(), HasSubstr("password authentication failed"));
  EXPECT_EQ(Connect(as + "right channel_binding=disable").Value("SELECT 1"), "1");
  EXPECT_EQ(Connect(as + "right channel_binding=prefer").Value("SELECT 1"), "1");
  EXPECT_THAT(ConnectError(as + "right channel_binding=require").message(),
              HasSubstr("channel binding"));
  EXPECT_TRUE(BecomesDeserted());
  std::ofstream(hba) << before;
  direct.Execute("SELECT pg_reload_conf()");
  direct.Execute("DROP ROLE wire_scram");
}

TEST_F(WireTls, TheProgramReadsItsCertificateAgainOnSighup) {
  std::ofstream(folder_.path() / "serve.yaml")
      << "store: \"" << cluster().Dsn(name_)
      << "\"\ngateway: {superusers: true, listen: \"127.0.0.1:0\", tls: {certificate_file: "
         "gateway.crt, "
         "key_file: gateway.key, required: true}}\nhttp: {off: true}\n";
  const auto log = (folder_.path() / "log").string();
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> out(std::fopen(log.c_str(), "w"),
                                                            std::fclose);
  auto serve = base::ChildProcess::Start({.command = {TIDEMARK_BINARY, "serve", "--config",
                                                      (folder_.path() / "serve.yaml").string()},
                                          .environment = {"PATH=/usr/bin:/bin"},
                                          .output_fd = ::fileno(out.get())});
  const auto log_text = [&] {
    std::ifstream in(log);
    return std::string{std::istreambuf_iterator<char>(in), {}};
  };
  const std::string listening = "listening on 127.0.0.1:";
  ASSERT_TRUE(Becomes([&] { return log_text().find("TLS required") != std::string::npos; }))
      << log_text();
  const auto text = log_text();
  const int port = std::atoi(text.c_str() + text.find(listening) + listening.size());
  const auto connect = [&](const std::string& more) {
    return pg::Connection::Open(
        {.dsn = fmt::format("host=127.0.0.1 port={} dbname={} user=postgres {}", port, name_,
                            more)},
        Deadline::After(kPatience));
  };
  auto session = connect(Verifying("gateway"));
  Install("renewed");
  serve.Signal(SIGHUP);
  EXPECT_TRUE(Becomes([&] { return log_text().find("read again") != std::string::npos; }));
  EXPECT_EQ(connect(Verifying("renewed")).Value("SELECT 1"), "1");
  std::ofstream(options_.tls->key_file) << "no key";
  serve.Signal(SIGHUP);
  EXPECT_TRUE(Becomes([&] { return log_text().find("stay in use") != std::string::npos; }));
  EXPECT_EQ(connect(Verifying("renewed")).Value("SELECT 1"), "1");
  EXPECT_EQ(session.Value("SELECT 2"), "2");
  EXPECT_THROW(connect("sslmode=disable"), base::Error);
  serve.Signal(SIGTERM);
  const auto status = serve.Wait(Deadline::After(kPatience));
  ASSERT_TRUE(status.has_value());
  EXPECT_TRUE(status->ok()) << log_text();
}

}  // namespace
}  // namespace tidemark::tests
