#include "tests/oracle/transaction_script.h"

#include <fmt/format.h>

namespace tidemark::oracle {

namespace {

constexpr int kBulkRows = 1500;

}  // namespace

void ScriptWriter::AddChanges(Script& s, int count) {
  for (int i = 0; i < count; ++i) {
    const int kind = Below(100);
    if (options_.changing && Below(5) == 0)
      AddChanging(s);
    else if (kind < 22)
      AddItems(s);
    else if (kind < 30)
      AddPairs(s);
    else if (kind < 46)
      AddWide(s);
    else if (kind < 56)
      AddBag(s);
    else if (kind < 62)
      AddTransfer(s);
    else if (kind < 67)
      AddLines(s);
    else if (kind < 74)
      AddFamily(s);
    else if (kind < 85)
      AddPublishedInPart(s);
    else if (kind < 91)
      AddTyped(s);
    else if (kind < 93)
      AddCaught(s);
    else if (kind < 95)
      AddTruncate(s);
    else
      AddEmpty(s);
  }
}

void ScriptWriter::AddSavepoints(Script& s, int depth) {
  const auto name = fmt::format("s{}", depth);
  s.push_back("SAVEPOINT " + name);
  AddChanges(s, 1 + Below(3));
  if (depth < 3 && Below(2) == 0) AddSavepoints(s, depth + 1);
  if (Below(2) == 0) {
    s.push_back("ROLLBACK TO SAVEPOINT " + name);
    if (Below(2) == 0) AddChanges(s, 1);
  } else {
    s.push_back("RELEASE SAVEPOINT " + name);
  }
}

std::vector<std::string> ScriptWriter::Next() {
  Script s;
  if (!waiting_.empty() && Below(2) == 0) {
    s.push_back(
        fmt::format("{} PREPARED '{}'", Below(3) == 0 ? "ROLLBACK" : "COMMIT", waiting_.back()));
    waiting_.pop_back();
    return s;
  }
  if (options_.rewrites && Below(60) == 0) return NextChange();
  if (options_.changing && joins_ < 3 && Below(25) == 0) return NextLate();
  const int kind = Below(100);
  if (kind == 0) {
    s = {"VACUUM FULL pairs"};  // another file, the same rows
  } else if (options_.shapes && kind < 4) {
    s = {"BEGIN"};
    AddTransfer(s);
    AddShape(s);
    AddWide(s);
    AddTransfer(s);
    s.push_back(Below(4) == 0 ? "ROLLBACK" : "COMMIT");
  } else if (kind < 20) {
    s = {"BEGIN"};
    AddTransfer(s);
    s.push_back("COMMIT");
  } else if (kind < 55) {
    AddChanges(s, 1);
    if (s.size() > 1) {
      s.insert(s.begin(), "BEGIN");
      s.push_back("COMMIT");
    }
  } else {
    s = {"BEGIN"};
    AddChanges(s, Below(6));
    for (int n = Below(3); n > 0; --n) AddSavepoints(s, 1);
    AddChanges(s, Below(3));
    const int end = Below(100);
    if (end < 10) {
      s.push_back("ROLLBACK");
    } else if (end < 18 && waiting_.empty()) {
      waiting_.push_back(fmt::format("workload_{}_{}", session_, ++prepared_));
      s.push_back(fmt::format("PREPARE TRANSACTION '{}'", waiting_.back()));
    } else {
      s.push_back("COMMIT");
    }
  }
  return s;
}

std::vector<std::string> ScriptWriter::NextLarge() {
  Script s = {"BEGIN"};
  const auto fill = fmt::format(
      "INSERT INTO bulk SELECT i, 0, 'pad ' || i FROM generate_series(1, {}) i", kBulkRows);
  const int kind = large_++ % 4;
  if (kind == 0) {
    s.push_back("DELETE FROM bulk");
    s.push_back(fill);
    s.push_back("UPDATE bulk SET n = n + 1 WHERE id % 2 = 0");
    AddTransfer(s);
  } else if (kind == 1) {
    // Rows of one part are changed again in later ones, large values included.
    AddChanges(s, 4);
    const auto big = Large();
    for (const char* t : {"wide_default", "wide_full", "wide_index"}) {
      s.push_back(fmt::format("DELETE FROM {} WHERE id IN (1, 2, 1001) OR k IN (1, 2, 1001)", t));
      s.push_back(fmt::format("INSERT INTO {0} VALUES (1, 1, 0, {1}, 'one'), (2, 2, 0, {1}, NULL)",
                              t, big));
    }
    s.push_back("UPDATE bulk SET n = n + 1");
    s.push_back("DELETE FROM bulk WHERE id % 10 = 0");
    for (const char* t : {"wide_default", "wide_full", "wide_index"}) {
      s.push_back(fmt::format("UPDATE {} SET n = n + 1", t));
      s.push_back(fmt::format("UPDATE {} SET id = 1001, k = 1001 WHERE id = 1", t));
    }
    s.push_back("UPDATE bulk SET n = n + 1 WHERE id % 2 = 1");
    s.push_back("INSERT INTO bulk SELECT i * 10, 5, 'again' FROM generate_series(1, 1000) i");
    for (const char* t : {"wide_default", "wide_full", "wide_index"}) {
      s.push_back(fmt::format("UPDATE {} SET n = n + 1, other = NULL WHERE id IN (2, 1001)", t));
    }
    AddChanges(s, 4);
    AddTransfer(s);
  } else if (kind == 2) {
    // Every key changes, half of it is rolled back, a truncate stands between.
    s.push_back("UPDATE bulk SET id = -id");
    s.push_back("SAVEPOINT l");
    s.push_back("UPDATE bulk SET n = n + 100");
    AddChanges(s, 3);
    s.push_back("ROLLBACK TO SAVEPOINT l");
    AddChanges(s, 3);
    s.push_back("TRUNCATE journal_line, bag");
    AddBag(s);
    s.push_back("UPDATE bulk SET n = n + 1 WHERE id % 2 = 0");
    AddTransfer(s);
  } else {
    s.push_back("UPDATE bulk SET n = n + 1");
    s.push_back("TRUNCATE bulk");
    s.push_back(fill);
    s.push_back("UPDATE bulk SET pad = 'new' WHERE id % 3 = 0");
    AddTransfer(s);
  }
  s.push_back("COMMIT");
  return s;
}

}  // namespace tidemark::oracle
