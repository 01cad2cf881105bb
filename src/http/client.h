// A client that posts to one address, over a connection that is kept while the server lets it.
// Follows no redirection. https shows the server's certificate to the authorities that the system
// trusts (SSL_CERT_FILE, SSL_CERT_DIR) and compares its name. Owned by one thread. Boost.Beast, RFC
// 9112.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "http/url.h"

namespace tidemark::http {

class Client {
 public:
  /// Connects to nothing yet.
  explicit Client(Url url);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  using Headers = std::vector<std::pair<std::string, std::string>>;

  /// Posts `body` and returns the status of the complete answer; what it holds is read (at most 64
  /// kB of it) and dropped. A kept connection that turns out to be closed is opened again and the
  /// request repeated. Throws 08001 when no connection comes about, 08006 when it breaks before the
  /// answer is complete, 57014 at the deadline and on stop, 08P01 when the answer is no HTTP; their
  /// texts show host and port and nothing else of the address.
  int Post(std::string_view body, const Headers& headers, base::Deadline deadline,
           const std::stop_token& stop);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tidemark::http
