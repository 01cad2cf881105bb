// A mirrored family of tables (INHERITS): base with heirs left_heir and right_heir, whose columns
// come in another order, and leaf, which inherits from left_heir. What the source answers for each
// of them, with and without ONLY, is kept step by step and asked of the store again for every step.
#pragma once

#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/capture/source_changes_fixture.h"

namespace tidemark::tests {

class Inheritance : public SourceChanges {
 protected:
  void SetUp() override {
    MirrorFixture::SetUp();
    source_->Execute(
        "CREATE TABLE base (id int PRIMARY KEY, n int, s text); "
        "CREATE TABLE left_heir (extra text, PRIMARY KEY (id)) INHERITS (base); "
        "CREATE TABLE right_heir (s text, own int, id int PRIMARY KEY, n int); "
        "ALTER TABLE right_heir INHERIT base; "
        "CREATE TABLE leaf (PRIMARY KEY (id)) INHERITS (left_heir); "
        "INSERT INTO base SELECT i, i, 'base' FROM generate_series(1, 5) i; "
        "INSERT INTO left_heir SELECT i, i, 'left', 'e' FROM generate_series(11, 15) i; "
        "INSERT INTO right_heir SELECT 'right', 1, i, i FROM generate_series(21, 25) i; "
        "INSERT INTO leaf SELECT i, i, 'leaf', 'f' FROM generate_series(31, 35) i; "
        "CREATE PUBLICATION tidemark FOR ALL TABLES");
    Start();
    CatchUp();
  }

  /// Waits until each table, with its heirs and without, is as at the source; keeps the answers.
  void Step() {
    for (const auto& table : tables_) {
      ExpectSoon(fmt::format("SELECT {} FROM {} ORDER BY 1", columns_, table));
    }
    const auto lsn = CatchUp();
    for (const auto& table : tables_) {
      EXPECT_EQ(Told(Own(table)), Rows(*source_, SourceOwn(table))) << "ONLY " << table;
      for (const bool own : {false, true}) {
        const auto wanted = Rows(
            *source_, own ? SourceOwn(table)
                          : fmt::format("SELECT {} FROM {} ORDER BY 1", columns_, table));
        answers_.push_back({lsn, table, own, wanted});
      }
    }
    ExpectRemembered();
  }
  void ExpectRemembered() {
    for (const auto& answer : answers_) {
      const bool only = answer.own && IsParent(answer.table);
      EXPECT_EQ(Told(fmt::format("SELECT {} FROM tidemark.{}as_of_position(NULL::public.{}, '{}') "
                                 "ORDER BY 1",
                                 columns_, only ? "only_" : "", answer.table, answer.lsn)),
                answer.rows)
          << (answer.own ? "ONLY " : "") << answer.table << " at " << answer.lsn;
    }
  }
  /// What the store says. A statement that meets a change of columns is asked again.
  std::string Told(const std::string& sql) {
    for (int tried = 1;; ++tried) {
      try {
        return Rows(*store_, sql);
      } catch (const base::Error& error) {
        const bool met = error.state() == base::kUndefinedColumn ||
                         error.state() == base::SqlState("42P13");  // the function is older
        if (!met || tried == 5) throw;
        std::this_thread::sleep_for(50ms);
      }
    }
  }
  bool IsParent(const std::string& table) {
    return store_->Value("SELECT tidemark.kind_of('public." + table + "'::regclass)") == "parent";
  }
  std::string Own(const std::string& table) {
    return fmt::format("SELECT {} FROM {} ORDER BY 1", columns_,
                       IsParent(table) ? "tidemark.only_rows(NULL::public." + table + ")" : table);
  }
  std::string SourceOwn(const std::string& table) {
    return fmt::format("SELECT {} FROM ONLY {} ORDER BY 1", columns_, table);
  }
  /// Waits until what is said of tables says this, or does no more.
  void AwaitProblem(const std::string& text, bool there = true) {
    const auto deadline = base::Deadline::After(30s);
    while (!deadline.passed() && (Problems().find(text) != std::string::npos) != there) {
      std::this_thread::sleep_for(50ms);
    }
    EXPECT_EQ(Problems().find(text) != std::string::npos, there) << Problems();
  }
  /// What the table answered is not asked for again.
  void Forget(const std::string& table) {
    std::erase_if(answers_, [&](const Remembered& answer) { return answer.table == table; });
  }
  std::string LinksOpen() {
    return Rows(*store_,
                "SELECT c.table_name, p.table_name FROM tidemark.inheritance i "
                "JOIN tidemark.dataset c ON c.id = i.child JOIN tidemark.dataset p ON p.id = i.parent "
                "WHERE i.tx_to IS NULL ORDER BY 1, 2");
  }

  std::string columns_ = "id, n, s";
  std::vector<std::string> tables_ = {"base", "left_heir", "right_heir", "leaf"};

 private:
  struct Remembered {
    std::string lsn, table;
    bool own;
    std::string rows;
  };
  std::vector<Remembered> answers_;
};

}  // namespace tidemark::tests
