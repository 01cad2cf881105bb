#include "cli/first_copy.h"

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"
#include "cli/status_text.h"
#include "cli/text_table.h"
#include "temporal/status.h"
#include "temporal/store.h"

namespace tidemark::cli {

namespace {

constexpr auto kConnectLimit = std::chrono::seconds(5);
/// A terminal redraws one line; a log file gets a line now and then.
constexpr auto kLogEvery = std::chrono::seconds(5);

}  // namespace

void FirstCopy::Show(const std::string& line) {
  if (line == shown_) return;
  if (::isatty(STDOUT_FILENO) != 0) {
    fmt::print("\r\x1b[K{}", line);
  } else {
    if (!next_show_.passed()) return;
    next_show_ = base::Deadline::After(kLogEvery);
    fmt::print("{}\n", line);
  }
  std::fflush(stdout);
  shown_ = line;
}

bool FirstCopy::Look(const std::stop_token& stop) {
  nlohmann::json status;
  try {
    if (!store_) store_ = temporal::OpenStore(dsn_, base::Deadline::After(kConnectLimit), stop);
    status = nlohmann::json::parse(temporal::LoadStatus(*store_));
  } catch (const base::Error& error) {
    spdlog::debug("looking at the first copy: {}", error.what());
    store_.reset();
    return false;
  }
  size_t readable = 0, tables = 0;
  int64_t rows = 0;
  std::string line;
  for (const auto& mirror : status["mirrors"]) {
    if (mirror["readable"].get<bool>()) ++readable;
    for (const auto& dataset : mirror["datasets"]) {
      if (!dataset["readable"].get<bool>()) continue;
      ++tables;
      if (dataset["rows"].is_number()) rows += dataset["rows"].get<int64_t>();
    }
    if (!line.empty()) line += "; ";
    line += ProgressLine(mirror);
  }
  if (readable < mirrors_) {
    if (!line.empty()) Show(line);
    return false;
  }
  summary_ = fmt::format("{} {}, {} {}", tables, tables == 1 ? "table" : "tables", Grouped(rows),
                         rows == 1 ? "row" : "rows");
  if (!shown_.empty() && ::isatty(STDOUT_FILENO) != 0) fmt::print("\r\x1b[K");
  return true;
}

}  // namespace tidemark::cli
