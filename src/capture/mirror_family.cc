// The part of mirror_stream.h that follows which tables inherit from which. The stream does not
// tell: the source's catalog does, when a link begins or ends as when a column has reached all
// heirs of a table at once. docs/design/0014-inheritance.md.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <tuple>

#include "base/error.h"
#include "base/kill_point.h"
#include "base/log.h"
#include "capture/mirrored_table.h"
#include "temporal/inheritance.h"

namespace tidemark::capture {

using base::Deadline;
using base::Error;
using temporal::Dataset;
using temporal::DatasetColumn;
using temporal::InheritanceLink;
namespace pgoutput = wire::pgoutput;

// What an ALTER of one table of a family did to another one's columns, by name.
struct MirrorStream::FamilyChange {
  std::map<std::string, std::string> renamed;
  std::vector<DatasetColumn> added;
  std::set<std::string> dropped;
};

namespace {

constexpr std::chrono::seconds kAgainSoon{1}, kAgainAfter{10};

Complaint MissingHeirs(const Dataset& parent, const std::set<std::string>& heirs) {
  return {base::kFeatureNotSupported.str(),
          "does not show the rows of all tables that inherit from it",
          fmt::format("Not mirrored: {}.", fmt::join(heirs, ", ")), "Mirror them, too.",
          parent.name.schema + "." + parent.name.name, true};
}

Complaint UnfitHeir(const Dataset& parent, const Dataset& heir, const std::string& reason) {
  return {base::kFeatureNotSupported.str(),
          "does not show the rows of all tables that inherit from it",
          fmt::format("{}: {}.", heir.name.Display(), reason),
          "Publish all the columns that it inherits.", parent.name.schema + "." + parent.name.name,
          true};
}

std::vector<InheritanceLink> Without(const std::vector<InheritanceLink>& links,
                                     const std::vector<InheritanceLink>& others) {
  std::vector<InheritanceLink> left;
  std::ranges::copy_if(links, std::back_inserter(left), [&](const InheritanceLink& link) {
    return std::ranges::find(others, link) == others.end();
  });
  return left;
}

}  // namespace

MirrorStream::Table* MirrorStream::TableOf(int dataset) const {
  for (const auto& [oid, table] : tables_) {
    if (table->dataset && table->dataset->id == dataset) return table.get();
  }
  return nullptr;
}

source::Families MirrorStream::FamiliesHere(
    const std::vector<source::InheritedTable>& inheritance) const {
  std::set<pg::Oid> mirrored;
  for (const auto& [oid, table] : tables_) {
    if (table->dataset && published_.contains(oid)) mirrored.insert(oid);
  }
  return source::FamiliesOf(inheritance, mirrored);
}

MirrorStream::Links MirrorStream::LinksOf(const source::Families& families) const {
  Links links;
  for (const auto& [child, parent] : families.links) {
    links.push_back({tables_.at(child)->dataset->id, tables_.at(parent)->dataset->id});
  }
  return links;
}

void MirrorStream::NotePublished(const SourceView& view) {
  published_.clear();
  for (const auto& state : view.tables) published_.insert(state.oid);
}

// Between transactions; everything that was received has been applied.
void MirrorStream::FollowInheritance(const SourceView& view, std::vector<Complaint>& complaints) {
  NotePublished(view);
  const auto families = FamiliesHere(view.inheritance);
  for (const auto& [parent, heirs] : families.missing) {
    complaints.push_back(MissingHeirs(*tables_.at(parent)->dataset, heirs));
  }
  const auto wanted = LinksOf(families);
  std::erase_if(unlinked_, [&](const auto& each) {
    return std::ranges::find(wanted, each.first) == wanted.end();
  });
  ChangeLinksTo(wanted);
  for (const auto& [link, unlinked] : unlinked_) {
    complaints.push_back(UnfitHeir(*TableOf(link.parent)->dataset, *TableOf(link.child)->dataset,
                                   unlinked.reason));
  }
}

// At a tx of its own.
void MirrorStream::ChangeLinksTo(const Links& wanted) {
  if (!links_again_.passed() || !TryChangeLinks(wanted)) return;
  if (commits_.empty()) {
    extracted_from_ = base::Timestamp::FromSystem(std::chrono::system_clock::now());
  }
  AddOwnCommit();
  base::KillPoint("links.changed");
  if (!draining_) PublishPending();
}

// Columns have been followed by looks: what did not fit may do so now.
void MirrorStream::RetryLinks() {
  if (unlinked_.empty() || AnyLook()) return;
  ChangeLinksTo(LinksOf(FamiliesHere(source::LoadInheritance(Source()))));
}

// False when there is nothing to change, or a reader is in the way: then later.
bool MirrorStream::TryChangeLinks(const Links& wanted) {
  auto begun = Without(wanted, links_);
  std::erase_if(begun, [&](const InheritanceLink& link) {
    const auto unlinked = unlinked_.find(link);
    return unlinked != unlinked_.end() && !unlinked->second.again.passed();
  });
  const auto ended = Without(links_, wanted);
  const bool off = !links_.empty() && temporal::AnyLinkOff(Store(), journal_->id);
  if (begun.empty() && ended.empty() && !off) return false;
  OpenStoreTransaction();
  if (off) MendLinks();
  Store().Execute("SAVEPOINT tidemark_links; SET LOCAL lock_timeout = '2s'");
  bool changed = false;
  const Links before = links_;
  try {
    changed = ChangeLinks(Without(ended, Without(ended, links_)), begun);
    Store().Execute("SET LOCAL lock_timeout TO DEFAULT; RELEASE SAVEPOINT tidemark_links");
  } catch (const Error& error) {
    if (!Store().IsOpen() || error.state() != base::kLockNotAvailable) throw;
    Store().Execute("ROLLBACK TO SAVEPOINT tidemark_links; RELEASE SAVEPOINT tidemark_links");
    spdlog::info("who inherits from whom is not followed yet: {}", error.message());
    links_ = before;
    links_again_ = Deadline::After(kAgainSoon);
    changed = false;
  }
  if (!changed && !off && !draining_) open_.reset();
  return changed || off;
}

// At tx_. True if anything was changed.
bool MirrorStream::ChangeLinks(const Links& ended, const Links& begun) {
  const auto misfits = temporal::ChangeLinks(Store(), journal_->id, ended, begun, tx_);
  Links made = begun;
  for (const auto& [link, reason] : misfits) {
    if (!unlinked_.contains(link)) {
      spdlog::info("{} does not show the rows of {}: {}",
                   TableOf(link.parent)->dataset->name.Display(),
                   TableOf(link.child)->dataset->name.Display(), reason);
    }
    unlinked_.insert_or_assign(link, Unlinked{reason, Deadline::After(kAgainAfter)});
    std::erase(made, link);
  }
  const auto note = [&](const InheritanceLink& link, std::string_view does) {
    Table& parent = *TableOf(link.parent);
    parent.changed = true;
    spdlog::info("{} {} from {}", TableOf(link.child)->dataset->name.Display(), does,
                 parent.dataset->name.Display());
  };
  for (const auto& link : ended) note(link, "does not inherit any more");
  for (const auto& link : made) note(link, "inherits");
  links_ = Without(links_, ended);
  for (const auto& link : made) {
    unlinked_.erase(link);
    links_.push_back(link);
  }
  return !ended.empty() || !made.empty();
}

// A table has been reshaped in the store's transaction. Those that it is linked with follow in the
// same one, if they have to: nobody may see a parent without the rows of its heirs.
void MirrorStream::MendLinks(Table* changed, const Dataset* before) {
  for (auto& [link, unlinked] : unlinked_) unlinked.again = Deadline::After({});
  if (links_.empty() || mending_ || temporal::PutOnLinks(Store(), journal_->id).empty()) return;
  const auto wanted = LinksOf(FamiliesHere(source::LoadInheritance(Source())));
  if (const auto ended = Without(links_, wanted); !ended.empty()) ChangeLinks(ended, {});
  mending_ = true;  // what is thrown ends the stream
  MendBy(wanted, changed, before);
  mending_ = false;
  Links ended;
  for (const auto& [link, reason] : temporal::PutOnLinks(Store(), journal_->id)) {
    ended.push_back(link);
    unlinked_.insert_or_assign(link, Unlinked{reason, Deadline::After(kAgainSoon)});
  }
  if (!ended.empty()) ChangeLinks(ended, {});  // they begin again once they fit
}

// By what the table's change means for the others; what is still amiss then, by the catalog. It may
// be ahead of the stream, whose next row would then not fit: in the midst of a transaction such a
// table is read whole instead.
void MirrorStream::MendBy(const Links& wanted, Table* changed, const Dataset* before) {
  if (changed != nullptr) FollowRelatives(*changed, *before);
  std::set<Table*> followed = {changed};
  for (bool any = true; any;) {
    any = false;
    for (const auto& [link, reason] : temporal::PutOnLinks(Store(), journal_->id)) {
      if (std::ranges::find(wanted, link) == wanted.end()) continue;
      for (Table* table : {TableOf(link.parent), TableOf(link.child)}) {
        if (!followed.insert(table).second) continue;
        if (in_transaction_ && !table->waiting) BeginAgainFor(*table, "its family has other columns");
        FollowCatalog(*table);
        any = true;
      }
    }
  }
}

// A name reaches all that have the column by inheritance, whichever of them was announced first; a
// new column reaches the heirs, and one that an heir has no more, its parents have lost.
void MirrorStream::FollowRelatives(Table& changed, const Dataset& before) {
  const Dataset& now = *changed.dataset;
  std::map<int, FamilyChange> changes;
  const auto has = [&](int dataset, const std::string& name) {
    const auto& columns = TableOf(dataset)->dataset->columns;
    return std::ranges::find(columns, name, &DatasetColumn::name) != columns.end();
  };
  const auto reach = [&](bool up, bool down, const std::string& name, bool having, auto change) {
    std::set<int> reached = {now.id};
    for (bool any = true; any;) {
      any = false;
      for (const auto& link : links_) {
        for (const auto& [from, to, allowed] : {std::tuple(link.parent, link.child, down),
                                                std::tuple(link.child, link.parent, up)}) {
          if (!allowed || !reached.contains(from) || reached.contains(to)) continue;
          if (having && !has(to, name)) continue;
          reached.insert(to);
          any = true;
          if (has(to, name) == having) change(changes[to]);
        }
      }
    }
  };
  for (const auto& column : before.columns) {
    const auto one = std::ranges::find(now.columns, column.source_number, &DatasetColumn::source_number);
    if (one == now.columns.end()) {
      reach(true, false, column.name, true,
            [&](FamilyChange& change) { change.dropped.insert(column.name); });
    } else if (one->name != column.name) {
      reach(true, true, column.name, true,
            [&](FamilyChange& change) { change.renamed[column.name] = one->name; });
    }
  }
  for (const auto& column : now.columns) {
    const auto& columns = before.columns;
    if (std::ranges::find(columns, column.source_number, &DatasetColumn::source_number) ==
        columns.end()) {
      reach(false, true, column.name, false,
            [&](FamilyChange& change) { change.added.push_back(column); });
    }
  }
  for (const auto& [dataset, change] : changes) FollowRelative(*TableOf(dataset), change);
}

// As if the source had announced the table with the change.
void MirrorStream::FollowRelative(Table& table, const FamilyChange& change) {
  if (table.waiting) return FollowCatalog(table);
  if (table.look) Look(table.dataset->source_oid, table, table.look->state);  // it may be older
  const Dataset dataset = *table.dataset;
  auto columns = dataset.columns;
  std::ranges::sort(columns, {}, &DatasetColumn::source_number);
  std::vector<pgoutput::RelationColumn> announced;
  for (const auto& column : columns) {
    if (change.dropped.contains(column.name)) continue;
    const auto renamed = change.renamed.find(column.name);
    const bool key = std::ranges::find(dataset.key_columns, column.name) != dataset.key_columns.end();
    announced.push_back({key, renamed == change.renamed.end() ? column.name : renamed->second,
                         column.source_type, column.type_modifier});
  }
  for (const auto& column : change.added) {
    announced.push_back({false, column.name, column.source_type, column.type_modifier});
  }
  FollowShape(table, {.xid = 0,
                      .oid = dataset.source_oid,
                      .schema = dataset.name.schema,
                      .name = dataset.name.name,
                      .identity = pgoutput::ReplicaIdentity::kDefault,
                      .columns = announced});
}

// The columns as the catalog has them now. What is being read whole anyway, because rows were
// rewritten, follows then.
void MirrorStream::FollowCatalog(Table& table) {
  const auto oid = table.dataset->source_oid;
  const auto seen = source::SeeColumns(Source(), journal_->publication, oid);
  if (!seen) {
    throw base::Error(base::kSerializationFailure,
                      fmt::format("the columns of {} were just changing at the source",
                                  table.dataset->name.Display()));
  }
  const bool rewritten = std::ranges::any_of(seen->columns.columns, [&](const auto& column) {
    const auto& known = table.dataset->columns;
    const auto one = std::ranges::find(known, column.number, &DatasetColumn::source_number);
    return one != known.end() && one->source_type != column.type;
  });
  if (table.waiting && rewritten) return;
  FollowLook(oid, table, *seen);
}

// Tables have been attached, or read whole, in the store's transaction: at the same tx they have
// the links that they have at the source.
void MirrorStream::JoinFamilies() {
  MendLinks();
  const auto wanted = LinksOf(FamiliesHere(source::LoadInheritance(Source())));
  auto begun = Without(wanted, links_);
  if (!begun.empty()) ChangeLinks({}, begun);
}

// Tables of a family that are read whole are shown together: a column's new type reaches all of
// them.
bool MirrorStream::WaitsForFamily(const Table& table) const {
  if (!table.dataset || links_.empty()) return false;
  std::set<int> family = {table.dataset->id};
  for (bool grown = true; grown;) {
    grown = false;
    for (const auto& link : links_) {
      if (family.contains(link.child) == family.contains(link.parent)) continue;
      family.insert({link.child, link.parent});
      grown = true;
    }
  }
  return std::ranges::any_of(family, [&](int dataset) {
    const Table* member = TableOf(dataset);
    return member != nullptr && member->waiting && !member->failure && !IsReady(*member);
  });
}

}  // namespace tidemark::capture
