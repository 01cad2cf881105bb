#include "tests/oracle/model.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <stdexcept>

namespace tidemark::oracle {

using base::Lsn;

std::string Digest::ToString() const { return fmt::format("{} rows, sum {}", rows, sum); }

std::string RowText(const std::vector<std::optional<std::string>>& row) {
  std::string text;
  for (const auto& value : row) {
    text += value ? fmt::format("{}:{}", value->size(), *value) : "-";
    text += ';';
  }
  return text;
}

uint64_t RowHash(const std::string& text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (EVP_Digest(text.data(), text.size(), digest, &size, EVP_md5(), nullptr) != 1) {
    throw std::runtime_error("MD5 is not available");
  }
  uint64_t hash = 0;
  for (int i = 0; i < 5; ++i) hash = hash << 8 | digest[i];
  return hash;
}

namespace {

bool IsPositive(const std::optional<std::string>& n) { return n && std::stoll(*n) > 0; }

bool HasPositiveN(const Fields& row) {
  const auto n = row.find("n");
  return n != row.end() && IsPositive(n->second.value);
}

}  // namespace

bool PassesFilter(const Change& change) {
  if (change.kind == Change::Kind::kTruncate) return true;
  const TableShape* table = FindPublished(change.tables.front());
  return !table->only_positive_n || (change.old_row && HasPositiveN(*change.old_row)) ||
         HasPositiveN(change.new_row);
}

Model::Model() {
  for (const auto* shapes : {&PublishedTables(), &ChangingTables()}) {
    for (const auto& shape : *shapes) {
      Table& table = tables_[shape.name];
      table.shape = &shape;
      table.columns = shape.columns;
      for (const auto& name : shape.key) {
        table.key.push_back(static_cast<size_t>(
            std::find(shape.columns.begin(), shape.columns.end(), name) - shape.columns.begin()));
      }
    }
  }
}

void Model::Count(Table& table, const std::string& text, int64_t sign) {
  table.digest.rows += sign;
  table.digest.sum += static_cast<uint64_t>(sign) * RowHash(text);
}

std::string Model::KeyOf(const Table& table, const Row& row) {
  Row key;
  for (const size_t at : table.key) key.push_back(row[at]);
  return RowText(key);
}

bool Model::Passes(const Table& table, const Row& row) {
  if (!table.shape->only_positive_n) return true;
  const auto& columns = table.columns;
  const auto at = std::find(columns.begin(), columns.end(), "n") - columns.begin();
  return IsPositive(row[static_cast<size_t>(at)]);
}

Model::Row Model::RowOf(const Table& table, const Fields& fields, const Row* before) {
  Row row;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const auto found = fields.find(table.columns[i]);
    if (found == fields.end()) {
      row.emplace_back();
    } else if (!found->second.unchanged) {
      row.push_back(found->second.value);
    } else if (before != nullptr) {
      row.push_back((*before)[i]);
    } else {
      throw std::runtime_error("an unchanged value without a row before");
    }
  }
  return row;
}

void Model::Insert(Table& table, Row row, Lsn end) {
  if (!Passes(table, row)) return;
  const auto text = RowText(row);
  Count(table, text, 1);
  if (table.key.empty()) {
    Bagged& bagged = table.bag[text];
    bagged.row = std::move(row);
    ++bagged.times;
    return;
  }
  const auto key = KeyOf(table, row);
  table.before.try_emplace(key, std::nullopt);
  if (!table.keyed.emplace(key, Live{std::move(row), end}).second) {
    throw std::runtime_error(fmt::format("two rows of {} under key {}", table.shape->name, key));
  }
}

Model::Row Model::Remove(Table& table, const std::string& key) {
  const auto found = table.keyed.find(key);
  if (found == table.keyed.end()) {
    throw std::runtime_error(fmt::format("no row of {} under key {}", table.shape->name, key));
  }
  Row row = std::move(found->second.row);
  const auto text = RowText(row);
  table.before.try_emplace(key, Version{RowHash(text), found->second.from, std::nullopt});
  Count(table, text, -1);
  table.keyed.erase(found);
  return row;
}

void Model::RemoveFromBag(Table& table, const Row& row) {
  const auto text = RowText(row);
  const auto found = table.bag.find(text);
  if (found == table.bag.end()) {
    throw std::runtime_error(fmt::format("no such row in {}: {}", table.shape->name, text));
  }
  if (--found->second.times == 0) table.bag.erase(found);
  Count(table, text, -1);
}

void Model::Truncate(Table& table) {
  for (const auto& [key, live] : table.keyed) {
    table.before.try_emplace(key, Version{RowHash(RowText(live.row)), live.from, std::nullopt});
  }
  table.keyed.clear();
  table.bag.clear();
  table.digest = {};
}

// Every row anew, with that much more in n.
void Model::Rewrite(Table& table, int64_t added, Lsn end) {
  if (added == 0) return;
  const auto n = static_cast<size_t>(
      std::find(table.columns.begin(), table.columns.end(), "n") - table.columns.begin());
  std::vector<Row> rows;
  for (const auto& [key, live] : table.keyed) rows.push_back(live.row);
  for (const auto& [text, bagged] : table.bag) rows.insert(rows.end(), bagged.times, bagged.row);
  Truncate(table);
  for (auto& row : rows) {
    if (row[n]) row[n] = std::to_string(std::stoll(*row[n]) + added);
    Insert(table, std::move(row), end);
  }
}

void Model::Apply(Table& table, const Change& change, Lsn end) {
  using Kind = Change::Kind;
  if (change.kind == Kind::kRewrite) return Rewrite(table, change.added, end);
  if (change.kind == Kind::kRename) {
    *std::find(table.columns.begin(), table.columns.end(), change.from) = change.to;
  }
  if (!change.of_rows()) return;
  if (change.kind == Kind::kTruncate) return Truncate(table);
  if (change.kind == Kind::kInsert) return Insert(table, RowOf(table, change.new_row, {}), end);
  if (table.key.empty()) {
    if (!change.old_row) throw std::runtime_error("no old row for a multiset");
    const Row old_row = RowOf(table, *change.old_row, nullptr);
    RemoveFromBag(table, old_row);
    if (change.kind == Kind::kUpdate) Insert(table, RowOf(table, change.new_row, &old_row), end);
    return;
  }
  if (table.shape->only_positive_n) {
    // Under REPLICA IDENTITY FULL the old row is whole, and says whether it was published.
    const Row old_row = RowOf(table, *change.old_row, nullptr);
    if (Passes(table, old_row)) Remove(table, KeyOf(table, old_row));
    if (change.kind == Kind::kUpdate) Insert(table, RowOf(table, change.new_row, &old_row), end);
    return;
  }
  // Without an old key the key has not changed.
  const Fields& identity = change.old_row ? *change.old_row : change.new_row;
  Fields key_fields;
  for (const auto& name : table.shape->key) key_fields[name] = identity.at(name);
  const Row old_row = Remove(table, KeyOf(table, RowOf(table, key_fields, nullptr)));
  if (change.kind == Kind::kUpdate) Insert(table, RowOf(table, change.new_row, &old_row), end);
}

void Model::Apply(const Commit& commit) {
  for (const auto& change : commit.changes) {
    for (const auto& name : change.tables) {
      if (const auto found = tables_.find(name); found != tables_.end()) {
        Apply(found->second, change, commit.end);
      }
    }
  }
  for (auto& [name, table] : tables_) {
    for (auto& [key, before] : table.before) {
      if (!before || before->from == commit.end) continue;
      before->to = commit.end;
      table.closed.push_back(*before);
    }
    table.before.clear();
  }
}

Digest Model::DigestOf(const std::string& table) const { return tables_.at(table).digest; }

std::vector<std::string> Model::RowsOf(const std::string& name) const {
  const Table& table = tables_.at(name);
  std::vector<std::string> rows;
  for (const auto& [key, live] : table.keyed) rows.push_back(RowText(live.row));
  for (const auto& [text, bagged] : table.bag) rows.insert(rows.end(), bagged.times, text);
  std::sort(rows.begin(), rows.end());
  return rows;
}

std::vector<Version> Model::VersionsOf(const std::string& name, Lsn first) const {
  const Table& table = tables_.at(name);
  std::vector<Version> versions;
  for (const auto& version : table.closed) {
    if (*version.to <= first) continue;
    versions.push_back({version.hash, std::max(version.from, first), version.to});
  }
  for (const auto& [key, live] : table.keyed) {
    versions.push_back({RowHash(RowText(live.row)), std::max(live.from, first), std::nullopt});
  }
  std::sort(versions.begin(), versions.end());
  return versions;
}

}  // namespace tidemark::oracle
