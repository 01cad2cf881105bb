#include "gateway/cancel.h"

#include <utility>

#include "gateway/store_connector.h"

namespace tidemark::gateway {

Cancel::Cancel(Stream::Socket socket, std::function<void()> on_done)
    : store_(std::move(socket),
             [this](Stream::Error error) {
               if (error) Done();
             }),
      on_done_(std::move(on_done)) {}

std::shared_ptr<Cancel> Cancel::Send(Stream::Socket socket, const StoreAddress& store,
                                     std::string packet, std::function<void()> on_done) {
  std::shared_ptr<Cancel> cancel(new Cancel(std::move(socket), std::move(on_done)));
  StoreConnector::Connect(store, cancel->store_.socket(),
                          [cancel, packet = std::move(packet)](Stream::Error error) {
                            cancel->OnConnected(error, packet);
                          });
  return cancel;
}

void Cancel::OnConnected(Stream::Error error, std::string packet) {
  if (error) return Done();
  store_.Send(std::move(packet), shared_from_this());
  AwaitEnd();
}

void Cancel::AwaitEnd() {
  store_.Read(
      [this](Stream::Error error, std::string_view) {
        if (error) return Done();
        AwaitEnd();
      },
      shared_from_this());
}

void Cancel::Done() {
  store_.Close();
  if (const auto on_done = std::exchange(on_done_, nullptr)) on_done();
}

}  // namespace tidemark::gateway
