// For tests: a server that answers frontend messages as PostgreSQL would, from a few rules about
// their SQL texts, with PostgreSQL's behaviour after errors. No socket. One thread.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/message_cutter.h"
#include "wire/message.h"

namespace tidemark::gateway {

class ScriptedServer {
 public:
  /// False for a database without the schema tidemark.
  bool tidemark = true;
  /// What tidemark.resolve says of every name, and the volatile function it finds.
  std::string kind = "versioned", volatile_function;
  /// The session's pin, as tidemark.await_pin says it; the probe tells it from the start.
  std::string pin;
  bool superuser = false, reader = false;
  /// The how-manieth message that can fail does, counted from 1; 0 = none.
  int fails_at = 0;
  wire::ErrorFields failure{{{'S', "ERROR"}, {'V', "ERROR"}, {'C', "XX000"}, {'M', "it failed"}}};
  /// Sent before the answer to each message, as asynchronous messages may be.
  std::string asynchronous;

  /// Everything received, as `type text`, in order.
  std::vector<std::string> received;
  /// Messages that could have failed so far.
  int steps = 0;

  /// The answers to `bytes`, which may end within a message.
  std::string OnBytes(std::string_view bytes) {
    std::string out;
    cutter_.Feed(bytes);
    while (const auto piece =
               cutter_.Next([](const wire::MessageHeader& header) { return header.body_bytes; })) {
      On(piece->header.type, piece->body(), out);
    }
    cutter_.Keep();
    return out;
  }

 private:
  void On(char type, std::string_view body, std::string& out) {
    received.push_back(std::string(1, type) + " " + Show(type, body));
    if (copying_ && OnCopy(type, out)) return;
    if (type == wire::kSync) {
      skipping_ = false;
      return Ready(out);
    }
    if (skipping_ || type == wire::kFlush || type == wire::kTerminate) return;
    out += asynchronous;
    if (type == 'd' || type == 'c' || type == 'f' || type == 'p') return;
    if (type == wire::Query::kType) {
      std::string_view text = wire::Query::Read(body).text;
      for (size_t end = 0; end != std::string_view::npos; text.remove_prefix(end + 2)) {
        end = text.find("; ");
        if (!Run(text.substr(0, end), out, true)) {
          status_ = status_ == 'I' ? 'I' : 'E';
          break;
        }
        if (end == std::string_view::npos) break;
      }
      if (!copying_) Ready(out);
      return;
    }
    if (!Extended(type, body, out)) {
      skipping_ = true;
      status_ = status_ == 'I' ? 'I' : 'E';
    }
  }

  // COPY FROM STDIN reads up to its end, past every Sync; anything else makes it fail.
  bool OnCopy(char type, std::string& out) {
    if (type == wire::kSync || type == wire::kFlush || type == wire::kCopyData) return true;
    copying_ = false;
    if (type == wire::kCopyDone) {
      wire::CommandComplete{"COPY 1"}.Write(out);
    } else {
      Fail(Error("08P01", "unexpected message type"), out);
      skipping_ = !copying_simple_;
    }
    if (copying_simple_) Ready(out);
    return true;
  }

  bool Extended(char type, std::string_view body, std::string& out) {
    if (++steps == fails_at) return Fail(failure, out);
    switch (type) {
      case 'P': {
        const auto parse = wire::Parse::Read(body);
        if (parse.text.find("refuses") != std::string_view::npos) return Fail(Syntax(), out);
        if (!parse.statement.empty() && statements_.contains(std::string(parse.statement))) {
          return Fail(Error("42P05", "prepared statement already exists"), out);
        }
        statements_[std::string(parse.statement)] = parse.text;
        wire::WriteMessage(out, '1');
        return true;
      }
      case 'B': {
        const auto bind = wire::Bind::Read(body);
        const auto found = statements_.find(std::string(bind.statement));
        if (found == statements_.end()) return Fail(Error("26000", "no such statement"), out);
        portals_[std::string(bind.portal)] = found->second;
        wire::WriteMessage(out, '2');
        return true;
      }
      case 'D':
        wire::WriteMessage(out, 'n');
        return true;
      case 'E':
        --steps;
        return Run(portals_[std::string(wire::Execute::Read(body).portal)], out, false);
      case 'C': {
        const auto closed = wire::Naming::Read(body);
        (closed.kind == 'S' ? statements_ : portals_).erase(std::string(closed.name));
        wire::WriteMessage(out, '3');
        return true;
      }
      case 'F':
        wire::WriteMessage(out, 'V', std::string_view("\xff\xff\xff\xff", 4));
        Ready(out);
        return true;
      default:
        return true;
    }
  }

  bool Run(std::string_view text, std::string& out, bool simple) {
    if (++steps == fails_at) return Fail(failure, out);
    const auto has = [&](std::string_view part) {
      return text.find(part) != std::string_view::npos;
    };
    if (has("refuses")) return Fail(Syntax(), out);
    if (status_ == 'E' && text != "rollback") {
      return Fail(Error("25P02", "current transaction is aborted"), out);
    }
    if (has("boom")) {
      auto error = Error("22012", "division by zero");
      error.Set('P', std::to_string(text.find("boom") + 1));
      return Fail(error, out);
    }
    if (has("copy in")) {
      copying_ = true;
      copying_simple_ = simple;
      wire::WriteMessage(out, 'G', std::string_view("\0\0\0", 3));
      return true;
    }
    if (has("set tidemark.as_of")) pin = "pinned";
    if (has("reset tidemark.as_of")) pin.clear();
    if (text == "begin") status_ = 'T';
    if (text == "rollback") status_ = 'I';
    std::vector<std::vector<std::optional<std::string_view>>> rows = {{"1"}};
    if (has("to_regprocedure")) {
      rows = {{tidemark ? "t" : "f", pin.empty() ? "f" : "t", reader ? "t" : "f",
               superuser ? "t" : "f"}};
    }
    if (has("tidemark.await_pin")) rows = {{pin}};
    std::string prepared;
    if (const size_t at = text.find("s.name = '"); at != std::string_view::npos) {
      const std::string_view name = text.substr(at + 10);
      prepared = statements_[std::string(name.substr(0, name.find('\'')))];
      rows = {{prepared, ""}};
    }
    if (has("FROM tidemark.resolve")) {
      rows.clear();
      if (has("resolve_pinned")) rows.push_back({"0", "", "", pin, ""});
      // One name more than there are commas in the first array, unless it is empty.
      std::string_view names = text.substr(text.find("ARRAY["));
      names = names.substr(0, names.find("]::"));
      const auto commas = names == "ARRAY[" ? -1 : std::count(names.begin(), names.end(), ',');
      for (long i = 0; i <= commas; ++i) {
        rows.push_back({"1", kind, "public", "t", volatile_function});
        if (!pin.empty()) {
          rows.back().push_back("42");
          rows.back().push_back(std::nullopt);
        }
      }
    }
    if (has("::pg_catalog.text") && !has("FROM tidemark.resolve"))
      rows = {{"2026-11-28 12:00:00+00"}};
    if (simple) wire::RowDescription{{{"x", 25}}}.Write(out);
    for (const auto& row : rows) wire::DataRow{row}.Write(out);
    wire::CommandComplete{"SELECT 1"}.Write(out);
    return true;
  }

  static wire::ErrorFields Error(std::string state, std::string message) {
    return {{{'S', "ERROR"}, {'V', "ERROR"}, {'C', std::move(state)}, {'M', std::move(message)}}};
  }
  static wire::ErrorFields Syntax() { return Error("42601", "syntax error at or near"); }

  bool Fail(const wire::ErrorFields& error, std::string& out) {
    error.Write(out);
    return false;
  }
  void Ready(std::string& out) { wire::ReadyForQuery{status_}.Write(out); }

  static std::string Show(char type, std::string_view body) {
    switch (type) {
      case 'Q':
        return std::string(wire::Query::Read(body).text);
      case 'P': {
        const auto parse = wire::Parse::Read(body);
        return std::string(parse.statement) + ": " + std::string(parse.text);
      }
      case 'B':
        return std::string(wire::Bind::Read(body).statement);
      case 'E':
        return std::string(wire::Execute::Read(body).portal);
      case 'C':
      case 'D':
        return std::string(body.substr(0, body.size() - 1));
      default:
        return {};
    }
  }

  MessageCutter cutter_;
  std::map<std::string, std::string> statements_, portals_;
  char status_ = 'I';
  bool skipping_ = false, copying_ = false, copying_simple_ = false;
};

}  // namespace tidemark::gateway
