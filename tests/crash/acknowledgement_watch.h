// Watches all the time that the source is never told of more than the store has made durable: the
// slot's confirmed position, looked at first, against the store's received position, looked at
// second. Lives through restarts of both servers.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <thread>

namespace tidemark::crash {

class AcknowledgementWatch {
 public:
  AcknowledgementWatch(std::string source_dsn, std::string store_dsn, std::string slot);
  ~AcknowledgementWatch() { Stop(); }
  AcknowledgementWatch(const AcknowledgementWatch&) = delete;
  AcknowledgementWatch& operator=(const AcknowledgementWatch&) = delete;
  /// What was wrong first; empty when nothing was.
  std::string Stop();
  int looks() const { return looks_; }

 private:
  void Run(const std::stop_token& stop);

  std::string source_dsn_, store_dsn_, slot_, wrong_;
  std::atomic<int> looks_{0};
  std::jthread thread_;
};

}  // namespace tidemark::crash
