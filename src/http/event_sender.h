// A connection from the moment on at which it reads events: what it is sent, from the ring while it
// keeps up, from the store when it has fallen behind. Holds one portion at a time and waits until
// the reader has taken it; one that does not is cut. All on the server's thread but for the loads.
// Only connection.cc makes one.
//
//   waiting ──news──► sending ──taken──► waiting
//      └─behind the ring─► loading ──► sending
#pragma once

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "base/error.h"
#include "http/answer.h"
#include "http/connection.h"
#include "http/event_frame.h"
#include "http/subscription.h"
#include "http/watchdog.h"

namespace tidemark::http {

template <typename Stream>
class EventSender final : public Connection,
                          public std::enable_shared_from_this<EventSender<Stream>> {
 public:
  struct Options {
    EventFilter filter;
    temporal::EventId after;
    bool chunked = true;  // not for HTTP/1.0
  };
  EventSender(House& house, std::unique_ptr<Stream> stream,
              std::shared_ptr<boost::asio::ssl::context> tls, SubscriberSeat seat, Options options)
      : house_(house),
        tls_(std::move(tls)),
        stream_(std::move(stream)),
        seat_(std::move(seat)),
        filter_(std::move(options.filter)),
        chunked_(options.chunked),
        reached_(options.after),
        patience_(stream_->get_executor()),
        beat_(stream_->get_executor()) {}

  void Start() override {
    Beat();
    WatchInput();
    // An id without data is no event, but a reader that connects again will send it.
    SendBytes(EventStreamHead(chunked_) + Framed(kRetryFrame + IdFrame()));
  }
  bool IsIdle() const override { return false; }
  void OnNews() override {
    if (!closed_) Pump();
  }
  void OnOtherPast() override { Close(); }
  void Stop() override {
    stopping_ = true;
    if (!sending_) Finish();
  }
  void Close() override {
    if (std::exchange(closed_, true)) return;
    boost::system::error_code ignored;
    patience_.Disarm();
    beat_.Disarm();
    SocketOf(*stream_).close(ignored);
    house_.gone(this);
  }

 private:
  static constexpr size_t kPortionBytes = size_t{64} << 10;
  static constexpr size_t kInputMax = 4096;  // what a reader may say besides
  static constexpr int64_t kPage = 200;
  static constexpr std::chrono::milliseconds kStoreRetry{1000};
  using Loaded = std::variant<EventFrames, base::Error>;

  std::string IdFrame() {
    told_ = reached_;
    return "id: " + reached_.ToString() + "\n\n";
  }
  std::string Framed(std::string text) const { return chunked_ ? Chunk(text) : text; }

  void SendBytes(std::string bytes) {
    sending_ = true;
    portion_ = std::move(bytes);
    patience_.Arm(house_.options.write_timeout, this->shared_from_this(), &EventSender::Cut);
    boost::asio::async_write(*stream_, boost::asio::buffer(portion_),
                             [self = this->shared_from_this()](auto error, size_t) {
                               if (self->closed_) return;
                               if (error) return self->Lose(error);
                               self->sending_ = false;
                               self->patience_.Disarm();
                               if (self->stopping_) return self->Finish();
                               self->Pump();
                             });
  }
  /// The body's end, which tells the reader that the line did not just break.
  void Finish() {
    if (!chunked_ || std::exchange(finished_, true)) return Close();
    SendBytes("0\r\n\r\n");
  }
  void Cut() {
    ++house_.counts.cut;
    Close();
  }
  /// The system cuts, too: whoever takes nothing of what is in the line's own buffers.
  void Lose(boost::system::error_code error) {
    if (error == boost::asio::error::timed_out) return Cut();
    Close();
  }

  /// Sends what there is, if nothing is under way.
  void Pump() {
    if (sending_ || loading_ || stopping_ || closed_) return;
    auto frames = house_.ring.After(reached_, filter_, kPortionBytes);
    if (!frames) return Load();
    Send(std::move(*frames));
  }
  void Send(EventFrames frames) {
    reached_ = frames.reached;
    if (frames.events == 0) return;
    told_ = reached_;
    house_.counts.events_sent += frames.events;
    SendBytes(Framed(std::move(frames.text)));
  }

  void Load() {
    loading_ = true;
    house_.workers.Submit([self = this->shared_from_this(), after = reached_](
                              pg::Connection* store, const base::Error& away) mutable {
      Loaded loaded = away;
      bool more = false;
      try {
        if (store != nullptr) {
          const auto page = temporal::LoadEvents(*store, after, kPage, self->filter_);
          more = page.more;
          loaded = FramesOf(page, self->filter_);
        }
      } catch (const base::Error& error) {
        loaded = error;
      }
      const auto executor = self->stream_->get_executor();
      boost::asio::post(executor,
                        [self = std::move(self), loaded = std::move(loaded), more]() mutable {
                          self->OnLoaded(std::move(loaded), more);
                        });
    });
  }
  void OnLoaded(Loaded loaded, bool more) {
    loading_ = false;
    if (closed_ || stopping_) return;
    if (const auto* error = std::get_if<base::Error>(&loaded)) {
      // What has been pruned is told to who asks again; a store that is away comes back.
      if (!error->IsTransient()) return Close();
      return patience_.Arm(kStoreRetry, this->shared_from_this(), &EventSender::Pump);
    }
    Send(std::get<EventFrames>(std::move(loaded)));
    // While the ring knows nothing, its first news will wake us.
    if (more || house_.ring.newest()) Pump();
  }

  /// A comment now and then; with it, how far a reader has come for whom there was nothing.
  void Beat() {
    beat_.Arm(house_.options.heartbeat, this->shared_from_this(), &EventSender::OnBeat);
  }
  void OnBeat() {
    if (closed_ || stopping_) return;
    if (!sending_) {
      std::string frame = kHeartbeatFrame;
      if (told_ != reached_) frame += IdFrame();
      SendBytes(Framed(std::move(frame)));
    }
    Beat();
  }

  /// Notices that the reader has gone.
  void WatchInput() {
    stream_->async_read_some(boost::asio::buffer(input_),
                             [self = this->shared_from_this()](auto error, size_t bytes) {
                               if (self->closed_) return;
                               self->heard_ += bytes;
                               if (error || self->heard_ > kInputMax) return self->Lose(error);
                               self->WatchInput();
                             });
  }

  House& house_;
  const std::shared_ptr<boost::asio::ssl::context> tls_;  // outlives the stream
  const std::unique_ptr<Stream> stream_;
  const SubscriberSeat seat_;
  const EventFilter filter_;
  const bool chunked_;
  temporal::EventId reached_, told_;  // what the reader has, and what it knows that it has
  Watchdog patience_, beat_;
  bool sending_ = false, loading_ = false, stopping_ = false, finished_ = false, closed_ = false;
  std::string portion_;
  std::array<char, 512> input_ = {};
  size_t heard_ = 0;
};

}  // namespace tidemark::http
