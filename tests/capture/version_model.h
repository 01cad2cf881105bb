// What a captured relation and its versions must be, computed apart from everything that captures:
// row states as maps of texts, and the version chain of docs/formats/version.md with OpenSSL's
// SHA-256.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tidemark::tests {

using Texts = std::vector<std::optional<std::string>>;

/// A relation at one moment: column identities in order, and each row by its key.
struct RelationState {
  std::vector<std::string> columns;  // identities: a name that comes back is another column
  std::map<std::string, Texts> rows;
};

std::string Sha256(const std::string& bytes);
std::string Hex(const std::string& bytes);

/// The hash of one put ('P', all columns) or deletion ('D', key columns).
std::string RowHash(char kind, const Texts& texts);

class VersionModel {
 public:
  /// The relation is observed; `key` is the position of its only key column. Returns whether that
  /// is a transition.
  bool Observe(const RelationState& state, size_t key);
  /// The newest version in hex.
  std::string version() const { return Hex(version_); }
  int64_t puts() const { return puts_; }
  int64_t deletions() const { return deletions_; }

 private:
  bool any_ = false;
  RelationState state_;
  std::string version_;
  int64_t puts_ = 0, deletions_ = 0;
};

}  // namespace tidemark::tests
