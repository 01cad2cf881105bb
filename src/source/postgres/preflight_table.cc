#include "source/postgres/preflight_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/identifier.h"
#include "source/postgres/inheritance.h"
#include "source/postgres/preflight_access.h"
#include "source/postgres/preflight_identity.h"
#include "source/postgres/preflight_type.h"
#include "source/postgres/raw_text.h"

namespace tidemark::source {

using base::SqlState;

namespace {

// History rows carry two columns more than the table, of at most 1,600.
constexpr size_t kColumnsMax = 1598;
// S_history must fit into a name of 63 bytes.
constexpr size_t kSchemaBytesMax = 63 - std::string_view("_history").size();
constexpr SqlState kTooManyColumns{"54011"};
constexpr SqlState kNameTooLong{"42622"};
constexpr SqlState kReservedName{"42939"};
constexpr SqlState kDuplicateColumn{"42701"};

// Beside the table's own columns, its relations in the store hold these.
bool IsReserved(const std::string& column) {
  return column == "_from" || column == "_to" || column == "_hash";
}

// What holds for all tables of one preflight.
struct Circumstances {
  const PublicationFacts& publication;
  const TypeFaults& type_faults;
  bool unknown_as_text;
  std::set<std::string> schemas;             // of all candidates
  std::set<std::string> missing_collations;  // in the store
};

// One table's trial: each check may refuse it or add a note.
class Judgement {
 public:
  Judgement(PublishedTable& table, const TableAccess& access, const Circumstances& circumstances)
      : table_(table),
        relation_(table.relation),
        access_(access),
        all_(circumstances),
        name_(Readable(relation_.name.Display())) {}

  std::vector<Problem> Run() {
    if (!HasReadableNames(relation_)) {
      Refuse("its name or a column's is not UTF-8, but the source's encoding is SQL_ASCII",
             "rename it", base::kCharacterNotInRepertoire);
      return std::move(problems_);
    }
    CheckName();
    CheckAccess();
    CheckColumns();
    CheckTypes();
    CheckLeaves();
    CheckIdentity();
    return std::move(problems_);
  }

 private:
  void Refuse(std::string what, std::string fix, SqlState state) {
    problems_.push_back({Severity::kRefusesTable, name_, std::move(what), std::move(fix), state});
  }
  void Note(std::string what, std::string fix, SqlState state) {
    problems_.push_back({Severity::kNote, name_, std::move(what), std::move(fix), state});
  }

  void CheckName() {
    const std::string& schema = relation_.name.schema;
    if (schema == "tidemark" || schema.starts_with("tidemark_")) {
      Refuse(fmt::format("schema name {} is Tidemark's own in the store", schema),
             "rename the schema", kReservedName);
    }
    constexpr std::string_view kSuffix = "_history";
    if (schema.ends_with(kSuffix) &&
        all_.schemas.contains(schema.substr(0, schema.size() - kSuffix.size()))) {
      Refuse(fmt::format("schema name {} is taken in the store by the history of {}", schema,
                         schema.substr(0, schema.size() - kSuffix.size())),
             "rename the schema", kReservedName);
    }
    if (schema.size() > kSchemaBytesMax) {
      Refuse(fmt::format("schema name is longer than {} bytes", kSchemaBytesMax),
             "shorten the schema's name", kNameTooLong);
    }
  }

  void CheckAccess() {
    if (!access_.schema_usage) {
      Refuse("no USAGE privilege on its schema",
             fmt::format("GRANT USAGE ON SCHEMA {} TO the role",
                         base::DisplayIdentifier(relation_.name.schema)),
             base::kInsufficientPrivilege);
    }
    const auto unreadable =
        std::find_if(table_.columns.begin(), table_.columns.end(),
                     [&](const std::string& c) { return access_.unreadable_columns.contains(c); });
    if (unreadable != table_.columns.end()) {
      Refuse(fmt::format("no SELECT privilege on column \"{}\"", *unreadable),
             fmt::format("GRANT SELECT ON {} TO the role", name_), base::kInsufficientPrivilege);
    }
    if (access_.filtered) {
      Refuse("row-level security hides rows from this role",
             "ALTER ROLE … BYPASSRLS, or connect as the table's owner",
             base::kInsufficientPrivilege);
    }
    if (!all_.publication.exists && !access_.owned) {
      Refuse("this role does not own it, so it cannot publish it",
             fmt::format("let the owner create the publication, or ALTER TABLE {} OWNER TO the "
                         "role",
                         name_),
             base::kInsufficientPrivilege);
    }
  }

  void CheckColumns() {
    if (table_.columns.empty()) {
      Refuse("it has no column to mirror", "add a column", base::kFeatureNotSupported);
    }
    if (relation_.columns.size() > kColumnsMax) {
      Refuse(fmt::format("it has {} columns; at most {} can be mirrored", relation_.columns.size(),
                         kColumnsMax),
             "split the table, or publish fewer columns", kTooManyColumns);
    }
    std::vector<std::string> generated;
    for (const auto& column : relation_.columns) {
      if (IsReserved(column.name)) {
        Refuse(fmt::format("column name {} is Tidemark's own in the store", column.name),
               "rename the column", kDuplicateColumn);
      }
      const bool carried = std::find(table_.columns.begin(), table_.columns.end(), column.name) !=
                           table_.columns.end();
      if (column.generated && !carried) generated.push_back("\"" + column.name + "\"");
    }
    if (!generated.empty()) {
      Note(fmt::format("generated columns are not mirrored: {}", fmt::join(generated, ", ")),
           "compute them where they are read; from PostgreSQL 18 on stored ones can be published: "
           "publish_generated_columns = stored",
           base::kFeatureNotSupported);
    }
  }

  void CheckTypes() {
    for (const auto& name : table_.columns) {
      const pg::Column& column = *relation_.Find(name);
      const TypeFault* fault = all_.type_faults.Find(column.type);
      if (fault != nullptr && fault->unknown && all_.unknown_as_text) {
        Note(fmt::format("column \"{}\" is mirrored as text: {}", name, fault->what),
             "", fault->state);
      } else if (fault != nullptr) {
        Refuse(fmt::format("column \"{}\": {}", name, fault->what), fault->fix, fault->state);
      }
      if (all_.missing_collations.contains(column.collation)) {
        Note(fmt::format("column \"{}\": the store has no collation {}, so it sorts by the default",
                         name, column.collation),
             "create the collation in the store before the table is mirrored",
             base::kUndefinedObject);
      }
    }
  }

  void CheckLeaves() {
    for (const auto& leaf : access_.leaves) {
      if (leaf.kind == 'f' || leaf.persistence == 'u') {
        Refuse(fmt::format("its partition {} is {}: the stream does not carry it",
                           leaf.name.Display(), leaf.kind == 'f' ? "foreign" : "unlogged"),
               "detach that partition", base::kWrongObjectType);
      }
    }
  }

  std::string IdentityFix() const {
    return fmt::format("add a primary key, or ALTER TABLE {} REPLICA IDENTITY FULL", name_);
  }

  void CheckIdentity() {
    const PublicationFacts& publication = all_.publication;
    if (publication.exists && !publication.updates && !publication.deletes) {
      table_.insert_only = true;
      return;
    }
    if (HasGeneratedKey(relation_)) {
      Refuse("its key holds a generated column, which the stream does not carry", IdentityFix(),
             base::kFeatureNotSupported);
      return;
    }
    if (const auto fault = IdentityFault(relation_)) return JudgeFault(*fault);
    for (const auto& leaf : access_.leaves) JudgeLeafIdentity(leaf);
    if (!CoversIdentity(relation_, table_.columns)) {
      table_.insert_only = true;
      Note(
          "the publication's column list leaves out key columns: the source refuses UPDATE and "
          "DELETE, so only inserts are mirrored",
          "add the key columns to the publication's column list", base::kNotInPrerequisiteState);
    } else if (relation_.KeyColumns().empty()) {
      Note("it has no key: its rows are mirrored as a multiset under REPLICA IDENTITY FULL",
           "add a primary key for faster updates", base::kNotInPrerequisiteState);
    }
  }

  void JudgeFault(const std::string& fault) {
    const bool a_leaf_has_identity =
        std::any_of(access_.leaves.begin(), access_.leaves.end(),
                    [](const pg::Relation& leaf) { return !IdentityFault(leaf); });
    if (!all_.publication.exists) {
      Refuse(fmt::format("it has {}: publishing it would make UPDATE and DELETE fail on the source",
                         fault),
             IdentityFix(), base::kNotInPrerequisiteState);
    } else if (a_leaf_has_identity) {
      Refuse(fmt::format("it has {}, but partitions that publish updates", fault), IdentityFix(),
             base::kNotInPrerequisiteState);
    } else {
      table_.insert_only = true;
      Note(fmt::format("it has {}: the source refuses UPDATE and DELETE, so only inserts are "
                       "mirrored",
                       fault),
           IdentityFix(), base::kNotInPrerequisiteState);
    }
  }

  // The server asks the partition that a row lies in whether it may be updated and what to send.
  void JudgeLeafIdentity(const pg::Relation& leaf) {
    const std::string fix = fmt::format("ALTER TABLE {} REPLICA IDENTITY FULL, or as {} has it",
                                        leaf.name.Display(), name_);
    if (const auto fault = IdentityFault(leaf)) {
      const auto what = fmt::format("its partition {} has {}", leaf.name.Display(), *fault);
      if (all_.publication.exists) {
        Note(what + ": the source refuses UPDATE and DELETE there", fix,
             base::kNotInPrerequisiteState);
      } else {
        Refuse(what + ": publishing it would make UPDATE and DELETE fail there", fix,
               base::kNotInPrerequisiteState);
      }
    } else if (!SendsKeyOf(leaf, relation_)) {
      Refuse(fmt::format("its partition {} identifies rows by other columns", leaf.name.Display()),
             fix, base::kNotInPrerequisiteState);
    }
  }

  PublishedTable& table_;
  const pg::Relation& relation_;
  const TableAccess& access_;
  const Circumstances& all_;
  std::string name_;
  std::vector<Problem> problems_;
};

bool Refuses(const std::vector<Problem>& problems) {
  return std::any_of(problems.begin(), problems.end(),
                     [](const Problem& p) { return p.severity == Severity::kRefusesTable; });
}

}  // namespace

void RefuseUnfitTables(pg::Connection& source, const PreflightOptions& options,
                       PreflightReport& report) {
  if (report.tables.empty()) {
    report.problems.push_back({Severity::kNote, "", "there is no table to mirror yet",
                               report.publication.exists ? "add tables to the publication" : "",
                               base::kUndefinedTable});
    return;
  }
  const auto access = LoadAccess(source, report.tables);
  const TypeFaults type_faults(source, options.store, report.tables);
  Circumstances circumstances{report.publication, type_faults, options.unknown_as_text, {}, {}};
  for (const auto& table : report.tables) circumstances.schemas.insert(table.relation.name.schema);
  if (options.store != nullptr) {
    circumstances.missing_collations = MissingCollations(*options.store, report.tables);
  }
  std::vector<PublishedTable> fit;
  for (auto& table : report.tables) {
    auto problems = Judgement(table, access.at(table.relation.oid), circumstances).Run();
    if (!Refuses(problems)) fit.push_back(std::move(table));
    std::move(problems.begin(), problems.end(), std::back_inserter(report.problems));
  }
  report.tables = std::move(fit);
}

void NoteMissingHeirs(pg::Connection& source, PreflightReport& report) {
  std::set<pg::Oid> mirrored;
  for (const auto& table : report.tables) mirrored.insert(table.relation.oid);
  const auto families = FamiliesOf(LoadInheritance(source), mirrored);
  for (const auto& table : report.tables) {
    const auto missing = families.missing.find(table.relation.oid);
    if (missing == families.missing.end()) continue;
    report.problems.push_back(
        {.severity = Severity::kNote,
         .table = table.relation.name.Display(),
         .what = fmt::format("inheriting from it, but not mirrored: {}. Their rows are not among "
                             "those that it shows in the mirror",
                             fmt::join(missing->second, ", ")),
         .fix = "mirror them, too",
         .state = base::kFeatureNotSupported,
         .watched = true});
  }
}

}  // namespace tidemark::source
