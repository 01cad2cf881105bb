#include "capture/position_json.h"

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace tidemark::capture {

using nlohmann::json;

namespace {

json CursorValue(const source::CursorPosition& position) {
  return {{"cursor", position.cursor}, {"key", position.key}};
}

// A source's text may hold anything; what is no UTF-8 is shown as such.
std::string Dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

std::string EvidenceJson(const source::Position& position) {
  json facts = json::object();
  for (const auto& fact : position.facts) {
    auto& place = facts[fact.name];
    if (place.is_null()) {
      place = fact.value;
    } else if (place.is_array()) {
      place.push_back(fact.value);
    } else {
      place = json::array({place, fact.value});
    }
  }
  if (position.resume) {
    facts["resume"] = CursorValue(*position.resume);
    facts["settled"] = position.settled;
  }
  return Dump(facts);
}

std::string CursorJson(const source::CursorPosition& position) {
  return CursorValue(position).dump();
}

source::CursorPosition ParseCursor(const std::string& text) {
  try {
    const auto value = json::parse(text);
    return {value.at("cursor").get<std::string>(),
            value.at("key").get<std::vector<std::string>>()};
  } catch (const json::exception&) {
    throw base::Error(base::kDataCorrupted, "the stored cursor position cannot be read");
  }
}

std::optional<base::Lsn> LsnOf(const source::Position& position) {
  const auto text = position.Find("lsn");
  if (text.empty()) return std::nullopt;
  return base::Lsn::Parse(text);
}

}  // namespace tidemark::capture
