// The certificate and key that the server shows, as Asio wants them. TLS 1.2 and newer.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>

#include "http/options.h"

namespace tidemark::http {

/// Throws F0000 when one of the files cannot be used or the key is protected by a passphrase.
std::shared_ptr<boost::asio::ssl::context> LoadTlsContext(const TlsFiles& files);

}  // namespace tidemark::http
