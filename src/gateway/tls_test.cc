#include "gateway/tls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "base/error.h"
#include "gateway/test_certificate.h"

namespace tidemark::gateway {
namespace {

using testing::HasSubstr;

// A client's side of TLS, without a socket.
class Client {
 public:
  explicit Client(std::string_view alpn = {}, int version_max = TLS1_3_VERSION)
      : context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free),
        session_(nullptr, SSL_free) {
    SSL_CTX_set_max_proto_version(context_.get(), version_max);
    SSL_CTX_set_security_level(context_.get(), 0);
    session_.reset(SSL_new(context_.get()));
    if (!alpn.empty()) {
      const std::string wire = static_cast<char>(alpn.size()) + std::string(alpn);
      SSL_set_alpn_protos(session_.get(), reinterpret_cast<const unsigned char*>(wire.data()),
                          static_cast<unsigned>(wire.size()));
    }
    SSL_set_bio(session_.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_connect_state(session_.get());
    SSL_do_handshake(session_.get());
  }

  /// What is to be sent.
  std::string Output() {
    char* bytes = nullptr;
    const long count = BIO_get_mem_data(SSL_get_wbio(session_.get()), &bytes);
    std::string output(bytes, static_cast<size_t>(count));
    BIO_reset(SSL_get_wbio(session_.get()));
    return output;
  }
  void Input(std::string_view bytes) {
    BIO_write(SSL_get_rbio(session_.get()), bytes.data(), static_cast<int>(bytes.size()));
    if (SSL_is_init_finished(session_.get()) == 0) SSL_do_handshake(session_.get());
  }
  void Say(std::string_view plain) {
    SSL_write(session_.get(), plain.data(), static_cast<int>(plain.size()));
  }
  std::string Hear() {
    std::string plain;
    std::array<char, 4096> buffer;
    for (int n; (n = SSL_read(session_.get(), buffer.data(), buffer.size())) > 0;) {
      plain.append(buffer.data(), static_cast<size_t>(n));
    }
    return plain;
  }
  SSL* get() { return session_.get(); }

 private:
  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context_;
  std::unique_ptr<SSL, void (*)(SSL*)> session_;
};

class TlsTest : public testing::Test {
 protected:
  TlsTest() {
    std::string name = (std::filesystem::temp_directory_path() / "tidemark-tls-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
    folder_ = name;
    files_ = MakeCertificate(folder_, "gateway");
  }
  ~TlsTest() override { std::filesystem::remove_all(folder_); }

  /// Both sides' bytes to each other until there are none; what the server heard.
  static std::string Exchange(Client& client, Tls& server, size_t step = 100'000) {
    std::string plain;
    for (std::string bytes = client.Output(); !bytes.empty(); bytes = client.Output()) {
      std::string answer;
      for (size_t at = 0; at < bytes.size(); at += step) {
        server.Receive(std::string_view(bytes).substr(at, step), plain, answer);
      }
      client.Input(answer);
    }
    return plain;
  }
  std::string Refusal(Client& client, const Tls::Options& options = {}) {
    Tls server(*TlsIdentity::Load(files_), options);
    try {
      Exchange(client, server);
    } catch (const base::Error& error) {
      EXPECT_EQ(error.state(), base::kProtocolViolation);
      return error.message();
    }
    return "";
  }
  std::string LoadRefusal(const TlsFiles& files) {
    try {
      TlsIdentity::Load(files);
    } catch (const base::Error& error) {
      EXPECT_EQ(error.state(), base::kConfigFileError);
      return error.message();
    }
    return "";
  }

  std::filesystem::path folder_;
  TlsFiles files_;
};

TEST_F(TlsTest, CarriesBytesBothWaysHoweverTheyAreCut) {
  const auto identity = TlsIdentity::Load(files_);
  const std::string big(100'000, 'b');
  for (const size_t step : {1, 7, 1000, 100'000}) {
    Client client;
    Tls server(*identity, {});
    EXPECT_EQ(Exchange(client, server, step), "");
    ASSERT_TRUE(server.open());
    client.Say("hello");
    EXPECT_EQ(Exchange(client, server, step), "hello");
    client.Say(big);
    EXPECT_EQ(Exchange(client, server, step), big);
    std::string encrypted;
    server.Send(big, encrypted);
    EXPECT_THAT(encrypted, testing::Not(HasSubstr("bbbbbbbb")));
    client.Input(encrypted);
    EXPECT_EQ(client.Hear(), big);
  }
}

TEST_F(TlsTest, EitherSideMayEndFirst) {
  Client client;
  Tls server(*TlsIdentity::Load(files_), {});
  Exchange(client, server);
  client.Say("last words");
  SSL_shutdown(client.get());
  EXPECT_EQ(Exchange(client, server), "last words");
  EXPECT_TRUE(server.ended());
  std::string encrypted;
  server.Send("answer", encrypted);
  server.FinishSending(encrypted);
  client.Input(encrypted);
  EXPECT_EQ(client.Hear(), "answer");
  EXPECT_EQ(SSL_get_shutdown(client.get()) & SSL_RECEIVED_SHUTDOWN, SSL_RECEIVED_SHUTDOWN);
}

TEST_F(TlsTest, SpeaksVersion12AndNothingOlder) {
  Client with_12({}, TLS1_2_VERSION), with_11({}, TLS1_1_VERSION);
  EXPECT_EQ(Refusal(with_12), "");
  EXPECT_EQ(SSL_version(with_12.get()), TLS1_2_VERSION);
  EXPECT_THAT(Refusal(with_11), HasSubstr("unsupported protocol"));
}

TEST_F(TlsTest, PlaintextInsteadOfAHandshakeIsRefusedWithAnAlert) {
  Tls server(*TlsIdentity::Load(files_), {});
  std::string plain, to_peer;
  const std::string_view startup("\0\0\0\x11\0\3\0\0user\0ada\0", 18);
  EXPECT_THROW(server.Receive(startup, plain, to_peer), base::Error);
  EXPECT_EQ(plain, "");
  server.Send("never in the clear", to_peer);
  EXPECT_THAT(to_peer, testing::Not(HasSubstr("never")));
}

TEST_F(TlsTest, DirectTlsNeedsTheProtocolsName) {
  Client silent, other("http/1.1"), ours("postgresql");
  EXPECT_THAT(Refusal(silent, {.requires_alpn = true}), HasSubstr("ALPN"));
  EXPECT_THAT(Refusal(other, {.requires_alpn = true}), HasSubstr("could not accept"));
  EXPECT_EQ(Refusal(ours, {.requires_alpn = true}), "");
  Client silent_again, other_again("http/1.1");
  EXPECT_EQ(Refusal(silent_again), "");
  EXPECT_THAT(Refusal(other_again), HasSubstr("could not accept"));
}

TEST_F(TlsTest, UnusableFilesAreNamed) {
  const auto other = MakeCertificate(folder_, "other");
  const auto locked = MakeCertificate(folder_, "locked", "secret");
  EXPECT_THAT(LoadRefusal({"/nowhere.crt", files_.key_file}), HasSubstr("\"/nowhere.crt\""));
  EXPECT_THAT(LoadRefusal({files_.certificate_file, "/nowhere.key"}), HasSubstr("/nowhere.key"));
  EXPECT_THAT(LoadRefusal({files_.certificate_file, other.key_file}), HasSubstr("mismatch"));
  EXPECT_THAT(LoadRefusal({files_.key_file, files_.key_file}), HasSubstr("certificate file"));
  EXPECT_THAT(LoadRefusal(locked), HasSubstr("protected by a passphrase"));
  std::filesystem::permissions(files_.key_file, std::filesystem::perms::others_read,
                               std::filesystem::perm_options::add);
  EXPECT_THAT(LoadRefusal(files_), HasSubstr("may be read by others"));
}

}  // namespace
}  // namespace tidemark::gateway
