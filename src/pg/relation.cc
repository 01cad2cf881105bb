#include "pg/relation.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

namespace tidemark::pg {

namespace {

std::string OidList(std::span<const Oid> oids) {
  return fmt::format("{{{}}}", fmt::join(oids, ","));
}

std::vector<std::string> Names(std::string_view lines) {
  std::vector<std::string> names;
  // Fields are separated by the unit separator, which PostgreSQL names may hold only on purpose.
  size_t from = 0;
  if (lines.empty()) return names;
  for (;;) {
    const auto to = lines.find('\x1f', from);
    names.emplace_back(lines.substr(from, to == std::string_view::npos ? to : to - from));
    if (to == std::string_view::npos) return names;
    from = to + 1;
  }
}

constexpr const char* kRelations = R"sql(
SELECT c.oid, n.nspname, c.relname, c.relkind, c.relpersistence, c.relreplident,
       pg_catalog.obj_description(c.oid, 'pg_class'),
       CASE WHEN c.relkind IN ('r', 'm', 't')
            THEN pg_catalog.pg_relation_size(c.oid)
                 / pg_catalog.current_setting('block_size')::bigint
            ELSE 0 END,
       c.reltuples::bigint, c.relfilenode
FROM pg_catalog.unnest($1::oid[]) WITH ORDINALITY AS wanted(oid, ord)
JOIN pg_catalog.pg_class c ON c.oid = wanted.oid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
ORDER BY wanted.ord
)sql";

constexpr const char* kColumns = R"sql(
SELECT a.attrelid, a.attnum, a.attname, a.atttypid, a.atttypmod,
       pg_catalog.format_type(a.atttypid, a.atttypmod),
       CASE WHEN a.attcollation <> 0 AND a.attcollation <> t.typcollation
            THEN pg_catalog.quote_ident(cn.nspname) || '.' || pg_catalog.quote_ident(co.collname)
            ELSE '' END,
       a.attnotnull, a.attgenerated <> '', pg_catalog.col_description(a.attrelid, a.attnum)
FROM pg_catalog.pg_attribute a
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_catalog.pg_collation co ON co.oid = a.attcollation
LEFT JOIN pg_catalog.pg_namespace cn ON cn.oid = co.collnamespace
WHERE a.attrelid = ANY ($1::oid[]) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attrelid, a.attnum
)sql";

constexpr const char* kIndexes = R"sql(
SELECT i.indrelid, c.relname,
       (SELECT coalesce(pg_catalog.string_agg(coalesce(a.attname, ''), E'\x1f' ORDER BY k.ord), '')
        FROM pg_catalog.unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, ord)
        LEFT JOIN pg_catalog.pg_attribute a
               ON a.attrelid = i.indrelid AND a.attnum = k.attnum AND k.attnum > 0
        WHERE k.ord <= i.indnkeyatts),
       i.indisunique, i.indisprimary, i.indimmediate, i.indpred IS NOT NULL, i.indisvalid,
       i.indisreplident, coalesce(o.conname, ''), pg_catalog.pg_get_indexdef(i.indexrelid)
FROM pg_catalog.pg_index i
JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
LEFT JOIN pg_catalog.pg_constraint o
       ON o.conindid = i.indexrelid AND o.conrelid = i.indrelid AND o.contype IN ('p', 'u', 'x')
WHERE i.indrelid = ANY ($1::oid[]) AND i.indislive
ORDER BY i.indrelid, i.indisprimary DESC, c.relname
)sql";

constexpr const char* kForeignKeys = R"sql(
SELECT o.conrelid, o.conname, n.nspname, c.relname, pg_catalog.pg_get_constraintdef(o.oid)
FROM pg_catalog.pg_constraint o
JOIN pg_catalog.pg_class c ON c.oid = o.confrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE o.conrelid = ANY ($1::oid[]) AND o.contype = 'f' AND o.conparentid = 0
ORDER BY o.conrelid, o.conname
)sql";

}  // namespace

const Index* Relation::PrimaryKey() const {
  for (const auto& index : indexes) {
    if (index.primary) return &index;
  }
  return nullptr;
}

std::vector<std::string> Relation::KeyColumns() const {
  if (identity == ReplicaIdentity::kNothing) return {};
  if (identity == ReplicaIdentity::kIndex) {
    for (const auto& index : indexes) {
      if (index.replica_identity && index.valid) return index.columns;
    }
    return {};
  }
  const Index* key = PrimaryKey();
  if (key == nullptr) return {};
  // A deferrable key is no identity under DEFAULT; under FULL its values may repeat meanwhile.
  if (!key->immediate) return {};
  for (const auto& key_column : key->columns) {
    const Column* column = Find(key_column);
    if (column == nullptr || column->generated) return {};
  }
  return key->columns;
}

bool Relation::CanPublishUpdates() const {
  return identity == ReplicaIdentity::kFull || !KeyColumns().empty();
}

const Column* Relation::Find(std::string_view column) const {
  for (const auto& c : columns) {
    if (c.name == column) return &c;
  }
  return nullptr;
}

std::vector<Relation> LoadRelations(Connection& connection, std::span<const Oid> oids) {
  const std::string wanted = OidList(oids);
  std::vector<Relation> relations;
  std::map<Oid, size_t> place;
  // format_type() leaves out the schemas of the search path: with none, every name is qualified.
  const auto rows = connection.Execute(kRelations, {wanted});
  for (int i = 0; i < rows.rows(); ++i) {
    Relation r;
    r.oid = static_cast<Oid>(rows.int64(i, 0));
    r.name = {rows.str(i, 1), rows.str(i, 2)};
    r.kind = rows.text(i, 3).at(0);
    r.persistence = rows.text(i, 4).at(0);
    r.identity = static_cast<ReplicaIdentity>(rows.text(i, 5).at(0));
    r.comment = rows.optional(i, 6);
    r.pages = rows.int64(i, 7);
    r.tuples = rows.int64(i, 8);
    r.file_node = static_cast<uint64_t>(rows.int64(i, 9));
    place[r.oid] = relations.size();
    relations.push_back(std::move(r));
  }
  const auto columns = connection.Execute(kColumns, {wanted});
  for (int i = 0; i < columns.rows(); ++i) {
    Column c;
    c.number = static_cast<int>(columns.int64(i, 1));
    c.name = columns.str(i, 2);
    c.type = static_cast<Oid>(columns.int64(i, 3));
    c.modifier = static_cast<int>(columns.int64(i, 4));
    c.type_sql = columns.str(i, 5);
    c.collation = columns.str(i, 6);
    c.not_null = columns.boolean(i, 7);
    c.generated = columns.boolean(i, 8);
    c.comment = columns.optional(i, 9);
    relations[place.at(static_cast<Oid>(columns.int64(i, 0)))].columns.push_back(std::move(c));
  }
  const auto indexes = connection.Execute(kIndexes, {wanted});
  for (int i = 0; i < indexes.rows(); ++i) {
    Index x;
    x.name = indexes.str(i, 1);
    x.columns = Names(indexes.text(i, 2));
    x.unique = indexes.boolean(i, 3);
    x.primary = indexes.boolean(i, 4);
    x.immediate = indexes.boolean(i, 5);
    x.partial = indexes.boolean(i, 6);
    x.valid = indexes.boolean(i, 7);
    x.replica_identity = indexes.boolean(i, 8);
    x.constraint = indexes.str(i, 9);
    x.definition = indexes.str(i, 10);
    relations[place.at(static_cast<Oid>(indexes.int64(i, 0)))].indexes.push_back(std::move(x));
  }
  const auto keys = connection.Execute(kForeignKeys, {wanted});
  for (int i = 0; i < keys.rows(); ++i) {
    relations[place.at(static_cast<Oid>(keys.int64(i, 0)))].foreign_keys.push_back(
        {keys.str(i, 1), {keys.str(i, 2), keys.str(i, 3)}, keys.str(i, 4)});
  }
  return relations;
}

namespace {

constexpr const char* kTypes = R"sql(
SELECT t.oid, n.nspname, t.typname, t.typtype,
       CASE WHEN t.typsubscript = 'pg_catalog.array_subscript_handler'::regproc
            THEN t.typelem ELSE 0 END,
       t.typarray, t.typbasetype,
       t.typsend <> 0 AND t.typreceive <> 0,
       coalesce((SELECT e.extname FROM pg_catalog.pg_depend d
                 JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid
                 WHERE d.classid = 'pg_catalog.pg_type'::regclass AND d.objid = t.oid
                   AND d.refclassid = 'pg_catalog.pg_extension'::regclass AND d.deptype = 'e'), ''),
       CASE WHEN t.typtype = 'd' THEN
            pg_catalog.format_type(t.typbasetype, t.typtypmod)
            || CASE WHEN t.typcollation <> 0 AND t.typcollation <> bt.typcollation
                    THEN (SELECT ' COLLATE ' || pg_catalog.quote_ident(cn.nspname) || '.'
                                 || pg_catalog.quote_ident(c.collname)
                          FROM pg_catalog.pg_collation c
                          JOIN pg_catalog.pg_namespace cn ON cn.oid = c.collnamespace
                          WHERE c.oid = t.typcollation) ELSE '' END
            ELSE '' END,
       coalesce(r.rngsubtype, m.rngsubtype, 0), coalesce(m.rngtypid, 0),
       CASE WHEN r.rngtypid IS NOT NULL THEN
            'SUBTYPE = ' || pg_catalog.format_type(r.rngsubtype, NULL)
            || (SELECT ', SUBTYPE_OPCLASS = ' || pg_catalog.quote_ident(ocn.nspname) || '.'
                       || pg_catalog.quote_ident(oc.opcname)
                FROM pg_catalog.pg_opclass oc
                JOIN pg_catalog.pg_namespace ocn ON ocn.oid = oc.opcnamespace
                WHERE oc.oid = r.rngsubopc)
            || CASE WHEN r.rngcollation <> 0 THEN
                    (SELECT ', COLLATION = ' || pg_catalog.quote_ident(cn.nspname) || '.'
                            || pg_catalog.quote_ident(c.collname)
                     FROM pg_catalog.pg_collation c
                     JOIN pg_catalog.pg_namespace cn ON cn.oid = c.collnamespace
                     WHERE c.oid = r.rngcollation) ELSE '' END
            ELSE '' END,
       coalesce((SELECT mt.typname FROM pg_catalog.pg_type mt WHERE mt.oid = r.rngmultitypid), ''),
       CASE WHEN t.typtype = 'c' THEN t.typrelid ELSE 0 END
FROM pg_catalog.pg_type t
JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
LEFT JOIN pg_catalog.pg_type bt ON bt.oid = t.typbasetype
LEFT JOIN pg_catalog.pg_range r ON r.rngtypid = t.oid
LEFT JOIN pg_catalog.pg_range m ON m.rngmultitypid = t.oid
WHERE t.oid = ANY ($1::oid[])
)sql";

constexpr const char* kLabels = R"sql(
SELECT enumlabel FROM pg_catalog.pg_enum WHERE enumtypid = $1::oid ORDER BY enumsortorder
)sql";

constexpr const char* kAttributes = R"sql(
SELECT a.attname, a.atttypid, pg_catalog.format_type(a.atttypid, a.atttypmod),
       CASE WHEN a.attcollation <> 0 AND a.attcollation <> t.typcollation
            THEN pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.collname)
            ELSE '' END
FROM pg_catalog.pg_attribute a
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_catalog.pg_collation c ON c.oid = a.attcollation
LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.collnamespace
WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
)sql";

struct Loaded {
  Type type;
  std::vector<Oid> needs;
};

}  // namespace

std::vector<Type> LoadTypes(Connection& connection, std::span<const Oid> oids) {
  std::map<Oid, Loaded> known;
  std::vector<Oid> wanted(oids.begin(), oids.end());
  while (!wanted.empty()) {
    const auto rows = connection.Execute(kTypes, {OidList(wanted)});
    std::vector<Oid> next;
    for (int i = 0; i < rows.rows(); ++i) {
      Loaded loaded;
      Type& t = loaded.type;
      t.oid = static_cast<Oid>(rows.int64(i, 0));
      t.name = {rows.str(i, 1), rows.str(i, 2)};
      t.type = rows.text(i, 3).at(0);
      t.element = static_cast<Oid>(rows.int64(i, 4));
      t.array = static_cast<Oid>(rows.int64(i, 5));
      t.base = static_cast<Oid>(rows.int64(i, 6));
      t.binary = rows.boolean(i, 7);
      t.extension = rows.str(i, 8);
      t.domain_definition = rows.str(i, 9);
      t.range_subtype = static_cast<Oid>(rows.int64(i, 10));
      t.range = static_cast<Oid>(rows.int64(i, 11));
      t.range_options = rows.str(i, 12);
      t.multirange_name = rows.str(i, 13);
      for (Oid need : {t.element, t.base, t.range_subtype, t.range}) {
        if (need != 0) loaded.needs.push_back(need);
      }
      if (t.type == 'e') {
        const auto labels = connection.Execute(kLabels, {std::to_string(t.oid)});
        for (int j = 0; j < labels.rows(); ++j) t.labels.push_back(labels.str(j, 0));
      }
      if (t.type == 'c') {
        const auto attributes = connection.Execute(kAttributes, {rows.str(i, 14)});
        for (int j = 0; j < attributes.rows(); ++j) {
          t.attributes.push_back({attributes.str(j, 0),
                                  static_cast<Oid>(attributes.int64(j, 1)),
                                  attributes.str(j, 2), attributes.str(j, 3)});
          loaded.needs.push_back(t.attributes.back().type);
        }
      }
      for (Oid need : loaded.needs) {
        if (!known.contains(need) && std::find(next.begin(), next.end(), need) == next.end()) {
          next.push_back(need);
        }
      }
      known.emplace(t.oid, std::move(loaded));
    }
    std::erase_if(next, [&](Oid oid) { return known.contains(oid); });
    wanted = std::move(next);
  }

  std::vector<Type> ordered;
  std::map<Oid, bool> placed;
  const std::function<void(Oid)> place = [&](Oid oid) {
    const auto found = known.find(oid);
    if (found == known.end() || placed[oid]) return;
    placed[oid] = true;
    for (Oid need : found->second.needs) place(need);
    ordered.push_back(found->second.type);
  };
  for (const auto& [oid, loaded] : known) place(oid);
  return ordered;
}

}  // namespace tidemark::pg
