#include "http/tls_context.h"

#include <fmt/format.h>

#include "base/error.h"

namespace tidemark::http {

namespace ssl = boost::asio::ssl;

std::shared_ptr<ssl::context> LoadTlsContext(const TlsFiles& files) {
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  context->set_options(ssl::context::default_workarounds | ssl::context::no_sslv2 |
                       ssl::context::no_sslv3 | ssl::context::no_tlsv1 | ssl::context::no_tlsv1_1 |
                       ssl::context::no_compression);
  // Nobody is there to be asked.
  context->set_password_callback(
      [](size_t, ssl::context::password_purpose) { return std::string(); });
  boost::system::error_code error;
  const auto require = [&](const std::string& file) {
    if (!error) return;
    throw base::Error(base::kConfigFileError,
                      fmt::format("http: could not use \"{}\": {}", file, error.message()));
  };
  context->use_certificate_chain_file(files.certificate_file, error);
  require(files.certificate_file);
  context->use_private_key_file(files.key_file, ssl::context::pem, error);
  require(files.key_file);
  return context;
}

}  // namespace tidemark::http
