#include "temporal/apply.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/kill_point.h"
#include "pg/copy.h"
#include "wire/copy_binary.h"

namespace tidemark::temporal {

using base::Error;
using base::QuoteIdentifier;
using wire::CopyBinaryWriter;

namespace {

constexpr size_t kCopyChunkBytes = 128 * 1024;

// Rows on their way into one COPY … (FORMAT binary).
class RowStream {
 public:
  RowStream(pg::Connection& store, const std::string& sql, size_t columns)
      : copy_(store, sql), columns_(static_cast<int16_t>(columns)) {
    writer_.WriteHeader();
  }
  CopyBinaryWriter& Begin() {
    if (buffer_.size() >= kCopyChunkBytes) Send();
    writer_.WriteRow(columns_);
    return writer_;
  }
  std::string& buffer() { return buffer_; }
  int64_t Finish() {
    writer_.WriteTrailer();
    Send();
    return copy_.Finish();
  }

 private:
  void Send() {
    copy_.Write(buffer_);
    buffer_.clear();
  }
  pg::CopyIn copy_;
  int16_t columns_;
  std::string buffer_;
  CopyBinaryWriter writer_{buffer_};
};

void WriteI32(std::string& out, int32_t value) {
  char bytes[8];
  wire::StoreBigEndian(bytes, int32_t{4});
  wire::StoreBigEndian(bytes + 4, value);
  out.append(bytes, sizeof bytes);
}

void WriteHash(std::string& out, const RowHash& hash) {
  char bytes[20];
  wire::StoreBigEndian(bytes, int32_t{16});
  wire::StoreBigEndian(bytes + 4, hash.high);
  wire::StoreBigEndian(bytes + 12, hash.low);
  out.append(bytes, sizeof bytes);
}

// The image's fields, a kept one as NULL, and which were kept as the bits of a bytea.
void WriteImage(std::string& out, const Image& image, size_t columns, std::string* kept) {
  if (!image.has_kept) {
    out.append(image.view());
    return;
  }
  ImageReader fields(image);
  for (size_t i = 0; i < columns; ++i) {
    const ImageField field = fields.Next();
    const bool is_kept = field.length == kKeptLength;
    if (is_kept && kept == nullptr) {
      throw Error(base::kInternalError, "an unchanged value was not filled in before writing");
    }
    if (is_kept) (*kept)[i / 8] = static_cast<char>((*kept)[i / 8] | (1 << (i % 8)));
    char length[4];
    wire::StoreBigEndian(length, is_kept ? kNullLength : field.length);
    out.append(length, sizeof length);
    out.append(field.value);
  }
}

}  // namespace

// The statements of one dataset. Their texts never change, so the server plans each once.
struct Applier::Statements {
  size_t columns;
  bool all_binary;
  std::string create;         // the session's temporary tables
  std::string copy_stage;     // rows that end, with the state that replaces them
  std::string find;           // stage × current by key → found, with ctid
  std::string find_missing;   // a staged row without its match, for the error
  std::string fetch_kept;
  std::string to_history;
  std::string remove;
  std::string replace, replace_keeping;  // without and with values that stay
  std::string copy_history, copy_current;
  std::string copy_versions, versions_to_history, versions_to_current;  // not all binary
  std::string truncate_to_history, truncate;
};

Applier::Applier(pg::Connection& store, HistoryLimits limits)
    : store_(&store), partitions_(store, limits) {
  // Batches are joined to big tables by key or ctid: nested loops over an index, whatever the
  // statistics of a temporary table say.
  store_->Execute(R"sql(
SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_seqscan = off;
SET enable_bitmapscan = off; SET enable_material = off; SET jit = off;
SET plan_cache_mode = force_generic_plan; SET temp_buffers = '32MB'
)sql");
}

Applier::~Applier() = default;

Applier::Statements& Applier::For(const Dataset& d) {
  auto& slot = statements_[d.id];
  if (slot) return *slot;
  auto s = std::make_unique<Statements>();
  s->columns = d.columns.size();
  s->all_binary = d.AllBinary();
  const std::string current = d.Current();
  const std::string history = d.History();
  const std::string stage = fmt::format("pg_temp.stage_{}", d.id);
  const std::string found = fmt::format("pg_temp.found_{}", d.id);
  const std::string versions = fmt::format("pg_temp.versions_{}", d.id);
  const std::string names = d.ColumnList();
  // In the temporary tables columns go by their place (c1, c2, …), so that none can be called like
  // one of ours.
  const auto place = [](size_t i) { return fmt::format("c{}", i + 1); };
  const auto separated = [](const std::string& list) { return list.empty() ? list : list + ", "; };

  // A column whose type has no binary form travels as text and is cast here.
  std::string definitions, places, values, sets, sets_keeping;
  for (size_t i = 0; i < d.columns.size(); ++i) {
    const auto& column = d.columns[i];
    const auto name = QuoteIdentifier(column.name);
    const auto cast = column.binary ? "" : "::" + column.type_sql;
    const auto comma = i == 0 ? "" : ", ";
    definitions += fmt::format("{}{} {}", comma, place(i), column.binary ? column.type_sql : "text");
    places += comma + place(i);
    values += fmt::format("{}v.{}{}", comma, place(i), cast);
    sets += fmt::format("{}{} = l.{}{}", comma, name, place(i), cast);
    sets_keeping += fmt::format(
        "{0}{1} = CASE WHEN l._kept IS NOT NULL AND pg_catalog.get_bit(l._kept, {2}) = 1 "
        "THEN c.{1} ELSE l.{3}{4} END",
        comma, name, i, place(i), cast);
  }
  const auto defined = separated(definitions);
  const bool multiset = d.keying == Keying::kMultiset;
  s->create = fmt::format(
      R"sql(
CREATE TEMPORARY TABLE IF NOT EXISTS stage_{id} (
  {defined}_ord integer, _op "char", _close bigint, _new bigint, _kept bytea, _wanted boolean,
  _hash uuid) ON COMMIT DELETE ROWS;
CREATE TEMPORARY TABLE IF NOT EXISTS found_{id} (
  {defined}_ord integer, _op "char", _close bigint, _new bigint, _kept bytea, _wanted boolean,
  _hash uuid, _ctid tid) ON COMMIT DELETE ROWS;
CREATE TEMPORARY TABLE IF NOT EXISTS versions_{id} (
  {defined}_from bigint, _to bigint, _hash uuid) ON COMMIT DELETE ROWS
)sql",
      fmt::arg("id", d.id), fmt::arg("defined", defined));
  s->copy_stage = fmt::format(
      "COPY {} ({}_ord, _op, _close, _new, _kept, _wanted, _hash) FROM STDIN (FORMAT binary)",
      stage, separated(places));

  std::string match;
  std::string shown = d.key_columns.empty() ? "'the whole row'" : "";
  for (const size_t i : d.KeyPositions()) {
    const auto& column = d.columns[i];
    match += fmt::format("{}c.{} = s.{}{}", match.empty() ? "" : " AND ",
                         QuoteIdentifier(column.name), place(i),
                         column.binary ? "" : "::" + column.type_sql);
    shown += fmt::format("{}{} || coalesce(s.{}::text, 'null')", shown.empty() ? "" : " || ', ' || ",
                         base::QuoteLiteral(base::DisplayIdentifier(column.name) + "="), place(i));
  }
  if (multiset) {
    s->find = fmt::format(
        R"sql(
INSERT INTO {found}
SELECT s.*, c._ctid
FROM (SELECT x.*, pg_catalog.row_number() OVER (PARTITION BY x._hash ORDER BY x._ord) AS n
      FROM {stage} x) AS n
JOIN {stage} s ON s._ord = n._ord
JOIN LATERAL (SELECT k.ctid AS _ctid FROM {current} k WHERE k._hash = n._hash
              ORDER BY k.ctid OFFSET n.n - 1 LIMIT 1) AS c ON true
)sql",
        fmt::arg("found", found), fmt::arg("stage", stage), fmt::arg("current", current));
  } else {
    s->find = fmt::format(
        "INSERT INTO {} SELECT s.*, c.ctid FROM {} s JOIN {} c ON {} ORDER BY c.ctid", found,
        stage, current, match.empty() ? "false" : match);
  }
  s->find_missing = fmt::format(
      "SELECT {} FROM {} s WHERE NOT EXISTS (SELECT FROM {} l WHERE l._ord = s._ord) "
      "ORDER BY s._ord LIMIT 1",
      shown, stage, found);
  std::string fetched;
  for (const auto& column : d.columns) {
    fetched += fmt::format(", c.{}{}", QuoteIdentifier(column.name), column.binary ? "" : "::text");
  }
  s->fetch_kept = fmt::format(
      "COPY (SELECT l._ord{} FROM {} l JOIN {} c ON c.ctid = l._ctid WHERE l._wanted) "
      "TO STDOUT (FORMAT binary)",
      fetched, found, current);
  s->to_history = fmt::format(
      "INSERT INTO {} ({}_from, _to) SELECT {}c._from, l._close FROM {} l JOIN {} c ON c.ctid = "
      "l._ctid WHERE c._from < l._close",
      history, separated(names), separated(d.ColumnList("c.")), found, current);
  s->remove = fmt::format("DELETE FROM {} c USING {} l WHERE c.ctid = l._ctid AND l._op = 'd'",
                          current, found);
  constexpr const char* kReplace =
      "UPDATE {} c SET {}_from = l._new FROM {} l WHERE c.ctid = l._ctid AND l._op = 'u'";
  s->replace = fmt::format(kReplace, current, separated(sets), found);
  s->replace_keeping = fmt::format(kReplace, current, separated(sets_keeping), found);
  s->copy_history = fmt::format("COPY {} ({}_from, _to) FROM STDIN (FORMAT binary)", history,
                                separated(names));
  s->copy_current = fmt::format("COPY {} ({}_from{}) FROM STDIN (FORMAT binary)", current,
                                separated(names), multiset ? ", _hash" : "");
  s->copy_versions = fmt::format("COPY {} ({}_from, _to, _hash) FROM STDIN (FORMAT binary)",
                                 versions, separated(places));
  s->versions_to_history = fmt::format(
      "INSERT INTO {} ({}_from, _to) SELECT {}v._from, v._to FROM {} v WHERE v._to IS NOT NULL",
      history, separated(names), separated(values), versions);
  s->versions_to_current = fmt::format(
      "INSERT INTO {} ({}_from{}) SELECT {}v._from{} FROM {} v WHERE v._to IS NULL", current,
      separated(names), multiset ? ", _hash" : "", separated(values), multiset ? ", v._hash" : "",
      versions);
  s->truncate_to_history = fmt::format(
      "INSERT INTO {} ({}_from, _to) SELECT {}c._from, $1 FROM {} c WHERE c._from < $1", history,
      separated(names), separated(d.ColumnList("c.")), current);
  // Not TRUNCATE: a reader with an older snapshot would find the table empty.
  s->truncate = fmt::format("DELETE FROM {}", current);
  store_->Execute(s->create);
  return *(slot = std::move(s));
}

Applier::Staged Applier::Stage(Transition& transition, const Statements& sql) {
  const Dataset& d = transition.dataset();
  const auto key_positions = d.KeyPositions();
  auto& entries = transition.entries();
  std::set<uint32_t> wanted;  // entries whose base holds values that others need
  for (const auto& closed : transition.closed()) {
    if (closed.image.has_kept) wanted.insert(closed.kept_from);
  }
  for (uint32_t i = 0; i < entries.size(); ++i) {
    if (entries[i].live && entries[i].image.has_kept && entries[i].kept_from != i) {
      wanted.insert(entries[i].kept_from);
    }
  }
  RowStream rows(*store_, sql.copy_stage, sql.columns + 7);
  // In the order of the key, neighbours in the index are looked up one after the other.
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < entries.size(); ++i) {
    if (entries[i].base) order.push_back(i);
  }
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return entries[a].key < entries[b].key; });
  Staged staged{.rows = static_cast<int64_t>(order.size())};
  std::string kept;
  for (const uint32_t i : order) {
    const auto& entry = entries[i];
    const bool replaced = entry.live && d.keying == Keying::kKey;
    auto& writer = rows.Begin();
    auto& out = rows.buffer();
    const bool kept_here = replaced && entry.image.has_kept && entry.kept_from == i;
    kept.assign((sql.columns + 7) / 8, '\0');
    staged.keeps = staged.keeps || kept_here;
    // A live image that needs another row's values is written later, once they are known.
    const bool later = replaced && entry.image.has_kept && !kept_here;
    if (replaced && !later) {
      WriteImage(out, entry.image, sql.columns, &kept);
    } else {
      ImageReader key({entry.key.data(), static_cast<uint32_t>(entry.key.size())});
      std::vector<ImageField> by_position(sql.columns, {kNullLength, {}});
      for (size_t at : key_positions) by_position[at] = key.Next();
      for (const auto& field : by_position) {
        writer.WriteField(field.length < 0 ? wire::CopyField{} : wire::CopyField{field.value});
      }
    }
    (replaced && !later ? staged.replaces : staged.removes) = true;
    WriteI32(out, static_cast<int32_t>(i));
    writer.WriteField(replaced && !later ? "u" : "d");
    writer.WriteI64(entry.base_closed);
    if (replaced && !later) {
      writer.WriteI64(entry.from);
    } else {
      writer.WriteNull();
    }
    writer.WriteField(kept_here ? wire::CopyField{kept} : wire::CopyField{});
    const bool is_wanted = wanted.contains(i);
    writer.WriteField(std::string_view(is_wanted ? "\1" : "\0", 1));
    if (d.keying == Keying::kMultiset) {
      WriteHash(out, entry.hash);
    } else {
      writer.WriteNull();
    }
  }
  rows.Finish();
  return staged;
}

// Values that neither the source sent nor a simple update can keep in place: versions between two
// of one batch, and rows that changed their key.
void Applier::FetchKept(Transition& transition, const Statements& sql) {
  const bool needed =
      std::any_of(transition.closed().begin(), transition.closed().end(),
                  [](const auto& c) { return c.image.has_kept; }) ||
      std::any_of(transition.entries().begin(), transition.entries().end(), [&](const auto& e) {
        return e.live && e.image.has_kept && &e - transition.entries().data() != e.kept_from;
      });
  if (!needed) return;
  std::map<uint32_t, Image> bases;
  wire::CopyBinaryReader reader;
  pg::CopyOut copy(*store_, sql.fetch_kept);
  while (const auto chunk = copy.Next()) {
    reader.Feed(*chunk);
    while (reader.Next() == wire::CopyBinaryReader::Step::kRow) {
      const auto row = reader.row_bytes();
      // Field count, then _ord as a field of four bytes, then the columns as an image holds them.
      constexpr size_t kBefore = 2 + 4 + 4;
      const auto ord = static_cast<uint32_t>(wire::LoadBigEndian<int32_t>(row.data() + 6));
      const auto fields = row.substr(kBefore);
      char* memory = transition.arena().Allocate(fields.size());
      std::copy(fields.begin(), fields.end(), memory);
      bases[ord] = {memory, static_cast<uint32_t>(fields.size()), false};
    }
  }
  const auto fill = [&](Image& image, uint32_t from) {
    const auto base = bases.find(from);
    if (base == bases.end()) {
      throw Error(base::kDataCorrupted,
                  fmt::format("an unchanged value of {} has no earlier version to come from",
                              transition.dataset().name.Display()));
    }
    image = FillKept(image, base->second, sql.columns, transition.arena());
  };
  for (auto& closed : transition.closed()) {
    if (closed.image.has_kept) fill(closed.image, closed.kept_from);
  }
  auto& entries = transition.entries();
  for (uint32_t i = 0; i < entries.size(); ++i) {
    if (entries[i].live && entries[i].image.has_kept && entries[i].kept_from != i) {
      fill(entries[i].image, entries[i].kept_from);
      entries[i].base_moved = entries[i].base;
    }
  }
}

void Applier::CopyVersions(Transition& transition, const Statements& sql) {
  const Dataset& d = transition.dataset();
  const bool multiset = d.keying == Keying::kMultiset;
  const auto is_new = [&](const Transition::Entry& e) {
    return e.live && (!e.base || e.base_moved);
  };
  const bool any_new =
      std::any_of(transition.entries().begin(), transition.entries().end(), is_new);
  const auto write = [&](RowStream& rows, const Image& image, int64_t from, const int64_t* to,
                         const RowHash* hash, bool all_fields) {
    auto& writer = rows.Begin();
    WriteImage(rows.buffer(), image, sql.columns, nullptr);
    writer.WriteI64(from);
    if (to != nullptr) writer.WriteI64(*to);
    if (to == nullptr && all_fields) writer.WriteNull();
    if (hash != nullptr) WriteHash(rows.buffer(), *hash);
    if (hash == nullptr && all_fields) writer.WriteNull();
  };
  if (sql.all_binary) {
    if (!transition.closed().empty()) {
      RowStream rows(*store_, sql.copy_history, sql.columns + 2);
      for (const auto& c : transition.closed()) write(rows, c.image, c.from, &c.to, nullptr, false);
      rows.Finish();
    }
    if (any_new) {
      RowStream rows(*store_, sql.copy_current, sql.columns + (multiset ? 2 : 1));
      for (const auto& e : transition.entries()) {
        if (is_new(e)) write(rows, e.image, e.from, nullptr, multiset ? &e.hash : nullptr, false);
      }
      rows.Finish();
    }
    return;
  }
  if (transition.closed().empty() && !any_new) return;
  {
    RowStream rows(*store_, sql.copy_versions, sql.columns + 3);
    for (const auto& c : transition.closed()) write(rows, c.image, c.from, &c.to, nullptr, true);
    for (const auto& e : transition.entries()) {
      if (is_new(e)) write(rows, e.image, e.from, nullptr, multiset ? &e.hash : nullptr, true);
    }
    rows.Finish();
  }
  store_->ExecutePrepared(sql.versions_to_history, {});
  store_->ExecutePrepared(sql.versions_to_current, {});
}

void Applier::ThrowMissing(const Dataset& dataset, const Statements& sql) {
  const auto missing = store_->Execute(sql.find_missing);
  const auto key = missing.rows() == 1 ? missing.str(0, 0) : "unknown";
  throw Error(base::kDataCorrupted,
              fmt::format("{} has no row for a change of its key {}", dataset.name.Display(), key))
      .Hint("The mirror differs from its source; compare with \"tidemark verify\".");
}

void Applier::Apply(Transition& transition, int64_t tx_newest) {
  const Dataset& d = transition.dataset();
  try {
    Statements& sql = For(d);
    partitions_.Cover(d, tx_newest);
    if (!filled_.insert(d.id).second) {
      // The second part of one transaction finds what the first part staged.
      store_->Execute(fmt::format(
          "TRUNCATE pg_temp.stage_{0}, pg_temp.found_{0}, pg_temp.versions_{0}", d.id));
    }
    const bool any_base = std::any_of(transition.entries().begin(), transition.entries().end(),
                                      [](const auto& e) { return e.base; });
    int64_t to_history = static_cast<int64_t>(transition.closed().size());
    if (any_base) {
      const Staged staged = Stage(transition, sql);
      base::KillPoint("apply.staged");
      const int64_t found = store_->ExecutePrepared(sql.find, {}).affected();
      if (found < staged.rows) ThrowMissing(d, sql);
      if (found > staged.rows) {
        throw Error(base::kDataCorrupted,
                    fmt::format("{} has more than one row under one key", d.name.Display()));
      }
      FetchKept(transition, sql);
      to_history += store_->ExecutePrepared(sql.to_history, {}).affected();
      if (staged.removes) store_->ExecutePrepared(sql.remove, {});
      if (staged.replaces) {
        store_->ExecutePrepared(staged.keeps ? sql.replace_keeping : sql.replace, {});
      }
    }
    CopyVersions(transition, sql);
    partitions_.Count(d, to_history);
  } catch (Error& error) {
    error.AddContext(fmt::format("applying changes to {}", d.name.Display()));
    throw;
  }
  base::KillPoint("apply.done");
  transition.Clear();
}

int64_t Applier::Truncate(const Dataset& d, int64_t tx) {
  Statements& sql = For(d);
  partitions_.Cover(d, tx);
  const auto moved = store_->Execute(sql.truncate_to_history, {std::to_string(tx)}).affected();
  partitions_.Count(d, moved);
  return store_->Execute(sql.truncate).affected();
}

}  // namespace tidemark::temporal
