#include "gateway/stream.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <exception>
#include <utility>

namespace tidemark::gateway {

Stream::Stream(Socket socket, std::function<void(Error)> on_sent)
    : socket_(std::move(socket)), on_sent_(std::move(on_sent)) {}

void Stream::Read(OnRead on_read, const std::shared_ptr<void>& owner) {
  reading_ = true;
  on_read_ = std::move(on_read);
  if (tls_ && (tls_->ended() || !received_.empty())) {
    boost::asio::post(socket_.get_executor(), [this, owner] {
      if (tls_->ended()) return Deliver(boost::asio::error::eof, {});
      Decrypt({}, std::exchange(received_, {}), owner);
    });
    return;
  }
  ReadSocket(owner);
}

void Stream::ReadSocket(const std::shared_ptr<void>& owner) {
  if (!read_buffer_) read_buffer_.reset(new char[kReadBytesMax]);
  socket_.async_read_some(boost::asio::buffer(read_buffer_.get(), kReadBytesMax),
                          [this, owner](Error error, size_t bytes) {
                            const std::string_view read(read_buffer_.get(), bytes);
                            tls_ ? Decrypt(error, read, owner) : Deliver(error, read);
                          });
}

// Reads on until something of the peer's own words is there.
void Stream::Decrypt(Error error, std::string_view bytes, const std::shared_ptr<void>& owner) {
  if (error) return Deliver(error, {});  // a peer that leaves without farewell has ended, too
  if (!failure_.empty()) return Deliver({}, {});
  std::string to_peer;
  plain_.clear();
  try {
    tls_->Receive(bytes, plain_, to_peer);
  } catch (const std::exception& failure) {
    failure_ = failure.what();
    Enqueue(std::move(to_peer), owner);
    return Deliver(make_error_code(boost::system::errc::protocol_error), {});
  }
  Enqueue(std::move(to_peer), owner);
  if (!plain_.empty()) return Deliver({}, plain_);
  if (tls_->ended()) return Deliver(boost::asio::error::eof, {});
  ReadSocket(owner);
}

void Stream::Deliver(Error error, std::string_view bytes) {
  reading_ = false;
  std::exchange(on_read_, nullptr)(error, bytes);
}

void Stream::Send(std::string bytes, const std::shared_ptr<void>& owner) {
  if (!tls_) return Enqueue(std::move(bytes), owner);
  std::string encrypted;
  tls_->Send(bytes, encrypted);
  Enqueue(std::move(encrypted), owner);
}

void Stream::Enqueue(std::string bytes, const std::shared_ptr<void>& owner) {
  if (bytes.empty()) return;
  if (queued_.empty()) {
    queued_ = std::move(bytes);
  } else {
    queued_ += bytes;
  }
  if (writing_.empty()) Write(owner);
}

// The socket mostly takes everything at once: then nothing has to be waited for, and nobody told.
void Stream::Write(const std::shared_ptr<void>& owner) {
  writing_.swap(queued_);
  Error error;
  if (!socket_.non_blocking()) socket_.non_blocking(true, error);
  const size_t sent = error ? 0 : socket_.write_some(boost::asio::buffer(writing_), error);
  if (!error && sent == writing_.size()) {
    writing_.clear();
    return;
  }
  WriteOn(error ? 0 : sent, owner);
}

void Stream::WriteOn(size_t sent, const std::shared_ptr<void>& owner) {
  boost::asio::async_write(socket_, boost::asio::buffer(writing_) + sent,
                           [this, owner](Error error, size_t) {
                             writing_.clear();
                             if (error) return on_sent_(error);
                             if (!queued_.empty()) {
                               writing_.swap(queued_);
                               return WriteOn(0, owner);
                             }
                             if (finishing_) ShutdownSend();
                             on_sent_(error);
                           });
}

void Stream::FinishSending(const std::shared_ptr<void>& owner) {
  if (std::exchange(finishing_, true)) return;
  if (tls_ && failure_.empty()) {
    std::string farewell;
    tls_->FinishSending(farewell);
    Enqueue(std::move(farewell), owner);
  }
  if (unsent_bytes() == 0) ShutdownSend();
}

void Stream::ShutdownSend() {
  Error ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
}

void Stream::Close() {
  Error ignored;
  socket_.close(ignored);
}

void Stream::BeginTls(std::unique_ptr<Tls> tls, std::string_view received) {
  tls_ = std::move(tls);
  received_ = received;
}

void SetTcpOptions(Stream::Socket& socket) {
  Stream::Error ignored;  // a Unix socket has no such options
  socket.set_option(boost::asio::ip::tcp::no_delay(true), ignored);
  socket.set_option(boost::asio::socket_base::keep_alive(true), ignored);
}

}  // namespace tidemark::gateway
