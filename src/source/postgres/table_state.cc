#include "source/postgres/table_state.h"

#include <fmt/format.h>

#include <algorithm>

namespace tidemark::source {

namespace {

constexpr int kFirstVersionWithLists = 150000;

// Columns: oid, schema, name, rules, an enum's label: its oid and the label. A filter or a column
// list that is set anew changes rows that the stream never sends; so does a new name for a label.
constexpr const char* kTables = R"sql(
SELECT c.oid, n.nspname, c.relname, {rules}, e.oid, e.enumlabel, (
         SELECT pg_catalog.string_agg(a.attnum || ':' || a.xmin, ',' ORDER BY a.attnum)
         FROM pg_catalog.pg_attribute a
         WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped), (
         SELECT pg_catalog.string_agg(a.attnum::text, ',')
         FROM pg_catalog.pg_attribute a
         WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attnotnull)
FROM pg_catalog.pg_publication_tables p
JOIN pg_catalog.pg_namespace n ON n.nspname = p.schemaname
JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = p.tablename
LEFT JOIN LATERAL (
  SELECT DISTINCT l.oid, l.enumlabel
  FROM pg_catalog.pg_attribute a
  JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
  JOIN pg_catalog.pg_enum l ON l.enumtypid IN (t.oid, t.typelem)
  WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS e ON true
WHERE p.pubname = $1
  AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
                  WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = c.oid
                    AND d.deptype = 'e')
ORDER BY c.oid, e.oid
)sql";

// Which publication it is, when it was last altered, and by which entry the table is in it: from
// one to the next of them changes may not have been sent.
constexpr const char* kRules = R"sql((
         SELECT 'publication ' || b.oid || ' ' || b.xmin
         FROM pg_catalog.pg_publication b WHERE b.pubname = p.pubname)
       || '; entry ' || coalesce((
         SELECT pg_catalog.string_agg(r.oid::text, ',' ORDER BY r.oid)
         FROM pg_catalog.pg_publication_rel r
         JOIN pg_catalog.pg_publication b ON b.oid = r.prpubid
         WHERE b.pubname = p.pubname AND r.prrelid = c.oid), ''))sql";

constexpr const char* kRules15 = R"sql( || '; filter ' || coalesce(p.rowfilter, '') || '; list ' || coalesce((
         SELECT pg_catalog.string_agg(r.prattrs::text, ',' ORDER BY r.oid)
         FROM pg_catalog.pg_publication_rel r
         JOIN pg_catalog.pg_publication b ON b.oid = r.prpubid
         WHERE b.pubname = p.pubname AND r.prrelid = c.oid), ''))sql";

// Columns: root, relation, file node, xid. The tree is asked for of partitioned tables only: that takes
// a tenth of a millisecond.
constexpr const char* kFiles = R"sql(
SELECT l.oid, l.oid, l.relfilenode, l.xmin
FROM pg_catalog.pg_class l
WHERE l.oid = ANY ($1::oid[]) AND l.relkind <> 'p'
UNION ALL
SELECT r.oid, l.oid, l.relfilenode, l.xmin
FROM pg_catalog.pg_class r
CROSS JOIN LATERAL pg_catalog.pg_partition_tree(r.oid) t
JOIN pg_catalog.pg_class l ON l.oid = t.relid
WHERE r.oid = ANY ($1::oid[]) AND r.relkind = 'p' AND l.relkind <> 'p'
ORDER BY 1, 2
)sql";

constexpr const char* kColumns = R"sql(
SELECT a.attnum, CASE WHEN a.attisdropped THEN '' ELSE a.attname END, a.atttypid, a.atttypmod,
       CASE WHEN a.attisdropped THEN ''
            ELSE pg_catalog.format_type(a.atttypid, a.atttypmod) END,
       a.attnotnull,
       CASE WHEN a.atthasmissing THEN pg_catalog.quote_literal(
              pg_catalog.array_to_string(a.attmissingval::text::text[], '')) END,
       a.atthasmissing AND a.attmissingval::text = '{NULL}'
FROM pg_catalog.pg_attribute a
WHERE a.attrelid = $1::oid AND a.attnum > 0 AND (a.attgenerated = '' OR a.attgenerated = 's'
      AND pg_catalog.current_setting('server_version_num')::int >= 180000)
ORDER BY a.attnum
)sql";

std::set<int> Numbers(const std::string& list) {
  std::set<int> numbers;
  for (size_t from = 0; from < list.size();) {
    const auto to = std::min(list.find(',', from), list.size());
    numbers.insert(std::stoi(list.substr(from, to - from)));
    from = to + 1;
  }
  return numbers;
}

std::string Printed(const std::vector<TableState>& tables) {
  std::string list = "{";
  for (const auto& table : tables) {
    list += (list.size() > 1 ? "," : "") + std::to_string(table.oid);
  }
  return list + "}";
}

}  // namespace

namespace {

std::string FileLine(const TableFile& file) {
  return fmt::format("file {} {}", file.relation, file.file_node);
}

// Lines of a kept text by their first word and, where there are several, their second.
std::set<std::string> Lines(const std::string& text) {
  std::set<std::string> lines;
  for (size_t from = 0; from < text.size();) {
    const auto to = std::min(text.find('\n', from), text.size());
    lines.insert(text.substr(from, to - from));
    from = to + 1;
  }
  return lines;
}

}  // namespace

std::string TableState::Text() const {
  std::string text = fmt::format("table {}\nrules {}\nattributes {}\n", oid, rules, attributes);
  for (const auto& file : files) text += FileLine(file) + "\n";
  for (const auto& [label_oid, label] : labels) text += fmt::format("label {} {}\n", label_oid, label);
  return text;
}

StateChange CompareStates(const std::string& kept, const TableState& now,
                          const std::set<uint32_t>& truncating_xids) {
  const auto lines = Lines(kept);
  if (!lines.contains(fmt::format("table {}", now.oid)) ||
      !lines.contains("rules " + now.rules)) {
    return StateChange::kRows;
  }
  size_t files = 0;
  for (const auto& line : lines) {
    if (line.starts_with("file ")) ++files;
    if (!line.starts_with("label ")) continue;
    const auto end = line.find(' ', 6);
    const auto label = now.labels.find(
        static_cast<pg::Oid>(std::stoul(line.substr(6, end - 6))));
    if (label != now.labels.end() && label->second != line.substr(end + 1)) return StateChange::kRows;
  }
  if (files != now.files.size()) return StateChange::kRows;
  std::set<uint32_t> moved_by;
  size_t moved = 0;
  for (const auto& file : now.files) {
    if (lines.contains(FileLine(file))) continue;
    ++moved;
    moved_by.insert(file.xid);
  }
  if (moved == 0) return StateChange::kNone;
  const bool same_columns = lines.contains("attributes " + now.attributes);
  const bool partitioned = now.files.size() != 1 || now.files[0].relation != now.oid;
  if (!partitioned) return same_columns ? StateChange::kExplained : StateChange::kRows;
  // A subtransaction has a number of its own: then all leaves bear it.
  const bool told = std::ranges::includes(truncating_xids, moved_by) ||
                    (moved == now.files.size() && moved_by.size() == 1 && !truncating_xids.empty());
  return same_columns && told ? StateChange::kExplained : StateChange::kRows;
}

std::vector<TableState> LoadTableStates(pg::Connection& source, const std::string& publication) {
  std::string rules = kRules;
  if (source.server_version() >= kFirstVersionWithLists) rules += kRules15;
  const auto rows = source.Execute(fmt::format(kTables, fmt::arg("rules", rules)), {publication});
  std::vector<TableState> tables;
  for (int i = 0; i < rows.rows(); ++i) {
    const auto oid = static_cast<pg::Oid>(rows.int64(i, 0));
    if (tables.empty() || tables.back().oid != oid) {
      tables.push_back({.oid = oid,
                        .name = {rows.str(i, 1), rows.str(i, 2)},
                        .files = {},
                        .rules = rows.str(i, 3),
                        .attributes = rows.str(i, 6),
                        .labels = {},
                        .not_null = Numbers(rows.str(i, 7))});
      std::ranges::replace(tables.back().rules, '\n', ' ');
    }
    if (!rows.is_null(i, 4)) {
      tables.back().labels[static_cast<pg::Oid>(rows.int64(i, 4))] = rows.str(i, 5);
    }
  }
  const auto files = source.Execute(kFiles, {Printed(tables)});
  size_t at = 0;
  for (int i = 0; i < files.rows(); ++i) {
    const auto root = static_cast<pg::Oid>(files.int64(i, 0));
    while (at < tables.size() && tables[at].oid < root) ++at;
    if (at == tables.size()) break;
    tables[at].files.push_back({.relation = static_cast<pg::Oid>(files.int64(i, 1)),
                                .file_node = static_cast<uint32_t>(files.int64(i, 2)),
                                .xid = static_cast<uint32_t>(files.int64(i, 3))});
  }
  return tables;
}

TableColumns LoadTableColumns(pg::Connection& source, pg::Oid table) {
  const auto rows = source.Execute(kColumns, {std::to_string(table)});
  TableColumns columns;
  for (int i = 0; i < rows.rows(); ++i) {
    TableColumn column{.number = static_cast<int>(rows.int64(i, 0)),
                       .name = rows.str(i, 1),
                       .type = static_cast<pg::Oid>(rows.int64(i, 2)),
                       .modifier = static_cast<int>(rows.int64(i, 3)),
                       .type_sql = rows.str(i, 4),
                       .not_null = rows.boolean(i, 5)};
    if (!rows.is_null(i, 6) && !rows.boolean(i, 7)) columns.missing[column.number] = rows.str(i, 6);
    columns.columns.push_back(std::move(column));
  }
  return columns;
}

namespace {

// Names of the columns that `publication` sends of it; empty when it is not in it.
std::set<std::string> LoadPublishedColumns(pg::Connection& source, const std::string& publication,
                                           pg::Oid table) {
  const bool has_lists = source.server_version() >= kFirstVersionWithLists;
  const auto rows = source.Execute(
      fmt::format(R"sql(
SELECT a.attname
FROM pg_catalog.pg_publication_tables p
JOIN pg_catalog.pg_namespace n ON n.nspname = p.schemaname
JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = p.tablename
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE p.pubname = $1 AND c.oid = $2::oid AND {}
)sql",
                  has_lists ? "a.attname = ANY (p.attnames)" : "a.attgenerated = ''"),
      {publication, std::to_string(table)});
  std::set<std::string> names;
  for (int i = 0; i < rows.rows(); ++i) names.insert(rows.str(i, 0));
  return names;
}

// Columns: snapshot, which transactions last changed which columns.
constexpr const char* kMoment = R"sql(
SELECT pg_catalog.pg_current_snapshot(), (
         SELECT pg_catalog.string_agg(a.attnum || ':' || a.xmin, ',' ORDER BY a.attnum)
         FROM pg_catalog.pg_attribute a WHERE a.attrelid = $1::oid AND a.attnum > 0)
)sql";

}  // namespace

bool SeenColumns::Includes(uint32_t xid) const {
  constexpr uint64_t kEpoch = uint64_t{1} << 32;
  const auto first = snapshot.find(':'), second = snapshot.find(':', first + 1);
  const uint64_t oldest = std::stoull(snapshot);
  const uint64_t next = std::stoull(snapshot.substr(first + 1));
  uint64_t full = (next & ~(kEpoch - 1)) | xid;  // as near to the snapshot as can be
  if (full > next + kEpoch / 2 && full >= kEpoch) full -= kEpoch;
  if (full + kEpoch / 2 < next) full += kEpoch;
  if (full < oldest || full >= next) return full < oldest;
  for (size_t at = second; at != std::string::npos && at + 1 < snapshot.size();
       at = snapshot.find(',', at + 1)) {
    if (std::stoull(snapshot.substr(at + 1)) == full) return false;
  }
  return true;
}

std::optional<SeenColumns> SeeColumns(pg::Connection& source, const std::string& publication,
                                      pg::Oid table) {
  const std::string oid = std::to_string(table);
  const auto before = source.Execute(kMoment, {oid});
  SeenColumns seen{.snapshot = before.str(0, 0),
                   .columns = LoadTableColumns(source, table),
                   .published = LoadPublishedColumns(source, publication, table)};
  const auto after = source.Execute(kMoment, {oid});
  if (before.optional(0, 1) != after.optional(0, 1)) return std::nullopt;
  return seen;
}

}  // namespace tidemark::source
