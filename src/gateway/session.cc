#include "gateway/session.h"

namespace tidemark::gateway {

Steps Session::OnStartup(std::string_view packet) {
  const auto startup = wire::StartupPacket::Read(packet);
  // Protocol 2 has other messages; the store answers it with its own refusal.
  opaque_ = !startup || startup->major != 3;
  if (!opaque_) expected_.Sent({.kind = Expectation::Kind::kStartup});
  return {.to_backend = std::string(packet), .to_client = {}};
}

Steps Session::OnFrontendBytes(std::string_view bytes) {
  Steps steps;
  if (opaque_) {
    steps.to_backend = bytes;
    return steps;
  }
  steps.to_backend.reserve(bytes.size());
  CutFrontend(bytes, steps.to_backend);
  return steps;
}

Steps Session::OnBackendBytes(std::string_view bytes) {
  Steps steps;
  if (opaque_) {
    steps.to_client = bytes;
    return steps;
  }
  steps.to_client.reserve(bytes.size());
  const bool held = inquiry_.has_value();
  CutBackend(bytes, steps);
  // What the client sent meanwhile; it may hold a next statement to inquire about.
  if (held && !inquiry_ && !opaque_) CutFrontend({}, steps.to_backend);
  return steps;
}

Steps Session::OnStop(const base::Error& reason) {
  Steps steps;
  if (opaque_) return steps;
  if (backend_.at_boundary()) {
    wire::ErrorFields::From(reason, "FATAL").Write(steps.to_client);
  }
  if (frontend_.at_boundary()) wire::WriteMessage(steps.to_backend, wire::kTerminate);
  return steps;
}

// One side does not speak the protocol, as a server that fails to fork: let both see all of it.
void Session::GoOpaque(Steps& steps) {
  opaque_ = true;
  steps.to_client += backend_.TakeAll();
  steps.to_backend += held_;
  frontend_.Feed({});
  steps.to_backend += frontend_.TakeAll();
}

}  // namespace tidemark::gateway
