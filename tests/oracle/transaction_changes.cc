// What one transaction of the workload may do to each kind of table.
#include <fmt/format.h>

#include "base/identifier.h"
#include "tests/oracle/transaction_script.h"

namespace tidemark::oracle {

using base::QuoteLiteral;

// About 9 kB, kept out of line.
std::string ScriptWriter::Large() {
  return fmt::format("repeat('{:016x}{:016x}', 290)", random_(), random_());
}

std::string ScriptWriter::Text() {
  static const char* const kTexts[] = {
      "",  "a",          "it''s", "\\back\\slash", "two\nlines",  "tab\t",  "Größe", "null",
      " ", "\"quoted\"", "[x]:1", "a b",           "new-tuple: ", "日本語", "'"};
  return QuoteLiteral(kTexts[Below(std::size(kTexts))]);
}

void ScriptWriter::AddItems(Script& s) {
  const int id = Id(), other = 1 + id % 40;
  switch (Below(11)) {
    case 0:
    case 1:
      s.push_back(fmt::format("INSERT INTO items VALUES ({}, {}, {}) ON CONFLICT DO NOTHING", id,
                              Below(100), Text()));
      break;
    case 2:
      s.push_back(
          fmt::format("INSERT INTO items VALUES ({0}, 1, {1}) ON CONFLICT (id) DO UPDATE "
                      "SET n = items.n + 1",
                      id, Text()));
      break;
    case 3:
      s.push_back(fmt::format("UPDATE items SET n = n + 1 WHERE id BETWEEN {} AND {}", id, id + 8));
      break;
    case 4:
      s.push_back(fmt::format("UPDATE items SET n = n WHERE id = {}", id));
      break;
    case 5:
      s.push_back(fmt::format("DELETE FROM items WHERE id = {}", id));
      break;
    case 6:
      s.push_back(
          fmt::format("UPDATE items SET id = id + 1000 WHERE id = {0} AND NOT EXISTS "
                      "(SELECT FROM items WHERE id = {0} + 1000)",
                      id));
      break;
    case 7:
      s.push_back(
          fmt::format("UPDATE items SET id = id - 1000, note = {1} WHERE id = {0} + 1000 "
                      "AND NOT EXISTS (SELECT FROM items WHERE id = {0})",
                      id, Text()));
      break;
    case 8:  // two rows change places
      s.push_back(fmt::format("UPDATE items SET id = -{} WHERE id = {}", session_ + 1, id));
      s.push_back(fmt::format("UPDATE items SET id = {} WHERE id = {}", id, other));
      s.push_back(fmt::format("UPDATE items SET id = {} WHERE id = -{}", other, session_ + 1));
      break;
    case 9:  // gone and back
      s.push_back(fmt::format("DELETE FROM items WHERE id = {}", id));
      s.push_back(
          fmt::format("INSERT INTO items VALUES ({}, -1, {}) ON CONFLICT DO NOTHING", id, Text()));
      break;
    default:  // came and gone
      s.push_back(fmt::format("INSERT INTO items VALUES (-{0}, 0, 'x') ON CONFLICT DO NOTHING",
                              100 + session_));
      s.push_back(fmt::format("UPDATE items SET n = 7 WHERE id = -{}", 100 + session_));
      s.push_back(fmt::format("DELETE FROM items WHERE id = -{}", 100 + session_));
      break;
  }
}

void ScriptWriter::AddPairs(Script& s) {
  const auto a = Text(), b = Text();
  switch (Below(5)) {
    case 0:
    case 1:
      s.push_back(
          fmt::format("INSERT INTO pairs VALUES ({}, {}, {}.50) ON CONFLICT (a, b) DO "
                      "UPDATE SET n = excluded.n",
                      a, b, Below(1000)));
      break;
    case 2:
      s.push_back(fmt::format("UPDATE pairs SET n = n * 1.1 WHERE a = {}", a));
      break;
    case 3:
      s.push_back(fmt::format("DELETE FROM pairs WHERE a = {} AND b = {}", a, b));
      break;
    default:
      s.push_back(
          fmt::format("UPDATE pairs SET b = {1} WHERE a = {0} AND b <> {1} AND NOT EXISTS "
                      "(SELECT FROM pairs WHERE a = {0} AND b = {1}) AND b = (SELECT "
                      "min(b) FROM pairs WHERE a = {0})",
                      a, b));
      break;
  }
}

void ScriptWriter::AddWide(Script& s) {
  static const char* const kTables[] = {"wide_default", "wide_full", "wide_index"};
  const std::string t = kTables[Below(3)];
  const int id = 1 + Below(12);
  switch (Below(10)) {
    case 0:
    case 1:
      s.push_back(fmt::format("INSERT INTO {} VALUES ({}, {}, 0, {}, {}) ON CONFLICT DO NOTHING", t,
                              id, id, Large(), Below(3) == 0 ? Large() : "NULL"));
      break;
    case 2:  // new and at once changed: its large values are sent once
      s.push_back(fmt::format("DELETE FROM {} WHERE id = {}", t, id));
      s.push_back(
          fmt::format("INSERT INTO {} VALUES ({}, {}, 0, {}, 'short') ON CONFLICT DO "
                      "NOTHING",
                      t, id, id, Large()));
      s.push_back(fmt::format("UPDATE {} SET n = n + 1 WHERE id = {}", t, id));
      break;
    case 3:
    case 4:
      s.push_back(fmt::format("UPDATE {} SET n = n + 1 WHERE id BETWEEN {} AND {}", t, id, id + 3));
      break;
    case 5:
      s.push_back(fmt::format("UPDATE {} SET big = {} WHERE id = {}", t, Large(), id));
      s.push_back(fmt::format("UPDATE {} SET n = n + 1 WHERE id = {}", t, id));
      break;
    case 6:
      s.push_back(fmt::format("UPDATE {} SET {} = NULL WHERE id = {}", t,
                              Below(2) == 0 ? "big" : "other", id));
      break;
    case 7:  // to another key, with its large values, and changed there
      s.push_back(
          fmt::format("UPDATE {0} SET id = id + 1000, k = k + 1000 WHERE id = {1} AND NOT "
                      "EXISTS (SELECT FROM {0} WHERE id = {1} + 1000)",
                      t, id));
      s.push_back(fmt::format("UPDATE {} SET n = n + 1 WHERE id = {} + 1000", t, id));
      break;
    case 8:
      s.push_back(
          fmt::format("UPDATE {0} SET id = id - 1000, k = k - 1000 WHERE id = {1} + 1000 "
                      "AND NOT EXISTS (SELECT FROM {0} WHERE id = {1})",
                      t, id));
      break;
    default:
      s.push_back(fmt::format("DELETE FROM {} WHERE id IN ({}, {} + 1000)", t, id, id));
      break;
  }
}

void ScriptWriter::AddBag(Script& s) {
  const int a = Below(6);
  switch (Below(7)) {
    case 0:
    case 1:
      s.push_back(fmt::format("INSERT INTO bag SELECT {}, {}, {}, NULL FROM generate_series(1, {})",
                              a, Text(), Below(2) == 0 ? "'-0'" : "'NaN'", 1 + Below(3)));
      break;
    case 2:
      s.push_back(
          fmt::format("INSERT INTO bag SELECT {}, 'large', 1, {} FROM generate_series(1, 2)", a,
                      Below(4) == 0 ? Large() : "repeat('twins', 1000)"));
      break;
    case 3:
      s.push_back(fmt::format(
          "DELETE FROM bag WHERE ctid = (SELECT ctid FROM bag WHERE a = {} LIMIT 1)", a));
      break;
    case 4:
      s.push_back(fmt::format("UPDATE bag SET b = b WHERE a = {}", a));
      break;
    case 5:
      s.push_back(fmt::format("UPDATE bag SET b = {}, f = f + 0.5 WHERE a = {}", Text(), a));
      break;
    default:
      s.push_back(fmt::format("DELETE FROM bag WHERE a = {}", a));
      break;
  }
}

void ScriptWriter::AddTransfer(Script& s) {
  const int amount = Below(100), from = 1 + Below(20), to = 1 + Below(20);
  s.push_back(
      fmt::format("UPDATE account_a SET balance = balance - {} WHERE id = {}", amount, from));
  s.push_back(fmt::format("UPDATE account_b SET balance = balance + {} WHERE id = {}", amount, to));
}

void ScriptWriter::AddLines(Script& s) {
  if (Below(3) == 0) {
    s.push_back("COPY journal_line (id) FROM PROGRAM 'seq 1 4'");
    return;
  }
  s.push_back(fmt::format("INSERT INTO journal_line SELECT i, {} FROM generate_series(1, {}) i",
                          Text(), 1 + Below(4)));
}

void ScriptWriter::AddFamily(Script& s) {
  const int id = Id();
  switch (Below(4)) {
    case 0:
      s.push_back(fmt::format("INSERT INTO parent VALUES ({}, 0) ON CONFLICT DO NOTHING", id));
      break;
    case 1:
      s.push_back(
          fmt::format("INSERT INTO child SELECT {}, id, 0 FROM parent ORDER BY random() "
                      "LIMIT 1 ON CONFLICT DO NOTHING",
                      id));
      break;
    case 2:
      s.push_back(fmt::format("DELETE FROM parent WHERE id = {}", id));
      break;
    default:
      s.push_back(fmt::format("UPDATE child SET n = n + 1 WHERE parent < {}", id));
      break;
  }
}

// Some of the rows, some of the columns, partitions.
void ScriptWriter::AddPublishedInPart(Script& s) {
  const int id = Id(), n = Below(20) - 10;
  switch (Below(9)) {
    case 0:
    case 1:
      s.push_back(
          fmt::format("INSERT INTO filtered VALUES ({0}, {1}) ON CONFLICT (id) DO UPDATE "
                      "SET n = excluded.n",
                      id, n));
      break;
    case 2:
      s.push_back(fmt::format("UPDATE filtered SET n = -n WHERE id < {}", id));
      break;
    case 3:
      s.push_back(fmt::format("UPDATE filtered SET id = -id, n = n + 3 WHERE id = {}", id));
      break;
    case 4:
      s.push_back(fmt::format("DELETE FROM filtered WHERE id IN ({0}, -{0})", id));
      break;
    case 5:
      s.push_back(
          fmt::format("INSERT INTO listed VALUES ('s', {0}, {1}) ON CONFLICT (id) DO UPDATE "
                      "SET secret = listed.secret || 's'",
                      id, n));
      break;
    case 6:
      s.push_back(
          fmt::format("INSERT INTO computed (id, n) VALUES ({0}, {1}) ON CONFLICT (id) DO "
                      "UPDATE SET n = excluded.n",
                      id, n));
      break;
    case 7:
      s.push_back(
          fmt::format("INSERT INTO parted VALUES ({0}, {1}) ON CONFLICT (id) DO UPDATE SET "
                      "n = parted.n + 1",
                      id, n));
      break;
    default:  // across partitions
      s.push_back(
          fmt::format("UPDATE parted SET id = 40 - id WHERE id = {0} AND NOT EXISTS "
                      "(SELECT FROM parted WHERE id = 40 - {0})",
                      id));
      s.push_back(fmt::format("UPDATE parted SET n = n + 1 WHERE id = 40 - {}", id));
      break;
  }
}

void ScriptWriter::AddTyped(Script& s) {
  const int id = 1 + Below(12);
  if (Below(5) == 0) {
    s.push_back(fmt::format("DELETE FROM typed WHERE id = {}", id));
    return;
  }
  s.push_back(fmt::format(R"sql(
INSERT INTO typed SELECT {}, {}, jsonb_build_object('t', x.t, 'n', x.n), json_build_array(x.t, x.n),
  md5(x.n::text)::uuid, '2000-01-01 00:00+00'::timestamptz + x.n * interval '1.000001 hour',
  date '2000-01-01' + x.n, make_interval(months => x.n, secs => x.n / 7.0), sha256(x.t::bytea),
  ARRAY[x.n, NULL, -x.n], ARRAY[x.t, NULL, 'b'], (enum_range(NULL::mood))[1 + x.n % 3],
  ROW('happy', x.t)::pair, int4range(x.n, x.n + 5)
FROM (SELECT 'quoted " and \ ' AS t, {} AS n) x
ON CONFLICT (id) DO UPDATE SET j = excluded.j, p = excluded.p, n = NULL, ints = excluded.ints
)sql",
                          id, Below(3) == 0 ? "'NaN'" : "1.50", Below(1000)));
}

// A block whose exceptions are caught: one sub-transaction for each round.
void ScriptWriter::AddCaught(Script& s) {
  s.push_back(fmt::format(R"sql(
DO $$
BEGIN
  FOR i IN 1..{} LOOP
    BEGIN
      INSERT INTO journal_line VALUES (i, 'caught');
      UPDATE items SET n = n + 1 WHERE id = {};
      IF i % 3 = 0 THEN RAISE EXCEPTION 'out'; END IF;
    EXCEPTION WHEN raise_exception THEN
      INSERT INTO journal_line VALUES (i, 'after');
    END;
  END LOOP;
END
$$
)sql",
                          5 + Below(10), Id()));
}

void ScriptWriter::AddTruncate(Script& s) {
  switch (Below(7)) {
    case 6:
      s.push_back("TRUNCATE parted, filtered");
      break;
    case 0:
      s.push_back("TRUNCATE journal_line");
      break;
    case 1:
      s.push_back("TRUNCATE items, pairs, bag RESTART IDENTITY");
      break;
    case 2:
      s.push_back("TRUNCATE parent CASCADE");
      break;
    case 3:
      s.push_back("TRUNCATE wide_default, wide_full");
      break;
    case 4:
      AddItems(s);
      s.push_back("TRUNCATE items");
      AddItems(s);
      AddItems(s);
      break;
    default:
      AddBag(s);
      s.push_back("TRUNCATE bag, child");
      AddBag(s);
      s.push_back("TRUNCATE bag");
      AddBag(s);
      break;
  }
}

void ScriptWriter::AddEmpty(Script& s) {
  switch (Below(6)) {
    case 5:
      s.push_back("SELECT FROM items WHERE id = 1 FOR UPDATE");
      break;
    case 0:
      s.push_back("SELECT 1");
      break;
    case 1:
      s.push_back("SELECT txid_current()");
      break;
    case 2:
      s.push_back("SELECT pg_logical_emit_message(true, 'workload', 'inside')");
      break;
    case 3:
      s.push_back("SELECT pg_logical_emit_message(false, 'workload', 'outside')");
      break;
    default:
      s.push_back(
          fmt::format("INSERT INTO unpublished VALUES ({}, 1) ON CONFLICT (id) DO UPDATE "
                      "SET n = unpublished.n + 1",
                      Id()));
      break;
  }
}

// A column that the model knows nothing of: what it does know must stay right, in every commit. Of
// tables that nobody truncates: their rows lie where they did. Nothing is dropped or renamed, since
// of a column that came and went before anybody looked only reading the table whole can tell.
void ScriptWriter::AddShape(Script& s) {
  static const char* const kTables[] = {"account_a", "account_b", "wide_index", "typed"};
  s.push_back(fmt::format("ALTER TABLE {} ADD COLUMN IF NOT EXISTS extra{} int DEFAULT {}",
                          kTables[Below(std::size(kTables))], Below(6), Below(100)));
}

}  // namespace tidemark::oracle
