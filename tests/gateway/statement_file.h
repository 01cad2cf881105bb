// The statements of one file in tests/gateway/statements: paragraphs, separated by empty lines. One
// paragraph is one message of the simple protocol and one statement of the extended one.
//
//   -- a comment line at the beginning of a paragraph is not part of it
//   -- parameters: 1|NULL|text         values for $1, $2, … in the extended protocol
//   COPY t FROM STDIN                  a paragraph with a line \. or \f: its first line is the
//   1	a                               statement, the lines up to there are the data; \. ends
//   \.                                 them and \f fails the copy
//   SELECT …                           a paragraph with a line ==: what stands below it must
//   ==                                 answer the same directly
//   SELECT …
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tidemark::tests {

struct FileStatement {
  int line = 0;  // where it begins
  std::string sql;
  std::string by_hand;  // below ==, or empty
  std::vector<std::optional<std::string>> parameters;
  std::string copy_data;
  enum class CopyEnd { kNone, kDone, kFail } copy_end = CopyEnd::kNone;
};

/// Throws std::runtime_error when the file cannot be read or has no statement.
std::vector<FileStatement> ReadStatements(const std::filesystem::path& file);

}  // namespace tidemark::tests
