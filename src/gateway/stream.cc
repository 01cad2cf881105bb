#include "gateway/stream.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <utility>

namespace tidemark::gateway {

Stream::Stream(Socket socket, std::function<void(Error)> on_sent)
    : socket_(std::move(socket)), on_sent_(std::move(on_sent)) {}

void Stream::Read(std::function<void(Error, std::string_view)> on_read) {
  if (!read_buffer_) read_buffer_.reset(new char[kReadBytesMax]);
  reading_ = true;
  socket_.async_read_some(boost::asio::buffer(read_buffer_.get(), kReadBytesMax),
                          [this, on_read = std::move(on_read)](Error error, size_t bytes) {
                            reading_ = false;
                            on_read(error, {read_buffer_.get(), bytes});
                          });
}

void Stream::Send(std::string bytes, const std::shared_ptr<void>& owner) {
  if (bytes.empty()) return;
  if (queued_.empty()) {
    queued_ = std::move(bytes);
  } else {
    queued_ += bytes;
  }
  if (writing_.empty()) Write(owner);
}

void Stream::Write(const std::shared_ptr<void>& owner) {
  writing_.swap(queued_);
  boost::asio::async_write(socket_, boost::asio::buffer(writing_),
                           [this, owner](Error error, size_t) {
                             writing_.clear();
                             if (error) return on_sent_(error);
                             if (!queued_.empty()) return Write(owner);
                             if (finishing_) ShutdownSend();
                             on_sent_(error);
                           });
}

void Stream::FinishSending() {
  if (!std::exchange(finishing_, true) && unsent_bytes() == 0) ShutdownSend();
}

void Stream::ShutdownSend() {
  Error ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
}

void Stream::Close() {
  Error ignored;
  socket_.close(ignored);
}

void SetNoDelay(Stream::Socket& socket) {
  Stream::Error ignored;  // a Unix socket has no such option
  socket.set_option(boost::asio::ip::tcp::no_delay(true), ignored);
}

}  // namespace tidemark::gateway
