// For tests: somebody who reads GET /v1/events, and connects again where it was.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/http/http_client.h"

namespace tidemark::tests {

class EventReader {
 public:
  /// `query` with its question mark, or empty. `after` empty: what comes next.
  explicit EventReader(uint16_t port, std::string query = "", std::string after = "",
                       int receive_bytes = 0)
      : port_(port), query_(std::move(query)), last_id_(std::move(after)),
        receive_bytes_(receive_bytes) {
    Connect();
  }

  /// Asks again, with the last id that was seen. `head()` is the answer's.
  void Connect() {
    text_.clear();
    client_ = std::make_unique<HttpClient>(port_, receive_bytes_);
    client_->Send("GET /v1/events" + query_ + " HTTP/1.1\r\nHost: localhost\r\n" +
                  (last_id_.empty() ? "" : "Last-Event-ID: " + last_id_ + "\r\n") + "\r\n");
    head_ = client_->ReadHead();
  }
  void Drop() { client_.reset(); }
  bool IsConnected() const { return client_ != nullptr; }

  /// Reads frames until `count` events were seen in all, the deadline, or the end of the stream,
  /// which is a drop.
  bool Await(size_t count,
             base::Deadline deadline = base::Deadline::After(HttpClient::kPatience)) {
    for (;;) {
      while (TakeFrame()) {
      }
      if (ids_.size() >= count) return true;
      if (!client_) return false;
      if (!TakeChunk() && !client_->Fill(deadline)) {
        if (!deadline.passed()) Drop();
        return false;
      }
    }
  }

  const HttpAnswer& head() const { return head_; }
  const std::string& last_id() const { return last_id_; }
  const std::vector<std::string>& ids() const { return ids_; }
  const std::vector<std::string>& data() const { return data_; }
  size_t heartbeats() const { return heartbeats_; }
  HttpClient& client() { return *client_; }

 private:
  bool TakeChunk() {
    auto& buffer = client_->buffer();
    const auto line_end = buffer.find("\r\n");
    if (line_end == std::string::npos) return false;
    const auto size = std::stoul(buffer.substr(0, line_end), nullptr, 16);
    if (buffer.size() < line_end + 2 + size + 2) return false;
    text_ += buffer.substr(line_end + 2, size);
    buffer.erase(0, line_end + 2 + size + 2);
    return true;
  }
  bool TakeFrame() {
    const auto end = text_.find("\n\n");
    if (end == std::string::npos) return false;
    const auto frame = text_.substr(0, end + 1);
    text_.erase(0, end + 2);
    std::string data;
    for (size_t at = 0; at < frame.size();) {
      const auto line_end = frame.find('\n', at);
      const auto line = frame.substr(at, line_end - at);
      if (line.starts_with("id: ")) last_id_ = line.substr(4);
      if (line.starts_with("data: ")) data = line.substr(6);
      if (line.starts_with(":")) ++heartbeats_;
      at = line_end + 1;
    }
    if (!data.empty()) {
      ids_.push_back(last_id_);
      data_.push_back(data);
    }
    return true;
  }

  uint16_t port_;
  std::string query_, last_id_, text_;
  int receive_bytes_;
  std::unique_ptr<HttpClient> client_;
  HttpAnswer head_;
  std::vector<std::string> ids_, data_;
  size_t heartbeats_ = 0;
};

}  // namespace tidemark::tests
