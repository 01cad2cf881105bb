#include "gateway/tls_identity.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace tidemark::gateway {
namespace {

using base::Error;

// The one protocol spoken here, as clients name it in ALPN; see IANA's registry.
constexpr unsigned char kAlpnName[] = "\x0apostgresql";
constexpr unsigned int kAlpnBytes = sizeof kAlpnName - 1;

// A client that offers protocols but not ours is one of another service, led here by somebody.
int ChooseProtocol(SSL*, const unsigned char** chosen, unsigned char* chosen_bytes,
                   const unsigned char* offered, unsigned int offered_bytes, void*) {
  unsigned char* found = nullptr;
  if (SSL_select_next_proto(&found, chosen_bytes, kAlpnName, kAlpnBytes, offered,
                            offered_bytes) != OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  *chosen = found;
  return SSL_TLSEXT_ERR_OK;
}

// OpenSSL would ask at the terminal.
int NoPassphrase(char*, int, int, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

// The server's rule: root's key may be read by a group, any other by its owner alone.
void RequirePrivate(const std::string& file) {
  struct stat found = {};
  if (::stat(file.c_str(), &found) != 0) {
    throw Error(base::kConfigFileError,
                fmt::format("could not read private key file \"{}\": {}", file,
                            std::strerror(errno)));
  }
  if (!S_ISREG(found.st_mode)) {
    throw Error(base::kConfigFileError,
                fmt::format("private key file \"{}\" is no regular file", file));
  }
  if (found.st_uid != 0 && found.st_uid != ::geteuid()) {
    throw Error(base::kConfigFileError,
                fmt::format("private key file \"{}\" must be owned by the user that serves, or by "
                            "root",
                            file));
  }
  const mode_t refused = found.st_uid == 0 ? S_IWGRP | S_IXGRP | S_IRWXO : S_IRWXG | S_IRWXO;
  if ((found.st_mode & refused) != 0) {
    throw Error(base::kConfigFileError,
                fmt::format("private key file \"{}\" may be read by others", file))
        .Hint("Give it mode 0600, or 0640 if root owns it.");
  }
}

}  // namespace

std::string TlsErrorText() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return "no reason given";
  const char* reason = ERR_reason_error_string(code);
  return reason == nullptr ? fmt::format("OpenSSL error {:#x}", code) : std::string(reason);
}

void TlsIdentity::Free::operator()(ssl_ctx_st* context) const { SSL_CTX_free(context); }

std::shared_ptr<const TlsIdentity> TlsIdentity::Load(const TlsFiles& files) {
  return std::shared_ptr<const TlsIdentity>(new TlsIdentity(files));
}

TlsIdentity::TlsIdentity(const TlsFiles& files) : context_(SSL_CTX_new(TLS_server_method())) {
  if (!context_) throw Error(base::kSystemError, "could not set up TLS: " + TlsErrorText());
  SSL_CTX* context = context_.get();
  ERR_clear_error();
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET |
                                   SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_alpn_select_cb(context, ChooseProtocol, nullptr);
  if (SSL_CTX_use_certificate_chain_file(context, files.certificate_file.c_str()) != 1) {
    throw Error(base::kConfigFileError,
                fmt::format("could not load certificate file \"{}\": {}", files.certificate_file,
                            TlsErrorText()));
  }
  RequirePrivate(files.key_file);
  bool asked = false;
  SSL_CTX_set_default_passwd_cb(context, NoPassphrase);
  SSL_CTX_set_default_passwd_cb_userdata(context, &asked);
  const bool loaded =
      SSL_CTX_use_PrivateKey_file(context, files.key_file.c_str(), SSL_FILETYPE_PEM) == 1;
  SSL_CTX_set_default_passwd_cb_userdata(context, nullptr);
  if (asked) {
    throw Error(base::kConfigFileError,
                fmt::format("private key file \"{}\" is protected by a passphrase", files.key_file))
        .Hint("Store it without one: openssl pkey -in KEY -out PLAIN_KEY.");
  }
  if (!loaded || SSL_CTX_check_private_key(context) != 1) {
    throw Error(base::kConfigFileError, fmt::format("could not load private key file \"{}\": {}",
                                                    files.key_file, TlsErrorText()));
  }
}

}  // namespace tidemark::gateway
