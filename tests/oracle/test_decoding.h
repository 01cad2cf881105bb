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
  /// The last ones are no changes of rows that the source sends: the workload says them in logical
  /// messages (schema_script.cc), in the place of the statement.
  enum class Kind { kInsert, kUpdate, kDelete, kTruncate, kRewrite, kRename, kReshape, kJoin };
  Kind kind = Kind::kInsert;
  std::vector<std::string> tables;  // one, several for a truncate; without the schema
  std::optional<Fields> old_row;    // what the source says of the row before
  Fields new_row;

  int64_t added = 0;     // to n in all rows, by a rewrite
  std::string types;     // of the columns after a rewrite: others than before are announced
  std::string from, to;  // names of a renamed column

  bool of_rows() const { return kind <= Kind::kTruncate; }
};

/// Reads one line that begins with `table `. Throws std::runtime_error when it cannot.
Change ReadChange(std::string_view line);

/// The prefix of the workload's logical messages.
inline constexpr std::string_view kMessagePrefix = "oracle";
/// Reads one line that begins with `message: `: what the workload says of its DDL, nullopt when it
/// is another message. Throws as ReadChange.
std::optional<Change> ReadMessage(std::string_view line);

/// `COMMIT 755 (at 2026-11-28 12:00:00.123456+00)` → the instant; empty without one.
std::string ReadCommitTime(std::string_view line);

}  // namespace tidemark::oracle
