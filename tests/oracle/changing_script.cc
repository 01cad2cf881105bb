// What the workload does to the tables that change. Each statement that the model must know of is
// followed by a logical message that says it (test_decoding.h, ReadMessage): it stands in the log
// where the statement does, and goes with it when that is rolled back.
#include <fmt/format.h>

#include "tests/oracle/tables.h"
#include "tests/oracle/transaction_script.h"

namespace tidemark::oracle {

namespace {

constexpr int kKeys = 30;

std::string Say(const std::string& what) {
  return fmt::format("SELECT pg_logical_emit_message(true, 'oracle', '{}')", what);
}

std::string SayRewritten(const std::string& table, int added) {
  return fmt::format(
      "SELECT pg_logical_emit_message(true, 'oracle', 'rewrite {0} {1} ' || (SELECT "
      "string_agg(atttypid::text, ',' ORDER BY attnum) FROM pg_attribute WHERE attrelid = "
      "'{0}'::regclass AND attnum > 0 AND NOT attisdropped))",
      table, added);
}

}  // namespace

void ScriptWriter::AddChanging(Script& s) {
  switch (Below(late_ ? 4 : 3)) {
    case 0:
    case 1:
      return AddRewritten(s);
    case 2:
      return AddReshaped(s);
    default:
      return AddLate(s);
  }
}

void ScriptWriter::AddRewritten(Script& s) {
  const int id = 1 + Below(kKeys);
  switch (Below(8)) {
    case 0:
    case 1:
      s.push_back(fmt::format(
          "INSERT INTO rewritten VALUES ({}, {}, {}) ON CONFLICT DO NOTHING", id, Below(100),
              Text()));
      break;
    case 2:
      s.push_back(
          fmt::format("UPDATE rewritten SET n = n + 1 WHERE id BETWEEN {} AND {}", id, id + 3));
      break;
    case 3:
      s.push_back(fmt::format("DELETE FROM rewritten WHERE id = {}", id));
      break;
    case 4:
      s.push_back(fmt::format("UPDATE rewritten SET id = id + 1000 WHERE id = {0} AND NOT EXISTS "
                              "(SELECT FROM rewritten WHERE id = {0} + 1000)",
                              id));
      break;
    case 5:
      s.push_back(fmt::format("INSERT INTO rewritten_bag SELECT {}, {} FROM generate_series(1, 2)",
                              Below(5), Text()));
      break;
    case 6:
      s.push_back(fmt::format("UPDATE rewritten_bag SET note = {} WHERE n = {}", Text(), Below(8)));
      break;
    default:
      s.push_back(fmt::format("DELETE FROM rewritten_bag WHERE n = {} OR n > 20", Below(8)));
      break;
  }
}

// Names of a and b are swapped, that of note changes: the last two are named by their places.
void ScriptWriter::AddReshaped(Script& s) {
  const int id = 1 + Below(kKeys);
  switch (Below(5)) {
    case 0:
      s.push_back(
          fmt::format("INSERT INTO reshaped VALUES ({}, {}, {}, {}) ON CONFLICT DO NOTHING", id,
                      Below(100), -Below(100), Text()));
      break;
    case 1:
      s.push_back(fmt::format("UPDATE reshaped SET a = a + 1 WHERE id BETWEEN {} AND {}", id, id +
                              3));
      break;
    case 2:
      s.push_back(fmt::format("UPDATE reshaped SET b = a - 1000 WHERE id = {}", id));
      break;
    case 3:
      s.push_back(fmt::format("UPDATE reshaped SET id = id + 1000 WHERE id = {0} AND NOT EXISTS "
                              "(SELECT FROM reshaped WHERE id = {0} + 1000)",
                              id));
      break;
    default:
      s.push_back(fmt::format("DELETE FROM reshaped WHERE id = {}", id));
      break;
  }
}

void ScriptWriter::AddLate(Script& s) {
  const auto table = LateTable(session_);
  const int id = 1 + Below(kKeys);
  switch (Below(4)) {
    case 0:
      s.push_back(fmt::format("INSERT INTO {} VALUES ({}, {}, {}) ON CONFLICT DO NOTHING", table,
                              id,
                              Below(100), Text()));
      break;
    case 1:
      s.push_back(
          fmt::format("UPDATE {} SET n = n + 1 WHERE id BETWEEN {} AND {}", table, id, id + 3));
      break;
    case 2:
      s.push_back(fmt::format("DELETE FROM {} WHERE id = {}", table, id));
      break;
    default:
      s.push_back(fmt::format("UPDATE {0} SET id = id + 1000, note = {1} WHERE id = {2} AND NOT "
                              "EXISTS (SELECT FROM {0} WHERE id = {2} + 1000)",
                              table, Text(), id));
      break;
  }
}

void ScriptWriter::AddRewrite(Script& s) {
  const std::string table = Below(3) == 0 ? "rewritten_bag" : "rewritten";
  const int added = Below(3);
  switch (Below(5)) {
    case 0:
    case 1: {
      static const char* const kTypes[] = {"integer", "bigint", "numeric"};
      s.push_back(fmt::format("ALTER TABLE {} ALTER n TYPE {} USING n + {}", table,
                              kTypes[Below(std::size(kTypes))], added));
      s.push_back(SayRewritten(table, added));
      break;
    }
    case 2:
      s.push_back(fmt::format("ALTER TABLE {} ALTER note TYPE {} USING note || ''", table,
                              Below(2) == 0 ? "text" : "varchar(200)"));
      s.push_back(SayRewritten(table, 0));
      break;
    case 3:
      s.push_back(fmt::format("ALTER TABLE {} ADD COLUMN v{}_{} integer DEFAULT seven()", table,
                              session_, ++volatile_));
      s.push_back(SayRewritten(table, 0));
      break;
    default:  // to the type that it has: nothing in the stream looks different
      s.push_back(fmt::format(
          "DO $$ BEGIN EXECUTE 'ALTER TABLE {0} ALTER n TYPE ' || (SELECT format_type(atttypid, "
          "atttypmod) FROM pg_attribute WHERE attrelid = '{0}'::regclass AND attname = 'n') || "
          "' USING n + {1}'; END $$",
          table, added));
      s.push_back(SayRewritten(table, added));
      break;
  }
}

void ScriptWriter::AddReshape(Script& s) {
  switch (Below(4)) {
    case 0:
      s.push_back("LOCK TABLE reshaped IN ACCESS EXCLUSIVE MODE");
      s.push_back(R"sql(
DO $$
DECLARE
  old text; new text;
BEGIN
  SELECT attname, CASE attname WHEN 'note' THEN 'remark' ELSE 'note' END INTO STRICT old, new
  FROM pg_attribute WHERE attrelid = 'reshaped'::regclass AND attname IN ('note', 'remark');
  EXECUTE format('ALTER TABLE reshaped RENAME %I TO %I', old, new);
  PERFORM pg_logical_emit_message(true, 'oracle', format('rename reshaped %s %s', old, new));
END
$$
)sql");
      break;
    case 1:
      for (const auto& [from, to] : {std::pair{"a", "c"}, {"b", "a"}, {"c", "b"}}) {
        s.push_back(fmt::format("ALTER TABLE reshaped RENAME {} TO {}", from, to));
        s.push_back(Say(fmt::format("rename reshaped {} {}", from, to)));
      }
      break;
    case 2:
      s.push_back(fmt::format("ALTER TABLE reshaped ADD COLUMN IF NOT EXISTS extra{} int DEFAULT "
                              "{}",
                              Below(3), Below(100)));
      s.push_back(Say("reshape reshaped"));
      break;
    default:
      s.push_back(fmt::format("ALTER TABLE reshaped DROP COLUMN IF EXISTS extra{}", Below(3)));
      s.push_back(Say("reshape reshaped"));
      break;
  }
}

// Rows before the change and after it, and sometimes a change that comes to nothing.
ScriptWriter::Script ScriptWriter::NextChange() {
  Script s = {"BEGIN"};
  AddTransfer(s);
  const bool rewrite = Below(2) == 0;
  const auto add_rows = [&] {
    for (int n = Below(3); n > 0; --n) rewrite ? AddRewritten(s) : AddReshaped(s);
  };
  const auto add_change = [&] { rewrite ? AddRewrite(s) : AddReshape(s); };
  add_rows();
  if (Below(4) == 0) {
    s.push_back("SAVEPOINT change");
    add_change();
    add_rows();
    s.push_back("ROLLBACK TO SAVEPOINT change");
    add_rows();
  } else {
    add_change();
    add_rows();
  }
  s.push_back(Below(6) == 0 ? "ROLLBACK" : "COMMIT");
  return s;
}

// Its own table: with rows from before it is published, and with rows of the transaction that does
// that.
ScriptWriter::Script ScriptWriter::NextLate() {
  const auto table = LateTable(session_);
  const bool all = PublishedAs() == Publishing::kAllTables;
  Script s = {"BEGIN"};
  const bool create = !late_;
  if (create) {
    s.push_back(CreateLateTableSql(session_));
    s.push_back(
        fmt::format("INSERT INTO {} SELECT i, i, 'first' FROM generate_series(1, 20) i", table));
    late_ = true;
  }
  AddLate(s);
  if (all && create) s.push_back(Say("join " + table));
  if (all) {
    joins_ = 3;
  } else if (!create || Below(2) == 0) {
    ++joins_;
    s.push_back(fmt::format(R"sql(
DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_publication_rel WHERE prrelid = '{0}'::regclass) THEN
    ALTER PUBLICATION {1} ADD TABLE {0};
    PERFORM pg_logical_emit_message(true, 'oracle', 'join {0}');
  END IF;
EXCEPTION WHEN OTHERS THEN  -- another session alters the publication: again, later
END
$$
)sql",
                            table, kPublication));
  }
  AddLate(s);
  s.push_back("COMMIT");
  return s;
}

}  // namespace tidemark::oracle
