// For tests: a client's messages, and a client, a session and a server wired together.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gateway/scripted_server.h"
#include "gateway/session.h"

namespace tidemark::gateway {

// What a client sends, message by message.
struct Script {
  std::string bytes;
  Script& Query(std::string_view text) { return wire::Query{text}.Write(bytes), *this; }
  Script& Parse(std::string_view name, std::string_view text) {
    return wire::Parse{name, text, {}}.Write(bytes), *this;
  }
  Script& Bind(std::string_view name) { return wire::Bind{"", name, {}}.Write(bytes), *this; }
  Script& Describe() { return wire::Naming{'P', ""}.WriteDescribe(bytes), *this; }
  Script& Execute() { return wire::Execute{"", 0}.Write(bytes), *this; }
  Script& Close(std::string_view name) { return wire::Naming{'S', name}.WriteClose(bytes), *this; }
  Script& Send(char type, std::string_view body = {}) {
    return wire::WriteMessage(bytes, type, body), *this;
  }
  Script& Sync() { return Send(wire::kSync); }
  Script& Run(std::string_view name, std::string_view text) {
    return Parse(name, text).Bind(name).Describe().Execute();
  }
};

inline std::vector<std::string> Messages(std::string_view bytes) {
  std::vector<std::string> messages;
  MessageCutter cutter;
  cutter.Feed(bytes);
  while (const auto piece =
             cutter.Next([](const wire::MessageHeader& header) { return header.body_bytes; })) {
    std::string text(1, piece->header.type);
    if (text == "E" || text == "N") {
      const auto fields = wire::ErrorFields::Read(piece->body());
      text += " " + std::string(fields.Find('C')) + " " + std::string(fields.Find('M'));
      if (!fields.Find('P').empty()) text += " at " + std::string(fields.Find('P'));
    }
    if (text == "Z") text += " " + std::string(piece->body());
    messages.push_back(std::move(text));
  }
  return messages;
}

// A client, a session and a server wired together, bytes cut into pieces of a given size.
class Wiring {
 public:
  explicit Wiring(ScriptedServer script = {}, size_t piece_bytes = 1 << 20)
      : server(std::move(script)), piece_bytes_(piece_bytes) {}

  /// Sends everything and lets the server answer at once (eager), or only when the session can
  /// take no more (a pipeline that the server reads late).
  std::string Run(const Script& script, bool eager = true) {
    std::string_view left = script.bytes;
    while (!left.empty() || !to_server_.empty()) {
      if (!left.empty() && session.wants_frontend()) {
        const size_t count = std::min(piece_bytes_, left.size());
        Perform(session.OnFrontendBytes(left.substr(0, count)));
        left.remove_prefix(count);
        if (!eager) continue;
      } else if (to_server_.empty()) {
        ADD_FAILURE() << "stuck";
        break;
      }
      Answer();
    }
    return to_client;
  }

  void Answer() {
    const std::string bytes = std::exchange(to_server_, {});
    all_to_server += bytes;
    const std::string answers = server.OnBytes(bytes);
    for (size_t at = 0; at < answers.size(); at += piece_bytes_) {
      Perform(session.OnBackendBytes(std::string_view(answers).substr(at, piece_bytes_)));
    }
  }

  Session session;
  ScriptedServer server;
  std::string to_client, all_to_server;

 private:
  void Perform(const Steps& steps) {
    to_client += steps.to_client;
    to_server_ += steps.to_backend;
  }
  size_t piece_bytes_;
  std::string to_server_;
};

}  // namespace tidemark::gateway
