// One client's connection: reads requests one after the other, has them answered and writes the
// answers, until it becomes one that reads events (event_sender.h). Never holds more than one
// request and one answer. Every wait has a deadline. All on the server's thread. Boost.Beast; RFC
// 9112.
//
//   shaking hands ─► idle ─► reading ─► working ─► writing ─► idle
//     (TLS only)              │ 4xx        │         │ last answer
//                             └────────────┼────────►└─► lingering ─► closed
//                                          └─► EventSender
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <memory>

#include "http/house.h"

namespace tidemark::http {

class Connection {
 public:
  /// `tls` may be nullptr. `refused`: answers its first request with 503.
  static std::shared_ptr<Connection> Make(boost::asio::ip::tcp::socket socket, House& house,
                                          std::shared_ptr<boost::asio::ssl::context> tls,
                                          bool refused);
  virtual ~Connection() = default;

  virtual void Start() = 0;
  /// Waits for a request, so that nobody misses anything when it is closed.
  virtual bool IsIdle() const = 0;
  /// There are new events.
  virtual void OnNews() {}
  /// What was sent of events does not belong to the store's past.
  virtual void OnOtherPast() {}
  /// Closes, after what is under way.
  virtual void Stop() = 0;
  /// Closes at once.
  virtual void Close() = 0;
};

using TlsStream = boost::asio::ssl::stream<boost::asio::ip::tcp::socket>;
inline boost::asio::ip::tcp::socket& SocketOf(boost::asio::ip::tcp::socket& stream) {
  return stream;
}
inline boost::asio::ip::tcp::socket& SocketOf(TlsStream& stream) { return stream.next_layer(); }

}  // namespace tidemark::http
