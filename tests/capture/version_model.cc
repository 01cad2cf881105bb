#include "tests/capture/version_model.h"

#include <openssl/sha.h>

#include <algorithm>

namespace tidemark::tests {

namespace {

std::string BigEndian(int64_t value) {
  std::string bytes;
  for (int shift = 56; shift >= 0; shift -= 8) {
    bytes += static_cast<char>((static_cast<uint64_t>(value) >> shift) & 0xff);
  }
  return bytes;
}

std::string Digest(std::vector<std::string> hashes) {
  std::sort(hashes.begin(), hashes.end());
  std::string digests;
  for (size_t i = 0; i < hashes.size();) {
    const std::string prefix = hashes[i].substr(0, 2);
    std::string group;
    for (; i < hashes.size() && hashes[i].starts_with(prefix); ++i) group += hashes[i];
    digests += Sha256(group);
  }
  return Sha256(digests);
}

// `row` of the state `from` as a row of columns `to`.
Texts Reshaped(const Texts& row, const std::vector<std::string>& from,
               const std::vector<std::string>& to) {
  Texts result;
  for (const auto& column : to) {
    const auto found = std::find(from.begin(), from.end(), column);
    result.push_back(found == from.end() ? std::nullopt
                                         : row[static_cast<size_t>(found - from.begin())]);
  }
  return result;
}

}  // namespace

std::string Sha256(const std::string& bytes) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  ::SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest);
  return {reinterpret_cast<const char*>(digest), sizeof digest};
}

std::string Hex(const std::string& bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    text += kDigits[value >> 4];
    text += kDigits[value & 15];
  }
  return text;
}

std::string RowHash(char kind, const Texts& texts) {
  std::string row(1, kind);
  for (const auto& text : texts) {
    row += text ? std::to_string(text->size()) + ":" + *text : "-";
  }
  return Sha256(row);
}

bool VersionModel::Observe(const RelationState& state, size_t key) {
  std::vector<std::string> hashes;
  puts_ = deletions_ = 0;
  for (const auto& [id, row] : state.rows) {
    const auto before = state_.rows.find(id);
    if (before != state_.rows.end() &&
        Reshaped(before->second, state_.columns, state.columns) == row) {
      continue;
    }
    ++puts_;
    hashes.push_back(RowHash('P', row));
  }
  for (const auto& [id, row] : state_.rows) {
    if (state.rows.contains(id)) continue;
    ++deletions_;
    const auto column = std::find(state_.columns.begin(), state_.columns.end(), state.columns[key]);
    hashes.push_back(
        RowHash('D', {row[static_cast<size_t>(column - state_.columns.begin())]}));
  }
  state_ = state;
  if (any_ && hashes.empty()) return false;
  any_ = true;
  version_ = Sha256(version_ + Digest(hashes) +
                    BigEndian(static_cast<int64_t>(state.rows.size())) + BigEndian(puts_) +
                    BigEndian(deletions_));
  return true;
}

}  // namespace tidemark::tests
