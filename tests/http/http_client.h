// For tests: a client that speaks HTTP/1.1 byte by byte, so that it can also speak it badly. Reads
// have a deadline. One thread.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"

namespace tidemark::tests {

struct HttpAnswer {
  int status = 0;                              // 0: the server closed without an answer
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

class HttpClient {
 public:
  static constexpr std::chrono::seconds kPatience{30};

  /// `receive_bytes`: the size of the kernel's buffer; 0: its own choice.
  explicit HttpClient(uint16_t port, int receive_bytes = 0)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_bytes > 0) {
      ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    }
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    if (::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      ::close(fd_);
      throw std::runtime_error("connect");
    }
    const int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  ~HttpClient() { ::close(fd_); }
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// False when the server no longer takes it.
  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }
  void FinishSending() { ::shutdown(fd_, SHUT_WR); }

  /// Reads what is there into the buffer; false at the end, or when nothing comes by the deadline.
  bool Fill(base::Deadline deadline = base::Deadline::After(kPatience)) {
    pollfd wanted = {fd_, POLLIN, 0};
    const int ready = ::poll(&wanted, 1, static_cast<int>(deadline.left().count()));
    if (ready <= 0) return false;
    char bytes[65536];
    const auto count = ::recv(fd_, bytes, sizeof bytes, 0);
    if (count <= 0) {
      ended_ = true;
      return false;
    }
    buffer_.append(bytes, static_cast<size_t>(count));
    return true;
  }
  /// True when the server closes by the deadline; what it still says is kept in the buffer.
  bool Ends(base::Deadline deadline = base::Deadline::After(kPatience)) {
    while (!ended_ && Fill(deadline)) {
    }
    return ended_;
  }
  std::string& buffer() { return buffer_; }

  /// The head of the next answer, without its body.
  HttpAnswer ReadHead() {
    HttpAnswer answer;
    size_t end = 0;
    while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
      if (!Fill()) return answer;
    }
    std::string head = buffer_.substr(0, end + 2);
    buffer_.erase(0, end + 4);
    answer.status = std::stoi(head.substr(head.find(' ') + 1));
    for (size_t at = head.find("\r\n") + 2; at < head.size();) {
      const auto line_end = head.find("\r\n", at);
      const auto colon = head.find(':', at);
      std::string name = head.substr(at, colon - at);
      for (auto& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      answer.headers[name] = head.substr(colon + 2, line_end - colon - 2);
      at = line_end + 2;
    }
    return answer;
  }
  /// The next answer, whole.
  HttpAnswer Read(bool has_body = true) {
    auto answer = ReadHead();
    if (!has_body || answer.headers.count("content-length") == 0) return answer;
    const auto size = std::stoul(answer.headers["content-length"]);
    while (buffer_.size() < size && Fill()) {
    }
    answer.body = buffer_.substr(0, size);
    buffer_.erase(0, size);
    return answer;
  }
  HttpAnswer Ask(const std::string& method, const std::string& target,
                 const std::string& headers = "", const std::string& body = "") {
    std::string request = method + " " + target + " HTTP/1.1\r\nHost: localhost\r\n" + headers;
    if (!body.empty()) request += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    Send(request + "\r\n" + body);
    return Read(method != "HEAD");
  }

 private:
  int fd_;
  bool ended_ = false;
  std::string buffer_;
};

}  // namespace tidemark::tests
