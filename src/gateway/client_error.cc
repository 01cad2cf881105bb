#include "gateway/client_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace tidemark::gateway {
namespace {

struct Clause {
  std::string_view function;  // as the server's message cites it
  std::string_view name;      // of its instant, in messages
  std::string_view type;
};

constexpr std::array kClauses = {
    Clause{"tidemark.tx_at(", "SYSTEM_TIME instant", "timestamp with time zone"},
    Clause{"tidemark.tx_at_source(", "SOURCE_TIME instant", "timestamp with time zone"},
    Clause{"tidemark.tx_at_position(", "SOURCE_POSITION position", "pg_lsn"},
};

void SetInstantType(wire::ErrorFields& error, const Clause& clause, std::string_view found) {
  error.Set('C', "42804");
  error.Set('M', fmt::format("FOR {} must be of type {}, not {}", clause.name, clause.type, found));
  error.Set('D', "");
  error.Set('H', "");
}

/// The type of the last argument in `tidemark.tx_at(regclass, integer) …`, whatever the language.
std::optional<std::string_view> LastArgument(std::string_view message, std::string_view function) {
  const size_t begin = message.find(function);
  if (begin == std::string_view::npos) return std::nullopt;
  std::string_view arguments = message.substr(begin + function.size());
  arguments = arguments.substr(0, arguments.rfind(')'));
  const size_t comma = arguments.rfind(", ");
  return comma == std::string_view::npos ? arguments : arguments.substr(comma + 2);
}

/// The type in `cannot cast type integer to timestamp with time zone`.
std::optional<std::string_view> CastType(std::string_view message) {
  constexpr std::string_view kBefore = "cannot cast type ";
  constexpr std::string_view kAfter = " to timestamp with time zone";
  if (!message.starts_with(kBefore) || !message.ends_with(kAfter)) return std::nullopt;
  message.remove_prefix(kBefore.size());
  message.remove_suffix(kAfter.size());
  return message;
}

/// An error that the look-up of an instant raised while the statement was planned or ran: it has no
/// position, and where it was raised is no concern of the client's.
bool IsOfAnInstant(const wire::ErrorFields& error) {
  if (!error.Find('P').empty()) return false;
  const std::string_view where = error.Find('W');
  constexpr std::string_view kWindow = "tidemark.version_window(";
  return where.find(kWindow) != std::string_view::npos ||
         std::ranges::any_of(kClauses, [&](const Clause& clause) {
           return where.find(clause.function) != std::string_view::npos;
         });
}

}  // namespace

void TranslateInstantType(wire::ErrorFields& error) {
  const std::string message(error.Find('M'));
  if (error.Find('C') == "42883") {
    for (const Clause& clause : kClauses) {
      if (const auto type = LastArgument(message, clause.function)) {
        return SetInstantType(error, clause, *type);
      }
    }
  } else if (error.Find('C') == "42846") {
    if (const auto type = CastType(message)) SetInstantType(error, kClauses[0], *type);
  }
}

void TranslateForClient(wire::ErrorFields& error, const RewrittenStatement& statement) {
  TranslateInstantType(error);
  if (IsOfAnInstant(error)) {
    error.Set('W', "");
    if (statement.instant_position > 0) {
      error.Set('P', fmt::format("{}", statement.instant_position));
    }
    return;
  }
  const std::string_view text = error.Find('P');
  int position = 0;
  std::from_chars(text.data(), text.data() + text.size(), position);
  if (position > 0) position = statement.positions->ToClient(position);
  error.Set('P', position > 0 ? fmt::format("{}", position) : "");
}

size_t CountCharacters(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace tidemark::gateway
