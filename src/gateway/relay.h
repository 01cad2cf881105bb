// One client connection and the store connection that belongs to it: reads both sockets, asks the
// Session what to do, does it. Holds back: a side is read only while the other side's unsent bytes
// are few, so that at most about 256 kB are kept per direction. Everything runs on one strand.
//
//   starting (TLS included) ──► connecting ──► relaying ──► closing ──► closed
//      └─── refused, or a cancel request has been forwarded ───┘
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "gateway/cancel.h"
#include "gateway/options.h"
#include "gateway/session.h"
#include "gateway/startup.h"
#include "gateway/stream.h"
#include "gateway/tls_identity.h"

namespace tidemark::gateway {

class Relay : public std::enable_shared_from_this<Relay> {
 public:
  /// What the relay asks of its listener.
  struct House {
    /// What to show clients that want TLS; called only if Options::tls is set.
    std::function<std::shared_ptr<const TlsIdentity>()> identity;
    std::function<void(Relay*)> started;  // the client has said what it wants
    std::function<bool()> admit;          // true when one more session may begin
    std::function<void()> release;        // an admitted session has ended
    std::function<void(Relay*)> gone;
  };

  Relay(boost::asio::ip::tcp::socket client, std::shared_ptr<const Options> options, House house);

  /// Begins to read. Any thread.
  void Start();
  /// Says farewell with `reason` and closes; at once when nothing of the client is under way. Any
  /// thread.
  void Stop(const base::Error& reason);

 private:
  void ReadStartup();
  void OnStartupBytes(std::string_view bytes);
  void BeginTls();
  void BeginSession();
  void ForwardCancel();
  void OnConnected(Stream::Error error);

  void ReadFrontend();
  void ReadBackend();
  void OnFrontendRead(Stream::Error error, std::string_view bytes);
  void OnBackendRead(Stream::Error error, std::string_view bytes);
  void OnFrontendSent(Stream::Error error);
  void OnBackendSent(Stream::Error error);
  void Perform(Steps steps);
  void Log(std::string_view line) const;
  void Refuse(const base::Error& error);
  /// Sends what is left to the client and closes both sides within `limit`.
  void Finish(std::chrono::milliseconds limit);
  void AwaitClientEnd();
  void Close();
  void CloseAfter(std::chrono::milliseconds limit);
  template <typename Act>
  void Guard(Act&& act);

  std::shared_ptr<const Options> options_;
  House house_;
  Stream frontend_, backend_;
  boost::asio::steady_timer timer_;
  Startup startup_;
  Session session_;
  std::shared_ptr<Cancel> cancel_;
  bool admitted_ = false;
  bool relaying_ = false;
  bool frontend_ended_ = false;  // the client sends no more
  bool finishing_ = false;       // nothing is relayed any more
  bool parting_ = false;         // everything is sent, the client has yet to close
  bool closed_ = false;
};

}  // namespace tidemark::gateway
