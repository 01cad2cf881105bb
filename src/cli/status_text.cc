#include "cli/status_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/text_table.h"

namespace tidemark::cli {

namespace {

using nlohmann::json;

/// A capturing process says something at least this often (seconds).
constexpr double kHeartbeatAgeMax = 30;

std::string Text(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_null() ? "-" : value.dump();
}

int64_t Number(const json& value) {
  return value.is_number() ? value.get<int64_t>() : 0;
}

std::string LagText(const json& mirror) {
  if (mirror["lag_bytes"].is_null()) return "unknown";
  return fmt::format("{}, {:.1f} s", BytesText(Number(mirror["lag_bytes"])),
                     mirror["lag_seconds"].is_number() ? mirror["lag_seconds"].get<double>() : 0.0);
}

/// A complaint as the capturing process stores it (capture/progress.h).
std::string ComplaintText(const json& complaint) {
  std::string text = complaint.value("note", false) ? "  note: " : "  problem: ";
  if (const auto table = complaint.value("table", ""); !table.empty()) text += table + ": ";
  text += complaint.value("message", "");
  if (const auto state = complaint.value("sqlstate", ""); !state.empty()) text += " (" + state + ")";
  text += "\n";
  for (const char* field : {"detail", "hint"}) {
    const auto more = complaint.value(field, "");
    if (!more.empty()) text += fmt::format("    {}: {}\n", field, more);
  }
  return text;
}

std::string TableState(const json& dataset) {
  if (dataset["dropped"].get<bool>()) return "dropped at the source";
  if (!dataset["readable"].get<bool>()) return "being copied";
  const auto resync = dataset.value("resync", json());
  if (!resync.is_object()) return "readable";
  return "readable, being read again: " + Text(resync["reason"]);
}

std::string MirrorText(const json& mirror) {
  std::string text = fmt::format(
      "\nmirror {}: {}\n", Text(mirror["name"]), Text(mirror["state"]));
  const auto& age = mirror["heartbeat_age_seconds"];
  if (age.is_number() && age.get<double>() > kHeartbeatAgeMax) {
    text += fmt::format("  capture    not heard of for {:.0f} s\n", age.get<double>());
  }
  text += fmt::format("  source     {}, publication {}, slot {}\n", Text(mirror["source"]),
                      Text(mirror["publication"]), Text(mirror["slot"]));
  text += fmt::format("  position   {} (received {}, source at {})\n", Text(mirror["position"]),
                      Text(mirror["received"]), Text(mirror["source_position"]));
  text += fmt::format("  lag        {}\n", LagText(mirror));
  if (!mirror["retained_bytes"].is_null()) {
    text += fmt::format("  retained   {} of the source's log\n",
                        BytesText(Number(mirror["retained_bytes"])));
  }
  text += fmt::format("  basis      {}\n", Text(mirror["last_basis"]));
  if (!mirror["readable"].get<bool>()) text += "  " + ProgressLine(mirror) + "\n";
  TextTable table({"TABLE", "STRATEGY", "KEYING", "ROWS", "STATE"});
  for (const auto& dataset : mirror["datasets"]) {
    table.Add({Text(dataset["name"]), Text(dataset["strategy"]), Text(dataset["keying"]),
               dataset["rows"].is_number() ? Grouped(Number(dataset["rows"])) : "-",
               TableState(dataset)});
  }
  if (!table.empty()) text += table.ToString(2);
  for (const auto& complaint : mirror["problems"]) text += ComplaintText(complaint);
  return text;
}

std::string DatasetText(const json& dataset) {
  std::string text = fmt::format("\ndataset {}: {}\n", Text(dataset["declared"]),
                                 dataset["readable"] == true ? "readable" : "not captured yet");
  text += fmt::format("  source     {}, strategy {}\n", Text(dataset["source"]),
                      Text(dataset["strategy"]));
  if (dataset["readable"] == true) {
    text += fmt::format("  holds      {} rows as {}, basis {}, read {}\n",
                        Grouped(Number(dataset["rows"])), Text(dataset["name"]),
                        Text(dataset["last_basis"]), Text(dataset["extracted"]));
  }
  if (const auto calls = dataset.value("occurrences", json()); calls.is_object()) {
    text += fmt::format("  occurrences {} open, the last one {}, received {}\n", Text(calls["open"]),
                        Text(calls["last_state"]), Text(calls["last_received"]));
  }
  const auto& failure = dataset["last_failure"];
  if (failure.is_object()) {
    text += fmt::format("  problem: {} ({}), {}\n", Text(failure["message"]),
                        Text(failure["sqlstate"]), Text(failure["failed_at"]));
    for (const char* field : {"detail", "hint"}) {
      if (failure[field].is_string()) text += fmt::format("    {}: {}\n", field, Text(failure[field]));
    }
  }
  return text;
}

std::string WebhookText(const json& webhook) {
  std::string text = fmt::format("\nwebhook {}: {}\n", Text(webhook["name"]),
                                 !webhook["disabled_at"].is_null() ? "disabled by its receiver"
                                 : Number(webhook["failures"]) > 0 ? "failing"
                                                                   : "delivering");
  text += fmt::format("  delivered  {} events, up to {}, last at {}\n", Text(webhook["delivered"]),
                      Text(webhook["last_event"]), Text(webhook["delivered_at"]));
  if (webhook["error"].is_string()) {
    text += fmt::format("  problem: {}; {} failures in a row, last at {}\n", Text(webhook["error"]),
                        Text(webhook["failures"]), Text(webhook["attempted_at"]));
  }
  return text;
}

}  // namespace

std::string StatusText(const json& status) {
  const auto& store = status["store"];
  std::string text =
      fmt::format("store: {} database {}, PostgreSQL {}, apply: {}\n", Text(store["kind"]),
                  Text(store["database"]), Text(store["server_version"]), Text(status["apply"]));
  if (store["volatile"].get<bool>()) {
    text += fmt::format("warning: this store could lose changes: {}\n",
                        store["volatile_reasons"].dump());
  }
  if (status["last_basis"].is_object()) {
    text += fmt::format("last basis: {} at {}\n", Text(status["last_basis"]["number"]),
                        Text(status["last_basis"]["system_time"]));
  } else {
    text += "last basis: none yet\n";
  }
  for (const auto& mirror : status["mirrors"]) text += MirrorText(mirror);
  const auto datasets = status.value("datasets", json::array());
  for (const auto& dataset : datasets) text += DatasetText(dataset);
  if (status["mirrors"].empty() && datasets.empty()) text += "no mirror yet\n";
  for (const auto& calls : status.value("unclaimed_occurrences", json::array())) {
    text += fmt::format("\nproblem: {} occurrences of {} wait since {}, and nobody captures it\n",
                        Text(calls["open"]), Text(calls["dataset"]), Text(calls["since"]));
  }
  for (const auto& webhook : status.value("webhooks", json::array())) text += WebhookText(webhook);
  return text;
}

std::string ProgressLine(const json& mirror) {
  const auto name = Text(mirror["name"]);
  if (mirror["readable"].get<bool>()) {
    return fmt::format("{}: {}, lag {}", name, Text(mirror["state"]), LagText(mirror));
  }
  const auto rows = Number(mirror["copied_rows"]);
  const auto expected = Number(mirror["copy_rows_expected"]);
  std::string line = fmt::format("{}: {}", name, Text(mirror["state"]));
  if (rows == 0 && expected == 0) return line;
  line += fmt::format(", {} rows", Grouped(rows));
  if (expected > 0) {
    line += fmt::format(" of about {} ({} %)", Grouped(expected),
                        std::min<int64_t>(100, rows * 100 / expected));
  }
  if (const auto bytes = Number(mirror["copied_bytes"]); bytes > 0) {
    line += ", " + BytesText(bytes);
  }
  return line;
}

}  // namespace tidemark::cli
