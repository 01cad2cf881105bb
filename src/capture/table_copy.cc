#include "capture/table_copy.h"

#include <fmt/format.h>

#include <algorithm>

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
  const std::string names = dataset.ColumnList();
  return fmt::format("COPY {} ({}{}_from{}) FROM STDIN (FORMAT binary)",
                     dataset.AllBinary() ? dataset.Current() : StageTable(dataset.id), names,
                     names.empty() ? "" : ", ",
                     dataset.keying == Keying::kMultiset ? ", _hash" : "");
}

// Appends rows to a COPY BINARY stream with `_from`, and `_hash` where the dataset has one.
class RowWidener {
 public:
  RowWidener(const CopyTask& task, int64_t tx) : task_(task) {
    multiset_ = task.dataset->keying == Keying::kMultiset;
    translated_ = std::any_of(task.translations.begin(), task.translations.end(),
                              [](const auto* plan) { return plan != nullptr; });
    wire::CopyBinaryWriter(suffix_).WriteI64(tx);
    fields_.resize(task.dataset->columns.size());
  }

  void Append(std::string& out, const wire::CopyBinaryReader& row) {
    if (!multiset_ && !translated_) {
      wire::AppendRowWithSuffix(out, row.row_bytes(), {1, suffix_});
      return;
    }
    wire::CopyBinaryWriter writer(out);
    writer.WriteRow(static_cast<int16_t>(fields_.size() + (multiset_ ? 2 : 1)));
    const auto fields = row.fields();
    for (size_t i = 0; i < fields.size(); ++i) {
      fields_[i] = fields[i] ? TupleField{FieldKind::kBinary, *fields[i]}
                             : TupleField{FieldKind::kNull, {}};
    }
    for (size_t i = 0; i < fields.size(); ++i) {
      writer.WriteField(fields[i]);
      if (fields[i] && task_.translations[i] != nullptr) {
        const size_t size = fields[i]->size();
        temporal::TranslateField(*task_.dataset, i, *task_.translations[i],
                                 {out.data() + out.size() - size, size}, fields_);
      }
    }
    out += suffix_;
    if (multiset_) {
      const auto hash = temporal::HashRow(fields_);
      char bytes[16];
      wire::StoreBigEndian(bytes, hash.high);
      wire::StoreBigEndian(bytes + 8, hash.low);
      writer.WriteField(std::string_view(bytes, sizeof bytes));
    }
  }

 private:
  const CopyTask& task_;
  bool multiset_, translated_;
  std::string suffix_;
  std::vector<TupleField> fields_;
};

}  // namespace

int64_t CopyTable(pg::Connection& source, pg::Connection& store, const CopyTask& task, int64_t tx,
                  const std::function<void(int64_t, int64_t)>& progressed) {
  RowWidener widener(task, tx);
  pg::CopyOut from(source, SourceQuery(task));
  pg::CopyIn to(store, task.command.empty() ? StoreCommand(*task.dataset) : task.command);
  wire::CopyBinaryReader reader;
  std::string out;
  wire::CopyBinaryWriter(out).WriteHeader();
  int64_t rows = 0, rows_reported = 0, bytes = 0;
  while (const auto chunk = from.Next()) {
    reader.Feed(*chunk);
    bytes += static_cast<int64_t>(chunk->size());
    while (reader.Next() == wire::CopyBinaryReader::Step::kRow) {
      widener.Append(out, reader);
      ++rows;
    }
    if (out.size() >= kSendBytes) {
      to.Write(out);
      out.clear();
    }
    if (rows - rows_reported >= kReportRows) {
      progressed(rows - rows_reported, bytes);
      rows_reported = rows;
      bytes = 0;
    }
  }
  reader.ExpectEnd();
  wire::CopyBinaryWriter(out).WriteTrailer();
  to.Write(out);
  const int64_t stored = to.Finish();
  if (stored != rows) {
    throw base::Error(base::kDataCorrupted,
                      fmt::format("{} rows of {} were read, but {} stored", rows,
                                  task.upstream.Display(), stored));
  }
  progressed(rows - rows_reported, bytes);
  return rows;
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
  store.Execute(fmt::format("CREATE UNLOGGED TABLE {} ({}_from bigint, _hash uuid)",
                            StageTable(dataset.id), columns));
}

void FillFromStage(pg::Connection& store, const Dataset& dataset) {
  std::string values;
  for (const auto& column : dataset.columns) {
    values += fmt::format("{}{}, ", QuoteIdentifier(column.name),
                          column.binary ? "" : "::" + column.type_sql);
  }
  const bool multiset = dataset.keying == Keying::kMultiset;
  const std::string names = dataset.ColumnList();
  pg::Transaction tx(store);
  store.Execute(fmt::format("INSERT INTO {} ({}{}_from{}) SELECT {}_from{} FROM {}",
                            dataset.Current(), names, names.empty() ? "" : ", ",
                            multiset ? ", _hash" : "", values, multiset ? ", _hash" : "",
                            StageTable(dataset.id)));
  store.Execute("DROP TABLE " + StageTable(dataset.id));
  std::move(tx).Commit();
}

void DropStage(pg::Connection& store, int dataset_id) {
  store.Execute("DROP TABLE IF EXISTS " + StageTable(dataset_id));
}

}  // namespace tidemark::capture
