#include "capture/verify_difference.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace tidemark::capture {

namespace {

using Kind = RowDifference::Kind;

// Below this many rows they are compared one by one.
constexpr int64_t kRowsMax = 10'000;

// What one server says of one bucket or key.
struct Sum {
  int64_t count = 0;
  std::string checksum;
  bool operator==(const Sum&) const = default;
};

std::map<int64_t, Sum> ReadSums(const pg::Result& rows) {
  std::map<int64_t, Sum> sums;
  for (int i = 0; i < rows.rows(); ++i) {
    sums[rows.int64(i, 0)] = {rows.int64(i, 1), rows.str(i, 2)};
  }
  return sums;
}

// The next level's buckets that differ, at most `buckets_max`, and the rows in them.
std::pair<Buckets, int64_t> SplitOnce(const VerifyPair& pair, const Buckets& buckets,
                                      size_t buckets_max) {
  const auto answers = AskBoth(pair.source, pair.source_query.Split(buckets), pair.mirror,
                               pair.mirror_query.Split(buckets));
  auto mirror = ReadSums(answers.mirror);
  std::map<int64_t, int64_t> differing;  // pattern to the greater count
  for (const auto& [pattern, sum] : ReadSums(answers.source)) {
    const Sum other = mirror[pattern];
    if (sum != other) differing[pattern] = std::max(sum.count, other.count);
    mirror.erase(pattern);
  }
  for (const auto& [pattern, sum] : mirror) differing[pattern] = sum.count;

  Buckets next{buckets.level + 1, {}};
  int64_t rows = 0;
  for (const auto& [pattern, count] : differing) {
    if (next.patterns.size() == buckets_max) break;
    next.patterns.push_back(pattern);
    rows += count;
  }
  return {std::move(next), rows};
}

struct Key {
  int64_t hash;
  std::string text;
  Sum sum;
};

std::vector<Key> ReadKeys(const pg::Result& rows) {
  std::vector<Key> keys;
  for (int i = 0; i < rows.rows(); ++i) {
    keys.push_back({rows.int64(i, 0), rows.str(i, 1), {rows.int64(i, 2), rows.str(i, 3)}});
  }
  return keys;
}

struct FoundKey {
  int64_t hash;
  RowDifference difference;
};

// Merges two lists in the order of the hash. A list that was cut at kRowsMax says nothing about
// what lies behind its end.
std::vector<FoundKey> MergeKeys(const std::vector<Key>& source, const std::vector<Key>& mirror) {
  std::vector<FoundKey> found;
  const auto cut = [](const std::vector<Key>& keys) {
    return static_cast<int64_t>(keys.size()) == kRowsMax;
  };
  auto s = source.begin();
  auto m = mirror.begin();
  for (;;) {
    if ((s == source.end() && cut(source)) || (m == mirror.end() && cut(mirror))) return found;
    if (s == source.end() && m == mirror.end()) return found;
    if (m == mirror.end() || (s != source.end() && s->hash < m->hash)) {
      found.push_back({s->hash, {Kind::kMissingInMirror, s->text, {}}});
      ++s;
    } else if (s == source.end() || m->hash < s->hash) {
      found.push_back({m->hash, {Kind::kOnlyInMirror, m->text, {}}});
      ++m;
    } else {
      const int64_t missing = s->sum.count - m->sum.count;
      const Kind kind = missing > 0   ? Kind::kMissingInMirror
                        : missing < 0 ? Kind::kOnlyInMirror
                                      : Kind::kDifferentRow;
      if (s->sum != m->sum) found.push_back({s->hash, {kind, s->text, {}}});
      ++s, ++m;
    }
  }
}

using HashesByKey = std::map<int64_t, std::vector<std::string>>;

HashesByKey ReadColumnHashes(const pg::Result& rows) {
  HashesByKey hashes;
  for (int i = 0; i < rows.rows(); ++i) {
    auto& of_key = hashes[rows.int64(i, 0)];
    for (int column = 1; column < rows.columns(); ++column) of_key.push_back(rows.str(i, column));
  }
  return hashes;
}

void NameColumns(const temporal::Dataset& dataset, const VerifyPair& pair,
                 std::vector<FoundKey>& found) {
  std::vector<int64_t> wanted;
  for (const auto& key : found) {
    if (key.difference.kind == Kind::kDifferentRow) wanted.push_back(key.hash);
  }
  if (wanted.empty()) return;
  const auto answers = AskBoth(pair.source, pair.source_query.ColumnHashes(wanted), pair.mirror,
                               pair.mirror_query.ColumnHashes(wanted));
  auto source = ReadColumnHashes(answers.source);
  auto mirror = ReadColumnHashes(answers.mirror);
  for (auto& key : found) {
    if (key.difference.kind != Kind::kDifferentRow) continue;
    const auto& there = source[key.hash];
    const auto& here = mirror[key.hash];
    for (size_t i = 0; i < std::min(there.size(), here.size()); ++i) {
      if (there[i] != here[i]) key.difference.columns.push_back(dataset.columns[i].name);
    }
  }
}

}  // namespace

std::vector<RowDifference> FindDifferences(const temporal::Dataset& dataset, const VerifyPair& pair,
                                           int64_t rows, size_t differences_max) {
  Buckets buckets;
  while (rows > kRowsMax && buckets.level < Buckets::kLevelMax) {
    std::tie(buckets, rows) = SplitOnce(pair, buckets, differences_max);
  }
  const size_t limit = static_cast<size_t>(kRowsMax);
  const auto answers = AskBoth(pair.source, pair.source_query.Rows(buckets, limit), pair.mirror,
                               pair.mirror_query.Rows(buckets, limit));
  auto found = MergeKeys(ReadKeys(answers.source), ReadKeys(answers.mirror));
  if (found.size() > differences_max) found.resize(differences_max);
  NameColumns(dataset, pair, found);
  std::vector<RowDifference> differences;
  for (auto& key : found) differences.push_back(std::move(key.difference));
  return differences;
}

}  // namespace tidemark::capture
