// One deadline of a connection, armed again for each step. On the server's thread.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>

namespace tidemark::http {

class Watchdog {
 public:
  template <typename Executor>
  explicit Watchdog(const Executor& executor) : timer_(executor) {}

  /// Calls `act` of `owner` when the span is over, unless it is armed again or disarmed before.
  template <typename Owner>
  void Arm(std::chrono::milliseconds span, std::shared_ptr<Owner> owner, void (Owner::*act)()) {
    timer_.expires_after(span);
    timer_.async_wait([this, owner = std::move(owner), act](boost::system::error_code error) {
      // One that was on its way when it was armed anew comes all the same.
      if (!error && timer_.expiry() <= std::chrono::steady_clock::now()) ((*owner).*act)();
    });
  }
  void Disarm() { timer_.expires_at(std::chrono::steady_clock::time_point::max()); }

 private:
  boost::asio::steady_timer timer_;
};

}  // namespace tidemark::http
