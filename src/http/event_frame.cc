#include "http/event_frame.h"

#include <fmt/format.h>

namespace tidemark::http {

std::string EventFrame(const temporal::Event& event) {
  return fmt::format("id: {}\nevent: dataset.changed\ndata: {}\n\n", event.id.ToString(),
                     event.text);
}

std::string Chunk(const std::string& text) {
  return fmt::format("{:x}\r\n{}\r\n", text.size(), text);
}

}  // namespace tidemark::http
