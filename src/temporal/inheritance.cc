#include "temporal/inheritance.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "temporal/reading.h"

namespace tidemark::temporal {

using base::Error;
using base::QuoteIdentifier;

namespace {

// Columns: child, parent, and both tables as they are called. Open links of the journal $1 (of the
// dataset $2, unless it is 0) that the tables do not have.
constexpr const char* kOff = R"sql(
SELECT i.child, i.parent, c.relid::regclass, p.relid::regclass
FROM tidemark.inheritance i
JOIN tidemark.dataset c ON c.id = i.child
JOIN tidemark.dataset p ON p.id = i.parent
WHERE c.journal = $1 AND i.tx_to IS NULL AND ($2 = 0 OR $2 IN (i.child, i.parent))
  AND NOT EXISTS (SELECT FROM pg_catalog.pg_inherits h
                  WHERE h.inhrelid = c.relid AND h.inhparent = p.relid)
ORDER BY i.parent, i.child
)sql";

// Columns: child and parent as they are called. The links that the dataset's table has.
constexpr const char* kOn = R"sql(
SELECT c.relid::regclass, p.relid::regclass
FROM pg_catalog.pg_inherits h
JOIN tidemark.dataset c ON c.relid = h.inhrelid
JOIN tidemark.dataset p ON p.relid = h.inhparent
WHERE $1 IN (c.id, p.id)
ORDER BY p.id, c.id
)sql";

// Everything that open links connect with a dataset.
constexpr const char* kFamily = R"sql(
WITH RECURSIVE link AS (
  SELECT i.child, i.parent FROM tidemark.inheritance i WHERE i.tx_to IS NULL
), family AS (
  SELECT $1::integer AS id
  UNION
  SELECT CASE WHEN l.child = f.id THEN l.parent ELSE l.child END
  FROM family f JOIN link l ON f.id IN (l.child, l.parent)
)
SELECT f.id FROM family f
)sql";

// The tables of datasets in the order in which a reader of a parent locks them: heirs after all
// that they inherit from, and else by OID.
constexpr const char* kInOrder = R"sql(
WITH RECURSIVE up AS (
  SELECT w.id, w.id AS at, 0 AS depth FROM pg_catalog.unnest($1::integer[]) AS w(id)
  UNION
  SELECT u.id, i.parent, u.depth + 1
  FROM up u JOIN tidemark.inheritance i ON i.child = u.at AND i.tx_to IS NULL
)
SELECT d.relid::regclass
FROM up u JOIN tidemark.dataset d ON d.id = u.id
GROUP BY d.relid ORDER BY max(u.depth), d.relid
)sql";

// Columns that the parent refuses NULLs in, and the child does not.
constexpr const char* kLooser = R"sql(
SELECT p.attname
FROM pg_catalog.pg_attribute p
JOIN pg_catalog.pg_attribute c ON c.attrelid = $2::regclass AND c.attname = p.attname
WHERE p.attrelid = $1::regclass AND p.attnum > 0 AND NOT p.attisdropped AND p.attnotnull
  AND NOT c.attnotnull
)sql";

void PutOn(pg::Connection& store, const std::string& child, const std::string& parent) {
  // The source lets a child take NULLs that the parent itself refuses. Of the parent's own rows
  // none is lost by it.
  const auto looser = store.Execute(kLooser, {parent, child});
  for (int i = 0; i < looser.rows(); ++i) {
    store.Execute(fmt::format("ALTER TABLE {} ALTER COLUMN {} DROP NOT NULL", parent,
                              QuoteIdentifier(looser.str(i, 0))));
  }
  store.Execute(fmt::format("ALTER TABLE {} INHERIT {}", child, parent));
}

// Empty once it is on; else why it is not.
std::string TryPutOn(pg::Connection& store, const std::string& child, const std::string& parent) {
  store.Execute("SAVEPOINT tidemark_link");
  try {
    PutOn(store, child, parent);
    store.Execute("RELEASE SAVEPOINT tidemark_link");
    return "";
  } catch (const Error& error) {
    if (error.IsTransient() || !store.IsOpen()) throw;
    store.Execute("ROLLBACK TO SAVEPOINT tidemark_link; RELEASE SAVEPOINT tidemark_link");
    return error.message();
  }
}

std::vector<pg::Parameter> Both(const InheritanceLink& link) {
  return {std::to_string(link.child), std::to_string(link.parent)};
}

void EndLink(pg::Connection& store, const InheritanceLink& link, const std::string& tx) {
  auto values = Both(link);
  values.emplace_back(tx);
  const auto on = store.Execute(
      R"sql(
SELECT c.relid::regclass, p.relid::regclass
FROM pg_catalog.pg_inherits h
JOIN tidemark.dataset c ON c.relid = h.inhrelid
JOIN tidemark.dataset p ON p.relid = h.inhparent
WHERE c.id = $1 AND p.id = $2
)sql",
      Both(link));
  if (on.rows() == 1) {
    store.Execute(fmt::format("ALTER TABLE {} NO INHERIT {}", on.text(0, 0), on.text(0, 1)));
  }
  store.Execute(
      "DELETE FROM tidemark.inheritance WHERE child = $1 AND parent = $2 AND tx_from = $3::bigint",
      values);
  store.Execute(
      "UPDATE tidemark.inheritance SET tx_to = $3 WHERE child = $1 AND parent = $2 "
      "AND tx_to IS NULL",
      values);
}

// One that ended at this tx goes on.
void BeginLink(pg::Connection& store, const InheritanceLink& link, const std::string& tx) {
  auto values = Both(link);
  values.emplace_back(tx);
  const auto resumed = store.Execute(
      "UPDATE tidemark.inheritance SET tx_to = NULL WHERE child = $1 AND parent = $2 "
      "AND tx_to = $3::bigint",
      values);
  if (resumed.affected() > 0) return;
  store.Execute("INSERT INTO tidemark.inheritance (child, parent, tx_from) VALUES ($1, $2, $3)",
                values);
}

void LockInOrder(pg::Connection& store, const std::set<int>& datasets) {
  if (datasets.empty()) return;
  const auto ordered =
      store.Execute(kInOrder, {fmt::format("{{{}}}", fmt::join(datasets, ","))});
  std::string tables;
  for (int i = 0; i < ordered.rows(); ++i) {
    tables += (i == 0 ? "ONLY " : ", ONLY ") + ordered.str(i, 0);
  }
  store.Execute(fmt::format("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE", tables));
}

}  // namespace

std::vector<InheritanceLink> LoadLinks(pg::Connection& store, int journal) {
  const auto rows = store.Execute(
      "SELECT i.child, i.parent FROM tidemark.inheritance i JOIN tidemark.dataset c "
      "ON c.id = i.child WHERE c.journal = $1 AND i.tx_to IS NULL ORDER BY i.child, i.parent",
      {std::to_string(journal)});
  std::vector<InheritanceLink> links;
  for (int i = 0; i < rows.rows(); ++i) {
    links.push_back({static_cast<int>(rows.int64(i, 0)), static_cast<int>(rows.int64(i, 1))});
  }
  return links;
}

std::vector<MisfitLink> ChangeLinks(pg::Connection& store, int journal,
                                    const std::vector<InheritanceLink>& ended,
                                    const std::vector<InheritanceLink>& begun, int64_t tx) {
  const auto at = std::to_string(tx);
  std::set<int> children, parents;
  for (const auto* links : {&ended, &begun}) {
    for (const auto& link : *links) {
      children.insert(link.child);
      parents.insert(link.parent);
    }
  }
  for (const auto& link : begun) BeginLink(store, link, at);
  LockInOrder(store, children);
  for (const auto& link : ended) EndLink(store, link, at);
  std::vector<MisfitLink> misfits;
  if (!begun.empty()) misfits = PutOnLinks(store, journal);
  std::erase_if(misfits, [&](const MisfitLink& misfit) {
    return std::ranges::find(begun, misfit.link) == begun.end();
  });
  for (const auto& misfit : misfits) EndLink(store, misfit.link, at);
  DefineReadingOfParents(store, journal, parents);
  return misfits;
}

bool TakeOffLinks(pg::Connection& store, int dataset) {
  const auto on = store.Execute(kOn, {std::to_string(dataset)});
  if (on.rows() == 0) return false;
  const auto family = store.Execute(kFamily, {std::to_string(dataset)});
  std::set<int> datasets;
  for (int i = 0; i < family.rows(); ++i) datasets.insert(static_cast<int>(family.int64(i, 0)));
  LockInOrder(store, datasets);
  for (int i = 0; i < on.rows(); ++i) {
    store.Execute(fmt::format("ALTER TABLE {} NO INHERIT {}", on.text(i, 0), on.text(i, 1)));
  }
  return true;
}

std::vector<MisfitLink> PutOnLinks(pg::Connection& store, int journal, int dataset) {
  const auto off = store.Execute(kOff, {std::to_string(journal), std::to_string(dataset)});
  std::vector<MisfitLink> misfits;
  for (int i = 0; i < off.rows(); ++i) {
    auto reason = TryPutOn(store, off.str(i, 2), off.str(i, 3));
    if (reason.empty()) continue;
    misfits.push_back(
        {{static_cast<int>(off.int64(i, 0)), static_cast<int>(off.int64(i, 1))}, std::move(reason)});
  }
  return misfits;
}

bool AnyLinkOff(pg::Connection& store, int journal) {
  return store.Execute(kOff, {std::to_string(journal), "0"}).rows() > 0;
}

std::vector<std::string> RefusedByHeirs(pg::Connection& store, const Dataset& dataset,
                                        const std::vector<std::string>& columns) {
  const auto loose = store.Execute(
      R"sql(
WITH RECURSIVE heir AS (
  SELECT h.inhrelid FROM pg_catalog.pg_inherits h WHERE h.inhparent = $1::regclass
  UNION
  SELECT h.inhrelid FROM heir r JOIN pg_catalog.pg_inherits h ON h.inhparent = r.inhrelid
)
SELECT DISTINCT a.attname
FROM tidemark.dataset d
JOIN heir r ON r.inhrelid = d.relid
JOIN pg_catalog.pg_attribute a ON a.attrelid = d.relid
WHERE a.attnum > 0 AND NOT a.attisdropped AND NOT a.attnotnull
)sql",
      {dataset.name.Quoted()});
  std::set<std::string> taken;
  for (int i = 0; i < loose.rows(); ++i) taken.insert(loose.str(i, 0));
  std::vector<std::string> refused;
  for (const auto& name : columns) {
    if (!taken.contains(name)) refused.push_back(name);
  }
  return refused;
}

}  // namespace tidemark::temporal
