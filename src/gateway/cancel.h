// A CancelRequest on its way: it travels on a connection of its own, and the client knows that it
// has been acted upon when that is closed. Keys are the store's own, so nothing is looked up.
// One strand. Manual: "Canceling Requests in Progress".
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "gateway/options.h"
#include "gateway/stream.h"

namespace tidemark::gateway {

class Cancel : public std::enable_shared_from_this<Cancel> {
 public:
  /// Sends `packet` to the store; `on_done` is called when the store has closed the connection, or
  /// none can be made, or Close was called.
  static std::shared_ptr<Cancel> Send(Stream::Socket socket, const StoreAddress& store,
                                      std::string packet, std::function<void()> on_done);
  void Close() { store_.Close(); }

 private:
  Cancel(Stream::Socket socket, std::function<void()> on_done);
  void OnConnected(Stream::Error error, std::string packet);
  void AwaitEnd();
  void Done();

  Stream store_;
  std::function<void()> on_done_;
};

}  // namespace tidemark::gateway
