#include "gateway/relay.h"

#include <fmt/format.h>

#include <boost/asio/dispatch.hpp>
#include <boost/asio/error.hpp>
#include <utility>

#include "gateway/store_connector.h"

namespace tidemark::gateway {
namespace {

// A side is read while fewer bytes than this wait for the other: with one more read and the bytes
// being written this keeps a direction under 256 kB.
constexpr size_t kUnsentBytesMax = 128 * 1024;
// A closed session's client may take so long to notice.
constexpr std::chrono::seconds kFarewellLimit{1};

}  // namespace

Relay::Relay(boost::asio::ip::tcp::socket client, std::shared_ptr<const Options> options,
             House house)
    : options_(std::move(options)),
      house_(std::move(house)),
      frontend_(Stream::Socket(std::move(client)), [this](Stream::Error e) { OnFrontendSent(e); }),
      backend_(Stream::Socket(frontend_.socket().get_executor()),
               [this](Stream::Error e) { OnBackendSent(e); }),
      timer_(frontend_.socket().get_executor()),
      startup_({.offers_tls = options_->tls.has_value(),
                .requires_tls = options_->requires_tls,
                .bytes_max = options_->startup_bytes_max}),
      session_({.text_bytes_max = options_->text_bytes_max, .superusers = options_->superusers}) {}

/// Runs `act`; whatever it throws ends this relay only.
template <typename Act>
void Relay::Guard(Act&& act) {
  try {
    act();
  } catch (const std::exception& error) {
    Log(fmt::format("a session was ended: {}", error.what()));
    Close();
  }
}

void Relay::Log(std::string_view line) const {
  if (options_->on_log) options_->on_log(line);
}

void Relay::Start() {
  boost::asio::dispatch(timer_.get_executor(), [self = shared_from_this()] {
    SetTcpOptions(self->frontend_.socket());
    self->CloseAfter(self->options_->startup_timeout);
    self->ReadStartup();
  });
}

void Relay::Stop(const base::Error& reason) {
  boost::asio::dispatch(timer_.get_executor(), [self = shared_from_this(), reason] {
    if (self->closed_ || self->finishing_) return;
    if (!self->relaying_) return self->Close();
    self->Guard([&] {
      self->finishing_ = true;
      self->Perform(self->session_.OnStop(reason));
      self->backend_.FinishSending(self);
      self->Finish(self->options_->stop_timeout);
    });
  });
}

void Relay::ReadStartup() {
  frontend_.Read(
      [this](Stream::Error error, std::string_view bytes) {
        if (closed_ || finishing_) return;
        if (!error) return Guard([&] { OnStartupBytes(bytes); });
        if (frontend_.failure().empty()) return Close();
        Log(frontend_.failure());
        Finish(kFarewellLimit);  // what TLS itself has to say of it
      },
      shared_from_this());
}

void Relay::OnStartupBytes(std::string_view bytes) {
  try {
    frontend_.Send(startup_.OnBytes(bytes), shared_from_this());
  } catch (const base::Error& error) {
    return Refuse(error);
  }
  if (!startup_.request()) return ReadStartup();
  if (startup_.request() == Startup::Request::kTls) return BeginTls();
  timer_.cancel();
  house_.started(this);
  if (startup_.request() == Startup::Request::kCancel) return ForwardCancel();
  BeginSession();
}

void Relay::BeginTls() {
  const auto identity = house_.identity();
  frontend_.BeginTls(std::make_unique<Tls>(*identity, Tls::Options{startup_.direct_tls()}),
                     startup_.rest());
  startup_.OnTls();
  ReadStartup();
}

void Relay::BeginSession() {
  admitted_ = house_.admit();
  if (!admitted_) {
    return Refuse(base::Error(base::kTooManyConnections, "sorry, too many clients already"));
  }
  timer_.expires_after(options_->connect_timeout);
  timer_.async_wait([self = shared_from_this()](Stream::Error cancelled) {
    if (!cancelled && !self->relaying_) self->backend_.Close();
  });
  StoreConnector::Connect(options_->store, backend_.socket(),
                          [self = shared_from_this()](Stream::Error error) {
                            self->Guard([&] { self->OnConnected(error); });
                          });
}

void Relay::OnConnected(Stream::Error error) {
  if (closed_) return;
  timer_.cancel();
  if (error) {
    Log(fmt::format("could not connect to the store: {}", error.message()));
    return Refuse(
        base::Error(base::kCannotConnectNow, "could not connect to the store")
            .Detail(fmt::format("The gateway's attempt ended with: {}.", error.message())));
  }
  relaying_ = true;
  Perform(session_.OnStartup(startup_.packet()));
  Perform(session_.OnFrontendBytes(startup_.rest()));
  startup_ = Startup({});
}

void Relay::ForwardCancel() {
  CloseAfter(options_->connect_timeout);
  cancel_ = Cancel::Send(Stream::Socket(timer_.get_executor()), options_->store,
                         std::string(startup_.packet()), [weak = weak_from_this()] {
                           if (const auto self = weak.lock()) self->Finish(kFarewellLimit);
                         });
}

void Relay::ReadFrontend() {
  if (!relaying_ || closed_ || finishing_ || frontend_ended_ || frontend_.reading()) return;
  if (!session_.wants_frontend() || backend_.unsent_bytes() >= kUnsentBytesMax) return;
  frontend_.Read(
      [this](Stream::Error error, std::string_view bytes) {
        Guard([&] { OnFrontendRead(error, bytes); });
      },
      shared_from_this());
}

void Relay::ReadBackend() {
  if (!relaying_ || closed_ || finishing_ || backend_.reading()) return;
  if (frontend_.unsent_bytes() >= kUnsentBytesMax) return;
  backend_.Read(
      [this](Stream::Error error, std::string_view bytes) {
        Guard([&] { OnBackendRead(error, bytes); });
      },
      shared_from_this());
}

void Relay::OnFrontendRead(Stream::Error error, std::string_view bytes) {
  if (closed_) return;
  if (finishing_) {
    frontend_ended_ = static_cast<bool>(error);
    return AwaitClientEnd();
  }
  if (error && error != boost::asio::error::eof) return Close();
  frontend_ended_ = static_cast<bool>(error);
  Perform(frontend_ended_ ? Steps() : session_.OnFrontendBytes(bytes));
}

void Relay::OnBackendRead(Stream::Error error, std::string_view bytes) {
  if (closed_ || finishing_) return;
  if (error) {
    // The store went without a word, so the word is ours.
    if (!frontend_ended_ && !session_.parted()) {
      const base::Error lost(base::kConnectionFailure, "the store closed the connection");
      frontend_.Send(session_.OnStop(lost).to_client, shared_from_this());
    }
    return Finish(options_->drain_timeout);
  }
  Perform(session_.OnBackendBytes(bytes));
}

void Relay::Perform(Steps steps) {
  frontend_.Send(std::move(steps.to_client), shared_from_this());
  backend_.Send(std::move(steps.to_backend), shared_from_this());
  // The client sends no more: so the store is told, as it would be by the client itself, and
  // closes when it has answered.
  if (frontend_ended_ && !session_.holds()) backend_.FinishSending(shared_from_this());
  ReadFrontend();
  ReadBackend();
}

void Relay::OnFrontendSent(Stream::Error error) {
  if (error) return Close();
  if (finishing_) return AwaitClientEnd();
  ReadBackend();
}

void Relay::OnBackendSent(Stream::Error error) {
  // After an error, what the store said before it closed is still to be read.
  if (!error) ReadFrontend();
}

void Relay::Refuse(const base::Error& error) {
  std::string message;
  wire::ErrorFields::From(error, "FATAL").Write(message);
  frontend_.Send(std::move(message), shared_from_this());
  Finish(kFarewellLimit);
}

void Relay::Finish(std::chrono::milliseconds limit) {
  if (closed_) return;
  finishing_ = true;
  frontend_.FinishSending(shared_from_this());
  CloseAfter(limit);
  if (frontend_.unsent_bytes() == 0) AwaitClientEnd();
}

// Reads on, so that closing does not reset the connection before the client has read the rest.
void Relay::AwaitClientEnd() {
  if (closed_ || frontend_.unsent_bytes() > 0) return;
  if (frontend_ended_) return Close();
  if (!std::exchange(parting_, true)) CloseAfter(kFarewellLimit);
  if (frontend_.reading()) return;
  frontend_.Read(
      [this](Stream::Error error, std::string_view) {
        frontend_ended_ = static_cast<bool>(error);
        AwaitClientEnd();
      },
      shared_from_this());
}

void Relay::CloseAfter(std::chrono::milliseconds limit) {
  timer_.expires_after(limit);
  timer_.async_wait([self = shared_from_this()](Stream::Error cancelled) {
    if (!cancelled) self->Close();
  });
}

void Relay::Close() {
  if (std::exchange(closed_, true)) return;
  timer_.cancel();
  frontend_.Close();
  backend_.Close();
  if (cancel_) std::exchange(cancel_, nullptr)->Close();
  if (admitted_) house_.release();
  house_.gone(this);
}

}  // namespace tidemark::gateway
