#include "source/postgres/preflight_publication.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/identifier.h"

namespace tidemark::source {

namespace {

constexpr int kFirstVersionWithLists = 150000;
constexpr int kFirstVersionWithGenerated = 180000;

constexpr const char* kPublication = R"sql(
SELECT puballtables, pubviaroot, pubinsert, pubupdate, pubdelete, pubtruncate
FROM pg_catalog.pg_publication
WHERE pubname = $1
)sql";

}  // namespace

PublicationFacts LoadPublication(pg::Connection& source, const std::string& name) {
  PublicationFacts facts;
  const auto row = source.Execute(kPublication, {name});
  if (row.rows() == 0) return facts;
  facts.exists = true;
  facts.all_tables = row.boolean(0, 0);
  facts.via_root = row.boolean(0, 1);
  facts.inserts = row.boolean(0, 2);
  facts.updates = row.boolean(0, 3);
  facts.deletes = row.boolean(0, 4);
  facts.truncates = row.boolean(0, 5);
  return facts;
}

namespace {

constexpr const char* kMayCreate = R"sql(
SELECT pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE')
)sql";

void CheckMissing(pg::Connection& source, const PreflightOptions& options,
                  PreflightReport& report) {
  const std::string missing = fmt::format("publication \"{}\" does not exist", options.publication);
  const std::string name = base::QuoteIdentifier(options.publication);
  if (!options.may_create_publication) {
    report.problems.push_back(
        {Severity::kRefusesAll, "", missing,
         fmt::format("CREATE PUBLICATION {} FOR TABLE … WITH (publish_via_partition_root = true)",
                     name),
         base::kUndefinedObject});
  } else if (report.server.in_recovery) {
    report.problems.push_back(
        {Severity::kRefusesAll, "", missing + " and cannot be created on a standby",
         fmt::format("CREATE PUBLICATION {} … on the primary", name), base::kReadOnlyTransaction});
  } else if (source.Value(kMayCreate) != "t") {
    report.problems.push_back(
        {Severity::kRefusesAll, "", missing + " and this role may not create one",
         fmt::format("GRANT CREATE ON DATABASE {} TO the role, or create the publication yourself",
                     base::QuoteIdentifier(report.server.database)),
         base::kInsufficientPrivilege});
  }
}

constexpr const char* kPublishesPartitions = R"sql(
SELECT EXISTS (SELECT
               FROM pg_catalog.pg_publication_tables p
               JOIN pg_catalog.pg_namespace n ON n.nspname = p.schemaname
               JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = p.tablename
               WHERE p.pubname = $1 AND c.relispartition)
)sql";

void NoteFlags(pg::Connection& source, const PreflightOptions& options, PreflightReport& report) {
  const PublicationFacts& facts = report.publication;
  const std::string name = base::QuoteIdentifier(options.publication);
  const auto note = [&](std::string what, std::string fix) {
    report.problems.push_back(
        {Severity::kNote, "", std::move(what), std::move(fix), base::kNotInPrerequisiteState});
  };
  const std::pair<bool, const char*> kinds[] = {{facts.inserts, "INSERT"},
                                                {facts.updates, "UPDATE"},
                                                {facts.deletes, "DELETE"},
                                                {facts.truncates, "TRUNCATE"}};
  for (const auto& [published, kind] : kinds) {
    if (published) continue;
    note(fmt::format("publication \"{}\" does not publish {}: the mirror will not follow it",
                     options.publication, kind),
         fmt::format("ALTER PUBLICATION {} SET (publish = 'insert, update, delete, truncate')",
                     name));
  }
  if (!facts.via_root && source.Value(kPublishesPartitions, {options.publication}) == "t") {
    note("partitions are mirrored one by one, their partitioned tables are not",
         fmt::format("ALTER PUBLICATION {} SET (publish_via_partition_root = true)", name));
  }
}

}  // namespace

void CheckPublication(pg::Connection& source, const PreflightOptions& options,
                      PreflightReport& report) {
  if (report.publication.exists) {
    NoteFlags(source, options, report);
  } else {
    CheckMissing(source, options, report);
  }
}

// ---- candidates

namespace {

// Columns: oid, published column or NULL for all, row filter. Rows of a table stand together. A
// table that belongs to an extension is the store's own, too, once the extension is there.
constexpr const char* kPublished15 = R"sql(
SELECT c.oid, a.attname, p.rowfilter
FROM pg_catalog.pg_publication_tables p
JOIN pg_catalog.pg_namespace n ON n.nspname = p.schemaname
JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = p.tablename
LEFT JOIN LATERAL pg_catalog.unnest(p.attnames) AS a(attname) ON true
WHERE p.pubname = $1
  AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
                  WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = c.oid
                    AND d.deptype = 'e')
ORDER BY n.nspname, c.relname
)sql";

constexpr const char* kPublished14 = R"sql(
SELECT c.oid, NULL, NULL
FROM pg_catalog.pg_publication_tables p
JOIN pg_catalog.pg_namespace n ON n.nspname = p.schemaname
JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = p.tablename
WHERE p.pubname = $1
  AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
                  WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = c.oid
                    AND d.deptype = 'e')
ORDER BY n.nspname, c.relname
)sql";

constexpr const char* kAllUserTables = R"sql(
SELECT c.oid, NULL, NULL
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence = 'p'
  AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
  AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
                  WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = c.oid
                    AND d.deptype = 'e')
ORDER BY n.nspname, c.relname
)sql";

pg::Result PublishedRows(pg::Connection& source, const PreflightOptions& options,
                         const PreflightReport& report) {
  if (!report.publication.exists) return source.Execute(kAllUserTables);
  const bool has_lists = report.server.version_number >= kFirstVersionWithLists;
  return source.Execute(has_lists ? kPublished15 : kPublished14, {options.publication});
}

// One element per table, in the order of the rows.
struct Membership {
  pg::Oid table = 0;
  std::vector<std::string> listed;  // empty: all columns
  std::optional<std::string> row_filter;
};

std::vector<Membership> ReadMemberships(const pg::Result& rows) {
  std::vector<Membership> members;
  for (int i = 0; i < rows.rows(); ++i) {
    const auto oid = static_cast<pg::Oid>(rows.int64(i, 0));
    if (members.empty() || members.back().table != oid) {
      members.push_back({oid, {}, rows.optional(i, 2)});
    }
    if (!rows.is_null(i, 1)) members.back().listed.push_back(rows.str(i, 1));
  }
  return members;
}

// From 18 on a publication may carry stored generated columns; then they are among those listed.
std::vector<std::string> CarriedColumns(const pg::Relation& relation,
                                        const std::vector<std::string>& listed,
                                        bool may_carry_generated) {
  std::vector<std::string> columns;
  for (const auto& column : relation.columns) {
    const bool is_listed = std::find(listed.begin(), listed.end(), column.name) != listed.end();
    if (column.generated ? is_listed && may_carry_generated : is_listed || listed.empty()) {
      columns.push_back(column.name);
    }
  }
  return columns;
}

}  // namespace

std::vector<PublishedTable> LoadCandidates(pg::Connection& source, const PreflightOptions& options,
                                           const PreflightReport& report) {
  if (!report.publication.exists && !options.may_create_publication) return {};
  auto members = ReadMemberships(PublishedRows(source, options, report));
  std::vector<pg::Oid> oids;
  std::map<pg::Oid, Membership*> by_table;
  for (auto& member : members) {
    oids.push_back(member.table);
    by_table[member.table] = &member;
  }
  std::vector<PublishedTable> tables;
  for (auto& relation : pg::LoadRelations(source, oids)) {
    Membership& member = *by_table.at(relation.oid);
    PublishedTable table;
    table.columns =
        CarriedColumns(relation, member.listed,
                       report.server.version_number >= kFirstVersionWithGenerated);
    table.relation = std::move(relation);
    table.row_filter = std::move(member.row_filter);
    tables.push_back(std::move(table));
  }
  return tables;
}

// ---- what no publication carries

namespace {

constexpr const char* kUnmirrored = R"sql(
SELECT CASE WHEN c.relpersistence = 't' THEN 't' WHEN c.relkind IN ('r', 'p') THEN 'u'
            ELSE c.relkind END AS why,
       n.nspname, c.relname
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE (c.relkind IN ('f', 'v', 'm', 'S') OR c.relkind IN ('r', 'p') AND c.relpersistence <> 'p')
  AND NOT c.relispartition
  AND (n.nspname !~ '^pg_' OR c.relpersistence = 't') AND n.nspname <> 'information_schema'
  AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
                  WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = c.oid
                    AND d.deptype = 'e')
UNION ALL
SELECT 'e', n.nspname, c.relname
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = c.oid
                           AND d.deptype = 'e'
WHERE c.relkind IN ('r', 'p')
ORDER BY 2, 3
)sql";

std::string SomeNames(const std::vector<std::string>& names) {
  constexpr size_t kShown = 5;
  const std::vector<std::string> shown(
      names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, names.size())));
  std::string text = fmt::format("{}", fmt::join(shown, ", "));
  if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
  return text;
}

}  // namespace

void ListUnmirrored(pg::Connection& source, const PreflightOptions&, PreflightReport& report) {
  std::map<char, std::vector<std::string>> names;
  const auto rows = source.Execute(kUnmirrored);
  for (int i = 0; i < rows.rows(); ++i) {
    names[rows.text(i, 0).at(0)].push_back(
        base::QualifiedName{rows.str(i, 1), rows.str(i, 2)}.Display());
  }
  // Whoever asked for all tables asked for these too; a publication of named tables did not.
  const bool asked = !report.publication.exists || report.publication.all_tables;
  const auto severity = asked ? Severity::kRefusesTable : Severity::kNote;
  for (const auto& name : names['u']) {
    report.problems.push_back({severity, name, "unlogged table: the stream does not carry it",
                               fmt::format("ALTER TABLE {} SET LOGGED", name),
                               base::kWrongObjectType});
  }
  for (const auto& name : names['f']) {
    report.problems.push_back({severity, name, "foreign table: the stream does not carry it",
                               "declare it as a dataset with strategy snapshot",
                               base::kWrongObjectType});
  }
  const std::pair<char, const char*> others[] = {{'t', "temporary relations"},
                                                 {'e', "tables that belong to extensions"},
                                                 {'v', "views"},
                                                 {'m', "materialized views"},
                                                 {'S', "sequences"}};
  for (const auto& [kind, words] : others) {
    if (names[kind].empty()) continue;
    report.problems.push_back(
        {Severity::kNote, "", fmt::format("{} are not mirrored: {}", words, SomeNames(names[kind])),
         "", base::kWrongObjectType});
  }
}

}  // namespace tidemark::source
