// The change stream of one slot, pulled, large transactions while they still run: a reading thread
// keeps the line alive (status updates on time however long the owner is busy) and hands over
// chunks of undecoded pgoutput messages in order through a bounded queue. It also is the one place
// that confirms the slot, and only up to what the owner has acknowledged as durable.
//
//   server ──► reading thread ──► queue (bounded) ──► Next()        owner decodes and stores
//      ▲            │
//      └─ status ───┘◄── durable position ────────── Acknowledge()  only after the store's commit
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/lsn.h"

namespace tidemark::source {

class ChangeStream {
 public:
  struct Options {
    std::string dsn;
    std::string slot;
    std::string publication;
    base::Lsn start;  // everything that ended at or before it is known already
    bool binary = true;  // false: all values are sent as text
    size_t queue_bytes_max = 64 << 20;
  };

  /// Connects and starts the stream. Throws 08001, 55006 (slot active elsewhere), 42704 (no slot),
  /// 55000 (slot lost).
  ChangeStream(Options options, std::stop_token stop);
  ~ChangeStream();
  ChangeStream(const ChangeStream&) = delete;
  ChangeStream& operator=(const ChangeStream&) = delete;

  /// Consecutive messages of the stream, and the keep-alive that followed them, if one did.
  struct Chunk {
    std::string bytes;  // each message: its length as uint32 of this machine, then its payload
    size_t messages = 0;
    struct Keepalive {
      base::Lsn wal_end;
      base::Timestamp sent_at;
    };
    std::optional<Keepalive> keepalive;
  };
  /// The next chunk, or nullopt when none came by the deadline. Throws what ended the stream, once
  /// everything received before has been handed over; 57014 on stop.
  std::optional<Chunk> Next(base::Deadline deadline, const std::stop_token& stop);
  /// True when the source, or the line to it, has ended the stream.
  bool Failed() const;
  /// True when nothing is waiting to be handed over: the stream has paused.
  bool Paused() const;

  /// Lets Next return nullopt at once, if it waits or the next time. Any thread.
  void Wake();

  /// Everything up to `durable` is in the store: confirms it to the source soon. Any thread, one at
  /// a time.
  void Acknowledge(base::Lsn durable);

  /// The source's write position as last heard.
  base::Lsn source_lsn() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Walks the messages of a chunk.
class ChunkReader {
 public:
  explicit ChunkReader(const ChangeStream::Chunk& chunk) : rest_(chunk.bytes) {}
  /// The next payload, or nullopt at the end.
  std::optional<std::string_view> Next();

 private:
  std::string_view rest_;
};

}  // namespace tidemark::source
