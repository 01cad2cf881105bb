#include "http/connection.h"

#include <array>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>
#include <fmt/format.h>

#include <optional>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "http/admission.h"
#include "http/answer.h"
#include "http/event_sender.h"
#include "http/problem.h"
#include "http/subscription.h"
#include "http/watchdog.h"

namespace tidemark::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace beast_http = boost::beast::http;
using asio::ip::tcp;
using base::Error;
using beast::error_code;
using temporal::EventId;

constexpr std::chrono::seconds kLingerLimit{2};
constexpr size_t kLingerBytesMax = size_t{4} << 20;
constexpr size_t kReadAheadBytes = size_t{64} << 10;
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

constexpr base::SqlState kProgramLimitExceeded{"54000"};

enum class State { kHandshake, kIdle, kReading, kWorking, kWriting, kLingering, kClosed };

/// How a read that failed is answered; nullopt when there is nobody to answer.
std::optional<Response> AnswerTo(error_code error) {
  if (error == beast_http::error::header_limit || error == beast_http::error::buffer_overflow) {
    return Problem(431, Error(kProgramLimitExceeded, "the request's head is too large"));
  }
  if (error == beast_http::error::body_limit) {
    return Problem(413, Error(kProgramLimitExceeded, "the request's body is too large"));
  }
  if (error == beast_http::error::end_of_stream || error == beast_http::error::partial_message) {
    return std::nullopt;
  }
  if (error == beast_http::error::bad_version) {
    return Problem(505, Error(base::kFeatureNotSupported, "only HTTP/1.0 and HTTP/1.1 are spoken"));
  }
  if (error.category() == beast_http::make_error_code(beast_http::error::bad_method).category()) {
    return Problem(400, Error(base::kProtocolViolation, "malformed request: " + error.message()));
  }
  return std::nullopt;
}

const Error kNoStore(base::kCannotConnectNow, "the store was not asked");

Response Run(const Page& page, const Request& request, const PathParameters& parameters,
             pg::Connection* store, const Error& away) {
  try {
    if (const auto* prompt = std::get_if<PromptHandler>(&page)) {
      return (*prompt)(request, parameters);
    }
    if (const auto* handler = std::get_if<Handler>(&page)) {
      return store == nullptr ? Problem(503, away) : (*handler)(request, parameters, *store);
    }
    return std::get<StoreOptionalHandler>(page)(request, parameters, store);
  } catch (const Error& error) {
    return Problem(error);
  } catch (const std::exception& error) {
    return Problem(Error(base::kInternalError, error.what()));
  }
}

/// After which event to begin, or why not.
std::variant<EventId, Response> PlaceOf(const Subscription& subscription, pg::Connection* store,
                                        const Error& away) {
  if (store == nullptr) return Problem(503, away);
  try {
    return subscription.Place(*store);
  } catch (const Error& error) {
    return Problem(error);
  }
}

template <typename Stream>
class ConnectionOver final : public Connection,
                             public std::enable_shared_from_this<ConnectionOver<Stream>> {
 public:
  ConnectionOver(House& house, bool refused, std::shared_ptr<asio::ssl::context> tls,
                 std::unique_ptr<Stream> stream)
      : house_(house),
        refused_(refused),
        tls_(std::move(tls)),
        stream_(std::move(stream)),
        buffer_(house.options.head_bytes_max + kReadAheadBytes),
        patience_(stream_->get_executor()) {}

  void Start() override {
    if constexpr (std::is_same_v<Stream, TlsStream>) {
      state_ = State::kHandshake;
      Arm(house_.options.request_timeout);
      stream_->async_handshake(asio::ssl::stream_base::server,
                               [self = Self()](error_code error) {
                                 if (self->IsClosed()) return;
                                 if (error) return self->Close();
                                 self->AwaitRequest();
                               });
    } else {
      AwaitRequest();
    }
  }

  bool IsIdle() const override { return state_ == State::kIdle; }

  void Stop() override {
    stopping_ = true;  // what is under way is the last
    if (state_ == State::kHandshake || state_ == State::kIdle) Close();
  }

  void Close() override {
    if (IsClosed()) return;
    state_ = State::kClosed;
    patience_.Disarm();
    error_code ignored;
    SocketOf(*stream_).close(ignored);
    house_.gone(this);
  }

 private:
  std::shared_ptr<ConnectionOver> Self() { return this->shared_from_this(); }
  bool IsClosed() const { return state_ == State::kClosed; }

  void Arm(std::chrono::milliseconds span) {
    patience_.Arm(span, Self(), &ConnectionOver::OnDeadline);
  }

  void OnDeadline() {
    if (IsClosed()) return;
    if (state_ == State::kReading) {
      // The read that is under way ends and is answered.
      timed_out_ = true;
      error_code ignored;
      SocketOf(*stream_).cancel(ignored);
      return;
    }
    if (state_ == State::kWriting) ++house_.counts.cut;
    Close();
  }

  // ---- reading a request

  void AwaitRequest() {
    if (stopping_) return Close();
    state_ = State::kIdle;
    timed_out_ = false;
    parser_.emplace();
    parser_->header_limit(static_cast<uint32_t>(house_.options.head_bytes_max));
    parser_->body_limit(house_.options.body_bytes_max);
    if (buffer_.size() > 0) return ReadHead();
    Arm(house_.options.idle_timeout);
    stream_->async_read_some(buffer_.prepare(4096),
                             [self = Self()](error_code error, size_t bytes) {
                               if (self->IsClosed()) return;
                               if (error) return self->Close();
                               self->buffer_.commit(bytes);
                               self->ReadHead();
                             });
  }

  void ReadHead() {
    state_ = State::kReading;
    Arm(house_.options.request_timeout);
    beast_http::async_read_header(
        *stream_, buffer_, *parser_,
        [self = Self()](error_code error, size_t) { self->OnHead(error); });
  }

  void OnHead(error_code error) {
    if (IsClosed()) return;
    if (!CheckRead(error)) return;
    const auto& head = parser_->get();
    const bool has_body = !parser_->is_done();
    head_only_ = head.method() == beast_http::verb::head;
    version_ = head.version();
    try {
      request_ = RequestOf(head, raw_path_);
      if (refused_) {
        return RefuseFull("too many connections");
      }
      auto admitted = Admit(house_.router, house_.options.token, request_, raw_path_);
      if (auto* response = std::get_if<Response>(&admitted)) {
        return Respond(std::move(*response), !has_body && head.keep_alive());
      }
      route_ = std::get<Router::Route>(std::move(admitted));
    } catch (const Error& refusal) {
      return Respond(Problem(refusal), false);
    }
    if (!has_body) return Dispatch();
    const auto expect = request_.Header("expect");
    if (expect && beast::iequals(beast::string_view(expect->data(), expect->size()),
                                 "100-continue")) {
      return Continue();
    }
    ReadBody();
  }

  void Continue() {
    asio::async_write(*stream_, asio::buffer(kContinue), [self = Self()](error_code error, size_t) {
      if (self->IsClosed()) return;
      if (error || self->timed_out_) return self->Close();
      self->ReadBody();
    });
  }

  void ReadBody() {
    beast_http::async_read(*stream_, buffer_, *parser_, [self = Self()](error_code error, size_t) {
      if (self->IsClosed() || !self->CheckRead(error)) return;
      self->Dispatch();
    });
  }

  /// False when the read has failed; that is answered then, if there is somebody to answer.
  bool CheckRead(error_code error) {
    if (timed_out_) {
      Respond(Problem(408, Error(base::kQueryCanceled, "the request did not arrive in time")),
              false);
      return false;
    }
    if (!error) return true;
    if (auto answer = AnswerTo(error)) {
      Respond(std::move(*answer), false);
    } else {
      Close();
    }
    return false;
  }

  // ---- answering

  void Dispatch() {
    ++house_.counts.requests;
    patience_.Disarm();
    request_.body = std::move(parser_->get().body());
    const bool keep_alive = parser_->get().keep_alive();
    if (std::holds_alternative<PromptHandler>(*route_.page)) {
      return Respond(Run(*route_.page, request_, route_.parameters, nullptr, kNoStore), keep_alive);
    }
    if (std::holds_alternative<EventStream>(*route_.page)) return Subscribe();
    state_ = State::kWorking;
    house_.workers.Submit([self = Self(), keep_alive](pg::Connection* store,
                                                      const Error& away) mutable {
      // Nobody else touches these while the connection works.
      auto response =
          Run(*self->route_.page, self->request_, self->route_.parameters, store, away);
      Post(std::move(self),
           [response = std::move(response), keep_alive](ConnectionOver& it) mutable {
             it.Respond(std::move(response), keep_alive);
           });
    });
  }

  /// Has `act` done on the server's thread, which is also where the last reference goes.
  template <typename Act>
  static void Post(std::shared_ptr<ConnectionOver> self, Act act) {
    const auto executor = SocketOf(*self->stream_).get_executor();
    asio::post(executor, [self = std::move(self), act = std::move(act)]() mutable {
      if (!self->IsClosed()) act(*self);
    });
  }

  void RefuseFull(const char* why) {
    auto response = Problem(503, Error(base::kTooManyConnections, why));
    response.headers.emplace_back("Retry-After", "1");
    Respond(std::move(response), false);
  }

  void Respond(Response response, bool keep_alive) {
    if (response.status >= 500) Log(response);
    keep_alive = keep_alive && !stopping_;
    state_ = State::kWriting;
    answer_ = AnswerOf(std::move(response), {.head_only = head_only_,
                                             .keep_alive = keep_alive,
                                             .version = version_ >= 11 ? 11U : 10U});
    serializer_.emplace(answer_);
    Arm(house_.options.write_timeout);
    beast_http::async_write(*stream_, *serializer_,
                            [self = Self(), keep_alive](error_code error, size_t) {
                              if (self->IsClosed()) return;
                              self->serializer_.reset();
                              self->answer_ = {};
                              if (error) return self->Close();
                              if (keep_alive) return self->AwaitRequest();
                              self->Linger();
                            });
  }

  void Log(const Response& response) const {
    if (!house_.options.on_log) return;
    const std::string_view what = response.body;
    house_.options.on_log(fmt::format("{} {}: {} {}", request_.method, raw_path_, response.status,
                                      what.substr(0, what.find('\n'))));
  }

  // ---- leaving: what the peer still sends is read for a while, or it might never see our answer

  void Linger() {
    state_ = State::kLingering;
    Arm(kLingerLimit);
    if constexpr (std::is_same_v<Stream, TlsStream>) {
      stream_->async_shutdown([self = Self()](error_code) {
        if (!self->IsClosed()) self->Discard();
      });
    } else {
      Discard();
    }
  }

  void Discard() {
    error_code ignored;
    SocketOf(*stream_).shutdown(tcp::socket::shutdown_send, ignored);
    DiscardMore();
  }

  void DiscardMore() {
    SocketOf(*stream_).async_read_some(
        asio::buffer(discarded_), [self = Self()](error_code error, size_t bytes) {
          if (self->IsClosed()) return;
          self->discarded_bytes_ += bytes;
          if (error || self->discarded_bytes_ > kLingerBytesMax) return self->Close();
          self->DiscardMore();
        });
  }

  // ---- streaming events

  void Subscribe() {
    try {
      subscription_ = Subscription::Parse(request_);
    } catch (const Error& error) {
      return Respond(Problem(error), parser_->get().keep_alive());
    }
    if (head_only_) {
      return Respond({.content_type = "text/event-stream", .body = ""}, false);
    }
    auto seat = SubscriberSeat::Take(house_.counts, house_.options.subscribers_max);
    if (!seat) return RefuseFull("too many subscribers");
    seat_.emplace(std::move(*seat));
    state_ = State::kWorking;
    house_.workers.Submit([self = Self()](pg::Connection* store, const Error& away) mutable {
      auto place = PlaceOf(self->subscription_, store, away);
      Post(std::move(self), [place = std::move(place)](ConnectionOver& it) mutable {
        if (auto* response = std::get_if<Response>(&place)) {
          it.seat_.reset();
          return it.Respond(std::move(*response), false);
        }
        it.BecomeSender(std::get<EventId>(place));
      });
    });
  }

  void BecomeSender(EventId after) {
    if (stopping_) return Close();
    state_ = State::kClosed;
    house_.became(this, std::make_shared<EventSender<Stream>>(
                            house_, std::move(stream_), tls_, std::move(*seat_),
                            typename EventSender<Stream>::Options{
                                .filter = std::move(subscription_.filter),
                                .after = after,
                                .chunked = version_ >= 11}));
  }

  House& house_;
  const bool refused_;
  const std::shared_ptr<asio::ssl::context> tls_;  // outlives the stream
  std::unique_ptr<Stream> stream_;
  beast::flat_buffer buffer_;
  Watchdog patience_;
  State state_ = State::kIdle;
  bool stopping_ = false, timed_out_ = false;

  std::optional<beast_http::request_parser<beast_http::string_body>> parser_;
  Request request_;
  std::string raw_path_;  // as it was sent
  Router::Route route_{};
  bool head_only_ = false;
  unsigned version_ = 11;
  Subscription subscription_;
  std::optional<SubscriberSeat> seat_;

  BeastResponse answer_;
  std::optional<beast_http::response_serializer<beast_http::string_body>> serializer_;
  std::array<char, 4096> discarded_ = {};
  size_t discarded_bytes_ = 0;
};

}  // namespace

std::shared_ptr<Connection> Connection::Make(tcp::socket socket, House& house,
                                             std::shared_ptr<asio::ssl::context> tls,
                                             bool refused) {
  if (!tls) {
    return std::make_shared<ConnectionOver<tcp::socket>>(
        house, refused, nullptr, std::make_unique<tcp::socket>(std::move(socket)));
  }
  auto stream = std::make_unique<TlsStream>(std::move(socket), *tls);
  return std::make_shared<ConnectionOver<TlsStream>>(house, refused, std::move(tls),
                                                     std::move(stream));
}

}  // namespace tidemark::http
