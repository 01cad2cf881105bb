// What PostgreSQL's contrib plugin test_decoding prints, read into changes. It is the model's only
// source, and shares no code with the mirror: other slot, other plugin, text instead of binary.
// Manual: "Logical Decoding Examples". Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark::oracle {

/// A printed value; `unchanged` is a large value that was not sent.
struct Field {
  std::optional<std::string> value;
  bool unchanged = false;
  bool operator==(const Field&) const = default;
};
/// By column name. In old rows a column that is absent is NULL or not part of the identity.
using Fields = std::map<std::string, Field>;

struct Change {
  enum class Kind { kInsert, kUpdate, kDelete, kTruncate };
  Kind kind = Kind::kInsert;
  std::vector<std::string> tables;  // one, several for a truncate; without the schema
  std::optional<Fields> old_row;    // what the source says of the row before
  Fields new_row;
};

/// Reads one line that begins with `table `. Throws std::runtime_error when it cannot.
Change ReadChange(std::string_view line);

/// `COMMIT 755 (at 2026-11-28 12:00:00.123456+00)` → the instant; empty without one.
std::string ReadCommitTime(std::string_view line);

}  // namespace tidemark::oracle
