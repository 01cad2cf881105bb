// One socket with its outgoing bytes: reads into its own buffer, writes in order, closes once all
// is written; in the clear, or under TLS once told so. Does not know what the bytes mean.
// All calls and handlers run on the strand that the socket was made with.
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/system/error_code.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "gateway/tls.h"

namespace tidemark::gateway {

class Stream {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;
  using Error = boost::system::error_code;
  using OnRead = std::function<void(Error, std::string_view)>;
  static constexpr size_t kReadBytesMax = 64 * 1024;

  /// `on_sent` is called whenever everything has been written that had to wait, and with an error
  /// when that fails; never within Send.
  Stream(Socket socket, std::function<void(Error)> on_sent);

  /// Calls `on_read` once with what came, or with an error; the bytes live until the next Read. One
  /// at a time. `owner` of the Stream lives until then. The error is eof when the peer sends no
  /// more, protocol_error (see failure()) when it does not keep to TLS.
  void Read(OnRead on_read, const std::shared_ptr<void>& owner);
  bool reading() const { return reading_; }

  /// Appends to what is to be written; `owner` of the Stream lives until it is.
  void Send(std::string bytes, const std::shared_ptr<void>& owner);
  size_t unsent_bytes() const { return queued_.size() + writing_.size(); }
  /// No more will be sent: closes that direction as soon as everything is written.
  void FinishSending(const std::shared_ptr<void>& owner);
  /// Both directions at once; outstanding handlers are called with an error.
  void Close();

  /// What is sent and read from here on goes through TLS; `received` has come of it already. Not
  /// while reading.
  void BeginTls(std::unique_ptr<Tls> tls, std::string_view received);
  bool encrypted() const { return tls_ != nullptr; }
  /// Why Read gave protocol_error; empty otherwise.
  const std::string& failure() const { return failure_; }

  Socket& socket() { return socket_; }

 private:
  void ReadSocket(const std::shared_ptr<void>& owner);
  void Decrypt(Error error, std::string_view bytes, const std::shared_ptr<void>& owner);
  void Deliver(Error error, std::string_view bytes);
  void Enqueue(std::string bytes, const std::shared_ptr<void>& owner);
  void Write(const std::shared_ptr<void>& owner);
  void WriteOn(size_t sent, const std::shared_ptr<void>& owner);
  void ShutdownSend();

  Socket socket_;
  std::unique_ptr<char[]> read_buffer_;
  OnRead on_read_;
  std::string queued_, writing_;
  std::function<void(Error)> on_sent_;
  bool reading_ = false, finishing_ = false;

  std::unique_ptr<Tls> tls_;
  std::string received_;  // came before TLS began, and belongs to it
  std::string plain_;     // what Read gave last
  std::string failure_;
};

/// Small messages are not to wait for others on TCP, and a peer that is gone without a word is to
/// be noticed.
void SetTcpOptions(Stream::Socket& socket);

}  // namespace tidemark::gateway
