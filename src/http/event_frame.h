// Server-sent events as bytes. Pure. HTML standard, "Server-sent events".
#pragma once

#include <string>

#include "temporal/event.h"

namespace tidemark::http {

/// `id`, `event: dataset.changed` and `data` with the event's JSON, which is one line.
std::string EventFrame(const temporal::Event& event);

/// A comment, which readers skip: it shows that the line is open.
inline constexpr const char* kHeartbeatFrame = ":\n\n";

/// How long readers wait before they connect again.
inline constexpr const char* kRetryFrame = "retry: 1000\n\n";

/// One chunk of a chunked body. RFC 9112, section 7.1. `text` is not empty.
std::string Chunk(const std::string& text);

}  // namespace tidemark::http
