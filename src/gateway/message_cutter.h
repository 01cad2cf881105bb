// One direction's bytes cut into messages, without copying those that lie whole in one read. Only
// type and length are looked at; the caller says of each message how much of its body it must see
// at once, and the rest streams through in pieces. One thread.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "wire/message.h"

namespace tidemark::gateway {

class MessageCutter {
 public:
  struct Piece {
    wire::MessageHeader header;  // of the message that the piece belongs to
    std::string_view bytes;      // borrowed until the next Feed or Keep
    bool first = true;           // begins with the header
    std::string_view body() const { return bytes.substr(wire::MessageHeader::kBytes); }
  };

  /// Adds what was read; `bytes` must live until Keep.
  void Feed(std::string_view bytes) {
    if (pending_.empty()) {
      view_ = bytes;
      return;
    }
    pending_.append(bytes);
    view_ = pending_;
  }

  /// The next piece: what is here of the message being streamed, or the beginning of the next
  /// message with at least need(header) bytes of its body, or its whole body if that is shorter.
  /// nullopt when more bytes must be fed first. Throws 08P01 for an impossible length.
  template <typename Need>
  std::optional<Piece> Next(Need&& need) {
    if (body_left_ > 0) {
      if (view_.empty()) return std::nullopt;
      const Piece piece{header_, Take(std::min(body_left_, view_.size())), false};
      body_left_ -= piece.bytes.size();
      return piece;
    }
    const auto header = wire::ReadHeader(view_);
    if (!header) return std::nullopt;
    const size_t here = view_.size() - wire::MessageHeader::kBytes;
    if (here < std::min<size_t>(need(*header), header->body_bytes)) return std::nullopt;
    header_ = *header;
    const size_t body = std::min(here, header->body_bytes);
    body_left_ = header->body_bytes - body;
    return Piece{header_, Take(wire::MessageHeader::kBytes + body), true};
  }

  /// The longest run of messages of this one type that lie whole in what was fed; may be empty.
  std::string_view TakeRun(char type) {
    if (body_left_ > 0) return {};
    size_t end = 0;
    while (view_.size() - end >= wire::MessageHeader::kBytes && view_[end] == type) {
      const size_t bytes =
          wire::MessageHeader::kBytes + wire::ReadHeader(view_.substr(end))->body_bytes;
      if (view_.size() - end < bytes) break;
      end += bytes;
    }
    return Take(end);
  }

  /// Everything that is left, uncut.
  std::string_view TakeAll() { return Take(view_.size()); }

  /// Keeps what has not been taken yet, so that the bytes fed may go.
  void Keep() {
    if (pending_.empty()) {
      pending_.assign(view_);
    } else {
      pending_.erase(0, pending_.size() - view_.size());
    }
    if (pending_.empty() && pending_.capacity() > kIdleBytesMax) std::string().swap(pending_);
    view_ = {};
  }

  /// Bytes kept.
  size_t kept_bytes() const { return pending_.size(); }
  /// True when what was taken so far ends with a whole message.
  bool at_boundary() const { return body_left_ == 0; }

 private:
  static constexpr size_t kIdleBytesMax = 64 * 1024;

  std::string_view Take(size_t count) {
    const std::string_view taken = view_.substr(0, count);
    view_.remove_prefix(count);
    return taken;
  }

  std::string pending_;
  std::string_view view_;
  wire::MessageHeader header_;
  size_t body_left_ = 0;
};

/// Appends to a string, joining neighbouring views into one copy.
class Run {
 public:
  explicit Run(std::string& out) : out_(out) {}
  ~Run() { Flush(); }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  void Pass(std::string_view bytes) {
    if (run_.data() + run_.size() == bytes.data()) {
      run_ = {run_.data(), run_.size() + bytes.size()};
      return;
    }
    Flush();
    run_ = bytes;
  }
  /// The string, for bytes of our own.
  std::string& Write() {
    Flush();
    return out_;
  }
  void Flush() {
    out_.append(run_);
    run_ = {};
  }

 private:
  std::string& out_;
  std::string_view run_;
};

}  // namespace tidemark::gateway
