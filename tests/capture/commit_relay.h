// A relay between a capture and its store that cuts the line once, at the COMMIT of a publish:
// before the store has seen it, or when the store has carried it out and the answer is on its way.
// Whoever comes later is passed through. Threads of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

namespace tidemark::tests {

enum class CutAt { kBeforeCommit, kAfterCommit };

class CommitRelay {
 public:
  /// `server_socket`: the path of the server's Unix socket.
  CommitRelay(std::string server_socket, CutAt cut_at);
  ~CommitRelay();
  CommitRelay(const CommitRelay&) = delete;
  CommitRelay& operator=(const CommitRelay&) = delete;

  /// On 127.0.0.1.
  uint16_t port() const { return port_; }
  bool has_cut() const { return has_cut_; }

 private:
  void Accept(const std::stop_token& stop);
  void Serve(int client, const std::stop_token& stop);

  std::string server_socket_;
  CutAt cut_at_;
  int listener_;
  uint16_t port_ = 0;
  std::atomic<bool> has_cut_{false};
  std::jthread thread_;
};

}  // namespace tidemark::tests
