#include "capture/table_copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/error.h"
#include "pg/copy.h"
#include "temporal/field_translation.h"
#include "wire/copy_binary.h"

namespace tidemark::capture {

using base::QuoteIdentifier;
using temporal::Dataset;
using temporal::Keying;
using wire::pgoutput::FieldKind;
using wire::pgoutput::TupleField;

namespace {

constexpr size_t kSendBytes = 256 * 1024;
constexpr int64_t kReportRows = 20'000;

std::string StageTable(int dataset_id) {
  return fmt::format("tidemark_current.d{}_stage", dataset_id);
}

std::string SourceQuery(const CopyTask& task) {
  std::string columns;
  for (const auto& column : task.dataset->columns) {
    if (!columns.empty()) columns += ", ";
    const auto name = QuoteIdentifier(column.name);
    // As the stream has it: what the type's output function writes. A cast may say something else.
    columns += column.binary
                   ? name
                   : fmt::format("CASE WHEN {0} IS DISTINCT FROM NULL "
                                 "THEN pg_catalog.format('%s', {0}) END",
                                 name);
  }
  std::string where;
  const auto add = [&](const std::string& condition) {
    where += (where.empty() ? " WHERE " : " AND ") + condition;
  };
  if (task.range.first) add(fmt::format("ctid >= '({},0)'::tid", *task.range.first));
  if (task.range.end) add(fmt::format("ctid < '({},0)'::tid", *task.range.end));
  if (!task.dataset->row_filter.empty()) add("(" + task.dataset->row_filter + ")");
  return fmt::format("COPY (SELECT {} FROM {}{}{}) TO STDOUT (FORMAT binary)", columns,
                     task.only ? "ONLY " : "", task.upstream.Quoted(), where);
}

std::string StoreCommand(const Dataset& dataset) {
  return fmt::format("COPY {} ({}{}) FROM STDIN (FORMAT binary)",
                     dataset.AllBinary() ? dataset.Current() : StageTable(dataset.id),
                     dataset.ColumnList(),
                     dataset.keying == Keying::kMultiset ? ", _hash" : "");
}

// Rewrites rows of a COPY BINARY stream: values that name types by OID, and `_hash` where the
// dataset has one.
class RowRewriter {
 public:
  explicit RowRewriter(const CopyTask& task)
      : task_(task),
        hashed_(task.dataset->keying == Keying::kMultiset),
        translated_(std::any_of(task.translations.begin(), task.translations.end(),
                                [](const auto* plan) { return plan != nullptr; })),
        fields_(task.dataset->columns.size()) {
    wire::CopyBinaryWriter(out_).WriteHeader();
  }

  /// False: the stream may pass as it is.
  bool needed() const { return hashed_ || translated_; }

  void Add(std::string_view chunk) {
    reader_.Feed(chunk);
    while (reader_.Next() == wire::CopyBinaryReader::Step::kRow) AddRow(reader_.fields());
  }
  void End() {
    reader_.ExpectEnd();
    wire::CopyBinaryWriter(out_).WriteTrailer();
  }
  std::string& out() { return out_; }

 private:
  void AddRow(std::span<const wire::CopyField> fields) {
    wire::CopyBinaryWriter writer(out_);
    writer.WriteRow(static_cast<int16_t>(fields_.size() + (hashed_ ? 1 : 0)));
    for (size_t i = 0; i < fields.size(); ++i) {
      fields_[i] = fields[i] ? TupleField{FieldKind::kBinary, *fields[i]}
                             : TupleField{FieldKind::kNull, {}};
    }
    for (size_t i = 0; i < fields.size(); ++i) {
      writer.WriteField(fields[i]);
      if (fields[i] && task_.translations[i] != nullptr) {
        const size_t size = fields[i]->size();
        temporal::TranslateField(*task_.dataset, i, *task_.translations[i],
                                 {out_.data() + out_.size() - size, size}, fields_);
      }
    }
    if (hashed_) {
      const auto hash = temporal::HashRow(fields_);
      char bytes[16];
      wire::StoreBigEndian(bytes, hash.high);
      wire::StoreBigEndian(bytes + 8, hash.low);
      writer.WriteField(std::string_view(bytes, sizeof bytes));
    }
  }

  const CopyTask& task_;
  const bool hashed_, translated_;
  wire::CopyBinaryReader reader_;
  std::vector<TupleField> fields_;
  std::string out_;
};

}  // namespace

int64_t CopyTable(pg::Connection& source, pg::Connection& store, const CopyTask& task,
                  const std::function<void(int64_t, int64_t)>& progressed) {
  RowRewriter rewriter(task);
  pg::CopyOut from(source, SourceQuery(task));
  pg::CopyIn to(store, task.command.empty() ? StoreCommand(*task.dataset) : task.command);
  std::string unchanged;
  std::string& out = rewriter.needed() ? rewriter.out() : unchanged;
  int64_t rows_reported = 0, chunks = 0, bytes = 0;
  while (const auto chunk = from.Next()) {
    if (rewriter.needed()) {
      rewriter.Add(*chunk);
    } else {
      out += *chunk;
    }
    bytes += static_cast<int64_t>(chunk->size());
    if (out.size() >= kSendBytes) {
      to.Write(out);
      out.clear();
    }
    // The server sends each row by itself; how many they were it says in the end.
    if (++chunks - rows_reported >= kReportRows) {
      progressed(chunks - rows_reported, bytes);
      rows_reported = chunks;
      bytes = 0;
    }
  }
  if (rewriter.needed()) rewriter.End();
  to.Write(out);
  const int64_t stored = to.Finish();
  if (stored != from.rows()) {
    throw base::Error(base::kDataCorrupted,
                      fmt::format("{} rows of {} were read, but {} stored", from.rows(),
                                  task.upstream.Display(), stored));
  }
  progressed(stored - rows_reported, bytes);
  return stored;
}

void RequireUnchanged(pg::Connection& source, const pg::Relation& relation) {
  const auto id = std::to_string(relation.oid);
  const auto rewritten = source.Execute(
      R"sql(
SELECT c.oid::regclass::text
FROM pg_catalog.pg_class c
WHERE c.oid IN (SELECT $1::oid UNION SELECT t.relid FROM pg_catalog.pg_partition_tree($1::oid) t)
  AND c.relfilenode <> 0
  AND c.relfilenode IS DISTINCT FROM pg_catalog.pg_relation_filenode(c.oid)
)sql",
      {id});
  // The catalog's rows are as the snapshot has them; what the function says is as COPY has it.
  const auto renamed = source.Execute(
      R"sql(
SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.oid = $1::oid
  AND (pg_catalog.pg_identify_object_as_address('pg_catalog.pg_class'::regclass, c.oid,
                                                coalesce(a.attnum, 0))).object_names
      IS DISTINCT FROM array_remove(ARRAY[n.nspname, c.relname, a.attname]::text[], NULL)
)sql",
      {id});
  if (rewritten.rows() == 0 && renamed.rows() == 0) return;
  throw base::Error(base::kSerializationFailure,
                    rewritten.rows() > 0
                        ? fmt::format("table {} was truncated or rewritten while it was copied",
                                      rewritten.str(0, 0))
                        : fmt::format("table {} or a column of it was renamed while it was copied",
                                      relation.name.Display()))
      .Detail("The copy begins again from a new snapshot.");
}

void CreateStage(pg::Connection& store, const Dataset& dataset) {
  std::string columns;
  for (const auto& column : dataset.columns) {
    columns += fmt::format("{} {}, ", QuoteIdentifier(column.name),
                           column.binary ? column.type_sql : "text");
  }
  store.Execute(
      fmt::format("CREATE UNLOGGED TABLE {} ({}_hash uuid)", StageTable(dataset.id), columns));
}

void FillFromStage(pg::Connection& store, const Dataset& dataset) {
  std::string names = dataset.ColumnList(), values;
  for (const auto& column : dataset.columns) {
    if (!values.empty()) values += ", ";
    values += QuoteIdentifier(column.name) + (column.binary ? "" : "::" + column.type_sql);
  }
  if (dataset.keying == Keying::kMultiset) {
    names += ", _hash";
    values += ", _hash";
  }
  pg::Transaction tx(store);
  store.Execute(fmt::format("INSERT INTO {} ({}) SELECT {} FROM {}", dataset.Current(), names,
                            values, StageTable(dataset.id)));
  store.Execute("DROP TABLE " + StageTable(dataset.id));
  std::move(tx).Commit();
}

void DropStage(pg::Connection& store, int dataset_id) {
  store.Execute("DROP TABLE IF EXISTS " + StageTable(dataset_id));
}

}  // namespace tidemark::capture
