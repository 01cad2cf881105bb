#include "source/postgres/change_stream.h"

#include <fmt/format.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/identifier.h"
#include "base/kill_point.h"
#include "base/log.h"
#include "pg/connection.h"
#include "pg/replication_stream.h"
#include "source/postgres/source_session.h"
#include "wire/replication.h"

namespace tidemark::source {

using base::Deadline;
using base::Error;
using base::Lsn;

namespace {

constexpr std::chrono::milliseconds kStatusInterval{1000};
constexpr std::chrono::milliseconds kConfirmInterval{50};
constexpr std::chrono::milliseconds kQuietInterval{200};
constexpr std::chrono::milliseconds kSilenceMax{60'000};
constexpr std::chrono::milliseconds kSendMax{30'000};
constexpr size_t kChunkBytes = 256 * 1024;
// A server sends each message by itself. To wake for each costs both sides more than the message:
// while at least so many come in a millisecond, they are left to gather for one.
constexpr std::chrono::milliseconds kGather{1};
constexpr int64_t kGatherFrom = 10;

base::Timestamp Now() { return base::Timestamp::FromSystem(std::chrono::system_clock::now()); }

}  // namespace

struct ChangeStream::State {
  Options options;
  pg::Connection connection;
  pg::ReplicationStream stream;

  mutable std::mutex mutex;
  std::condition_variable_any filled;
  std::deque<Chunk> queue;
  size_t queued_bytes = 0;
  bool woken = false;
  std::exception_ptr ended;

  std::atomic<uint64_t> durable;
  std::atomic<uint64_t> source_lsn{0};

  // The reading thread's own.
  Chunk chunk;
  Lsn received;
  Lsn confirmed;
  bool reply_requested = false;
  Deadline::Clock::time_point last_status{}, last_keepalive{};
  Deadline::Clock::time_point last_heard = Deadline::Clock::now();
  Deadline::Clock::time_point counted_from{};
  int64_t counted = 0;  // messages since
  bool dense = false;   // in the stretch before
  std::jthread reader;

  static pg::Connection Connect(const Options& options, std::stop_token stop) {
    return OpenSession({.dsn = options.dsn,
                        .application_name = "tidemark " + options.slot,
                        .replication = true},
                       Deadline::After(std::chrono::seconds(30)), std::move(stop));
  }

  static std::string StartCommand(const Options& options) {
    return fmt::format(
        "START_REPLICATION SLOT {} LOGICAL {} (proto_version '2', publication_names {}, "
        "binary '{}', streaming 'on')",
        base::QuoteIdentifier(options.slot), options.start.ToString(),
        base::QuoteLiteral(base::QuoteIdentifier(options.publication)), options.binary);
  }

  State(Options o, std::stop_token stop)
      : options(std::move(o)),
        connection(Connect(options, stop)),
        stream(connection, StartCommand(options)),
        durable(options.start.value()) {
    received = options.start;
  }

  void SendStatus(bool request_reply) {
    std::string bytes;
    const Lsn flushed(durable.load());
    wire::WriteStandbyStatusUpdate(
        {std::max(received, flushed), flushed, flushed, Now(), request_reply}, bytes);
    base::KillPoint("confirm.before");
    stream.Send(bytes, Deadline::After(kSendMax));
    confirmed = flushed;
    last_status = Deadline::Clock::now();
  }

  void MaybeSendStatus() {
    const auto now = Deadline::Clock::now();
    const bool due = now - last_status >= kStatusInterval;
    // On a quiet line the server is asked to answer: that is how silence is told from a dead peer,
    // and how an idle source's present becomes known.
    const bool quiet = now - last_heard >= kQuietInterval && now - last_status >= kQuietInterval;
    const bool confirms = confirmed.value() != durable.load() && now - last_status >= kConfirmInterval;
    if (!quiet && !due && !confirms && !reply_requested) return;
    reply_requested = false;
    SendStatus(quiet || (due && now - last_keepalive >= kStatusInterval));
  }

  void PushChunk() {
    if (chunk.messages == 0 && !chunk.keepalive) return;
    {
      const std::lock_guard lock(mutex);
      queued_bytes += chunk.bytes.size();
      queue.push_back(std::move(chunk));
    }
    chunk = {};
    filled.notify_one();
  }

  void Take(std::string_view copy_data) {
    last_heard = Deadline::Clock::now();
    Count();
    const auto message = wire::ReadReplicationMessage(copy_data);
    if (const auto* log = std::get_if<wire::XLogData>(&message)) {
      received = std::max(received, log->start);
      source_lsn = std::max(source_lsn.load(), log->wal_end.value());
      const auto size = static_cast<uint32_t>(log->payload.size());
      chunk.bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
      chunk.bytes.append(log->payload);
      ++chunk.messages;
      if (chunk.bytes.size() >= kChunkBytes) PushChunk();
      return;
    }
    const auto& alive = std::get<wire::PrimaryKeepalive>(message);
    last_keepalive = last_heard;
    received = std::max(received, alive.wal_end);
    source_lsn = std::max(source_lsn.load(), alive.wal_end.value());
    reply_requested = reply_requested || alive.reply_requested;
    chunk.keepalive = Chunk::Keepalive{alive.wal_end, alive.sent_at};
    PushChunk();
  }

  bool QueueFull() const {
    const std::lock_guard lock(mutex);
    return queued_bytes >= options.queue_bytes_max;
  }

  void Count() {
    ++counted;
    const auto stretch = last_heard - counted_from;
    if (stretch < kGather) return;
    dense = counted * kGather >= kGatherFrom * stretch;
    counted_from = last_heard;
    counted = 0;
  }

  void Read(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      MaybeSendStatus();
      if (QueueFull()) {
        // Not reading is what slows the server down; it still hears from us. Next() rings.
        stream.WaitForBell(Deadline::After(kStatusInterval / 2), stop);
        last_heard = Deadline::Clock::now();
        continue;
      }
      auto event = stream.TryNext();
      while (event == pg::ReplicationStream::Event::kMessage) {
        Take(stream.message());
        if (chunk.messages == 0) MaybeSendStatus();
        if (QueueFull()) break;
        event = stream.TryNext();
      }
      if (event == pg::ReplicationStream::Event::kMessage) continue;
      PushChunk();
      if (event == pg::ReplicationStream::Event::kEnd) {
        throw Error(base::kConnectionFailure, "the source ended the replication stream");
      }
      const auto now = Deadline::Clock::now();
      if (now - last_heard > kSilenceMax) {
        throw Error(base::kConnectionFailure, "the source has not been heard of for 60 s");
      }
      const bool confirm_soon = confirmed.value() != durable.load();
      stream.Wait(Deadline::After(confirm_soon ? kConfirmInterval : kQuietInterval), stop);
      if (dense) stream.WaitForBell(Deadline::After(kGather), stop);
    }
  }

  void Run(const std::stop_token& stop) {
    try {
      Read(stop);
      SendStatus(false);  // a clean end leaves the slot where the store is
    } catch (const Error& error) {
      if (stop.stop_requested()) {
        try {
          SendStatus(false);
        } catch (const Error& last) {
          spdlog::debug("last status update: {}", last.what());
        }
      }
      PushChunk();
      const std::lock_guard lock(mutex);
      ended = std::make_exception_ptr(error);
    }
    filled.notify_all();
  }
};

ChangeStream::ChangeStream(Options options, std::stop_token stop)
    : state_(std::make_unique<State>(std::move(options), std::move(stop))) {
  state_->reader = std::jthread([state = state_.get()](std::stop_token own) { state->Run(own); });
}

ChangeStream::~ChangeStream() {
  state_->reader.request_stop();
  state_->stream.Ring();
}

std::optional<ChangeStream::Chunk> ChangeStream::Next(Deadline deadline,
                                                      const std::stop_token& stop) {
  std::unique_lock lock(state_->mutex);
  state_->filled.wait_for(lock, stop, deadline.left(),
                          [&] { return !state_->queue.empty() || state_->ended || state_->woken; });
  state_->woken = false;
  if (stop.stop_requested()) throw Error(base::kQueryCanceled, "stopped on request");
  if (state_->queue.empty()) {
    if (state_->ended) std::rethrow_exception(state_->ended);
    return std::nullopt;
  }
  Chunk chunk = std::move(state_->queue.front());
  state_->queue.pop_front();
  const bool was_full = state_->queued_bytes >= state_->options.queue_bytes_max;
  state_->queued_bytes -= chunk.bytes.size();
  lock.unlock();
  if (was_full) state_->stream.Ring();
  return chunk;
}

void ChangeStream::Wake() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->woken = true;
  }
  state_->filled.notify_one();
}

bool ChangeStream::Paused() const {
  const std::lock_guard lock(state_->mutex);
  return state_->queue.empty();
}

bool ChangeStream::Failed() const {
  const std::lock_guard lock(state_->mutex);
  return state_->ended != nullptr;
}

void ChangeStream::Acknowledge(Lsn durable) {
  state_->durable = std::max(state_->durable.load(), durable.value());
  state_->stream.Ring();
}

Lsn ChangeStream::source_lsn() const { return Lsn(state_->source_lsn.load()); }

std::optional<std::string_view> ChunkReader::Next() {
  if (rest_.empty()) return std::nullopt;
  uint32_t size;
  std::memcpy(&size, rest_.data(), sizeof size);
  const auto payload = rest_.substr(sizeof size, size);
  rest_.remove_prefix(sizeof size + size);
  return payload;
}

}  // namespace tidemark::source
