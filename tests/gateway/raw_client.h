// For tests: a client that speaks bytes, to a gateway or straight to a server. One thread.
#pragma once

#include <fmt/format.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>

#include "gateway/stream.h"
#include "tests/cluster.h"
#include "wire/message.h"

namespace tidemark::gateway {

class RawClient {
 public:
  explicit RawClient(uint16_t port) : socket_(io_) {
    boost::asio::ip::tcp::socket tcp(io_);
    tcp.connect({boost::asio::ip::make_address("127.0.0.1"), port});
    socket_ = Stream::Socket(std::move(tcp));
  }
  explicit RawClient(const tests::Cluster& cluster) : socket_(io_) {
    boost::asio::local::stream_protocol::socket local(io_);
    local.connect(fmt::format("{}/.s.PGSQL.{}", cluster.host(), cluster.port()));
    socket_ = Stream::Socket(std::move(local));
  }
  void Send(std::string_view bytes) {
    boost::asio::write(socket_, boost::asio::buffer(bytes.data(), bytes.size()));
  }
  void FinishSending() { socket_.shutdown(Stream::Socket::shutdown_send); }
  /// One message, as type and body; empty at the end.
  std::string Read() {
    std::string header(5, 0);
    if (!Fill(header)) return {};
    std::string body(wire::ReadHeader(header)->body_bytes, 0);
    Fill(body);
    return header[0] + body;
  }
  /// That many bytes, without looking into them; empty at the end.
  std::string ReadBytes(size_t count) {
    std::string bytes(count, 0);
    return Fill(bytes) ? bytes : std::string();
  }
  /// Closes as a killed peer does: what is under way is lost.
  void Reset() {
    socket_.set_option(boost::asio::socket_base::linger(true, 0));
    socket_.close();
  }
  std::string ReadToEnd() {
    std::string all;
    for (std::string one = Read(); !one.empty(); one = Read()) all += one;
    return all;
  }

  /// Starts a session and reads up to ReadyForQuery.
  void Start(const std::string& database, const std::string& user = "postgres") {
    std::string start;
    wire::WriteStartup(start, {{"user", user}, {"database", database}});
    Send(start);
    while (Read()[0] != 'Z') {
    }
  }

  /// The error that a simple query ends with; no fields if it succeeds.
  wire::ErrorFields ErrorOf(std::string_view sql) {
    std::string query;
    wire::Query{sql}.Write(query);
    Send(query);
    wire::ErrorFields error;
    for (std::string one = Read(); one[0] != 'Z'; one = Read()) {
      if (one[0] == 'E') error = wire::ErrorFields::Read(std::string_view(one).substr(1));
    }
    return error;
  }

 private:
  /// False at the end. Throws when nothing comes for a minute.
  bool Fill(std::string& bytes) {
    boost::system::error_code error = boost::asio::error::would_block;
    boost::asio::async_read(socket_, boost::asio::buffer(bytes),
                            [&error](boost::system::error_code result, size_t) { error = result; });
    io_.restart();
    io_.run_for(std::chrono::minutes(1));
    if (error != boost::asio::error::would_block) return !error;
    socket_.cancel();
    io_.restart();
    io_.run();
    throw std::runtime_error("the server has not answered for a minute");
  }

  boost::asio::io_context io_;
  Stream::Socket socket_;
};

}  // namespace tidemark::gateway
