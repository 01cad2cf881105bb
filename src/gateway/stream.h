// One socket with its outgoing bytes: reads into its own buffer, writes in order, closes once all
// is written. Does not know what the bytes mean. TLS will stand here, between bytes and socket.
// All calls and handlers run on the strand that the socket was made with.
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/system/error_code.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace tidemark::gateway {

class Stream {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;
  using Error = boost::system::error_code;
  static constexpr size_t kReadBytesMax = 64 * 1024;

  /// `on_sent` is called whenever everything has been written, and with an error when that fails.
  Stream(Socket socket, std::function<void(Error)> on_sent);

  /// Calls `on_read` once with what came, or with an error; the bytes live until the next Read. One
  /// at a time. `on_read` must keep the Stream's owner alive.
  void Read(std::function<void(Error, std::string_view)> on_read);
  bool reading() const { return reading_; }

  /// Appends to what is to be written; `owner` of the Stream lives until it is.
  void Send(std::string bytes, const std::shared_ptr<void>& owner);
  size_t unsent_bytes() const { return queued_.size() + writing_.size(); }
  /// No more will be sent: closes that direction as soon as everything is written.
  void FinishSending();
  /// Both directions at once; outstanding handlers are called with an error.
  void Close();

  Socket& socket() { return socket_; }

 private:
  void Write(const std::shared_ptr<void>& owner);
  void ShutdownSend();

  Socket socket_;
  std::unique_ptr<char[]> read_buffer_;
  std::string queued_, writing_;
  std::function<void(Error)> on_sent_;
  bool reading_ = false, finishing_ = false;
};

/// Small messages are not to wait for others on TCP.
void SetNoDelay(Stream::Socket& socket);

}  // namespace tidemark::gateway
