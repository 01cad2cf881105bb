#include "http/client.h"

#include <fmt/format.h>
#include <openssl/ssl.h>

#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <functional>
#include <limits>
#include <optional>

#include "base/error.h"

namespace tidemark::http {

using base::Deadline;
using base::Error;

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using Tcp = asio::ip::tcp;
using Code = boost::system::error_code;
using PlainStream = beast::tcp_stream;
using SecureStream = beast::ssl_stream<beast::tcp_stream>;
using Message = beast::http::request<beast::http::string_body>;

constexpr size_t kAnswerBytesMax = 64 * 1024;

asio::ssl::context MakeTls() {
  asio::ssl::context context(asio::ssl::context::tls_client);
  SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
  context.set_default_verify_paths();
  context.set_verify_mode(asio::ssl::verify_peer);
  return context;
}

}  // namespace

class Client::Impl {
 public:
  explicit Impl(Url url) : url_(std::move(url)), tls_(MakeTls()), resolver_(io_) {}

  int Post(std::string_view body, const Headers& headers, Deadline deadline,
           const std::stop_token& stop) {
    const Message message = MessageOf(body, headers);
    const bool kept = IsConnected();
    try {
      if (!kept) Connect(deadline, stop);
      try {
        return Exchange(message, deadline, stop);
      } catch (const Error& error) {
        // The server may close a kept connection whenever it likes, also just now.
        if (!kept || answer_begun_ || error.state() != base::kConnectionFailure) throw;
      }
      Close();
      Connect(deadline, stop);
      return Exchange(message, deadline, stop);
    } catch (...) {
      Close();
      throw;
    }
  }

 private:
  Message MessageOf(std::string_view body, const Headers& headers) const {
    Message message(beast::http::verb::post, url_.target, 11);
    message.set(beast::http::field::host, url_.Authority());
    message.set(beast::http::field::user_agent, "tidemark");
    message.set(beast::http::field::content_type, "application/json");
    for (const auto& [name, value] : headers) message.set(name, value);
    message.body() = std::string(body);
    message.prepare_payload();
    return message;
  }

  std::string Where() const { return fmt::format("{}:{}", url_.host, url_.port); }
  bool IsConnected() const { return plain_.has_value() || secure_.has_value(); }

  void Close() {
    plain_.reset();
    secure_.reset();
  }

  /// Starts an operation and runs it to its end; `start` is given the handler to call. What did not
  /// end in time is cancelled.
  Code Run(const std::function<void(std::function<void(Code)>)>& start, Deadline deadline,
           const std::stop_token& stop) {
    std::optional<Code> done;
    io_.restart();
    start([&done](Code code) { done = code; });
    {
      const std::stop_callback on_stop(stop, [this] { io_.stop(); });
      // A stop that came before restart() left no trace in io_.
      if (!stop.stop_requested()) io_.run_for(deadline.left());
    }
    if (done) return *done;
    resolver_.cancel();
    if (plain_) beast::get_lowest_layer(*plain_).close();
    if (secure_) beast::get_lowest_layer(*secure_).close();
    io_.restart();
    while (!done && io_.run_one() > 0) {
    }
    if (stop.stop_requested()) throw Error(base::kQueryCanceled, "a stop was requested");
    throw Error(base::kQueryCanceled, fmt::format("{} did not answer in time", Where()));
  }

  void Connect(Deadline deadline, const std::stop_token& stop) {
    Tcp::resolver::results_type endpoints;
    const auto found = Run(
        [&](auto done) {
          resolver_.async_resolve(
              url_.host, std::to_string(url_.port),
              [done, &endpoints](Code code, const Tcp::resolver::results_type& results) {
                endpoints = results;
                done(code);
              });
        },
        deadline, stop);
    if (found) Refuse("find", found);
    if (url_.secure) {
      secure_.emplace(io_, tls_);
      ConnectTo(beast::get_lowest_layer(*secure_), endpoints, deadline, stop);
      Handshake(deadline, stop);
    } else {
      plain_.emplace(io_);
      ConnectTo(*plain_, endpoints, deadline, stop);
    }
  }

  void ConnectTo(PlainStream& stream, const Tcp::resolver::results_type& endpoints,
                 Deadline deadline, const std::stop_token& stop) {
    const auto connected = Run(
        [&](auto done) {
          stream.async_connect(endpoints, [done](Code code, const Tcp::endpoint&) { done(code); });
        },
        deadline, stop);
    if (connected) Refuse("connect to", connected);
    Code ignored;  // the connection may be closed already, which the exchange will tell
    stream.socket().set_option(Tcp::no_delay(true), ignored);
  }

  void Handshake(Deadline deadline, const std::stop_token& stop) {
    if (!url_.IsAddress() &&
        SSL_set_tlsext_host_name(secure_->native_handle(), url_.host.c_str()) != 1) {
      throw Error(base::kInternalError, "could not name the host to TLS");
    }
    secure_->set_verify_callback(asio::ssl::host_name_verification(url_.host));
    const auto shaken =
        Run([&](auto done) { secure_->async_handshake(asio::ssl::stream_base::client, done); },
            deadline, stop);
    if (shaken) Refuse("agree on TLS with", shaken);
  }

  [[noreturn]] void Refuse(const char* act, const Code& code) const {
    throw Error(base::kCannotConnect,
                fmt::format("could not {} {}: {}", act, Where(), code.message()));
  }

  int Exchange(const Message& message, Deadline deadline, const std::stop_token& stop) {
    answer_begun_ = false;
    return plain_ ? ExchangeOver(*plain_, message, deadline, stop)
                  : ExchangeOver(*secure_, message, deadline, stop);
  }

  template <typename Stream>
  int ExchangeOver(Stream& stream, const Message& message, Deadline deadline,
                   const std::stop_token& stop) {
    const auto sent = Run(
        [&](auto done) {
          beast::http::async_write(stream, message, [done](Code code, size_t) { done(code); });
        },
        deadline, stop);
    if (sent) Break("while sending to", sent);
    beast::flat_buffer buffer;
    beast::http::response_parser<beast::http::buffer_body> answer;
    answer.body_limit(std::numeric_limits<uint64_t>::max());  // we stop reading by ourselves
    const auto begun = Run(
        [&](auto done) {
          beast::http::async_read_header(stream, buffer, answer,
                                         [done](Code code, size_t) { done(code); });
        },
        deadline, stop);
    answer_begun_ = answer.got_some();
    if (begun) BreakOff(begun);
    std::array<char, 4096> dropped;
    size_t bytes = 0;
    while (!answer.is_done() && bytes < kAnswerBytesMax) {
      answer.get().body().data = dropped.data();
      answer.get().body().size = dropped.size();
      const auto read = Run(
          [&](auto done) {
            beast::http::async_read_some(stream, buffer, answer,
                                         [done](Code code, size_t) { done(code); });
          },
          deadline, stop);
      bytes += dropped.size() - answer.get().body().size;
      if (read && read != beast::http::error::need_buffer) BreakOff(read);
    }
    const int status = answer.get().result_int();
    if (!answer.is_done() || !answer.keep_alive()) Close();
    return status;
  }

  /// An answer that ended too early, or that is none.
  [[noreturn]] void BreakOff(const Code& code) const {
    const bool ended =
        code == beast::http::error::end_of_stream || code == beast::http::error::partial_message;
    if (!ended && code.category() == Code(beast::http::error::bad_version).category()) {
      throw Error(base::kProtocolViolation,
                  fmt::format("what {} answered is no HTTP: {}", Where(), code.message()));
    }
    Break("before the answer of", code);
  }

  [[noreturn]] void Break(const char* when, const Code& code) const {
    throw Error(base::kConnectionFailure,
                fmt::format("the connection broke {} {}: {}", when, Where(), code.message()));
  }

  const Url url_;
  asio::ssl::context tls_;
  asio::io_context io_;
  Tcp::resolver resolver_;
  std::optional<PlainStream> plain_;
  std::optional<SecureStream> secure_;
  bool answer_begun_ = false;
};

Client::Client(Url url) : impl_(std::make_unique<Impl>(std::move(url))) {}
Client::~Client() = default;

int Client::Post(std::string_view body, const Headers& headers, Deadline deadline,
                 const std::stop_token& stop) {
  return impl_->Post(body, headers, deadline, stop);
}

}  // namespace tidemark::http
