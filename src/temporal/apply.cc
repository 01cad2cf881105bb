#include "temporal/apply.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/kill_point.h"
#include "pg/copy.h"
#include "temporal/row_stream.h"
#include "wire/copy_binary.h"

namespace tidemark::temporal {

using base::Error;

namespace {

constexpr const char* kVerify =
    "The mirror differs from its source; compare with \"tidemark verify\".";

// What is deleted from temporary tables, in bytes, before they are truncated: that takes a millisecond,
// and what was deleted is still read over.
constexpr size_t kDeletedMost = 256 << 10;
constexpr size_t kRowOverhead = 64;

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

// Of the key's first column, as a number of the same order: enough to have neighbours together.
uint64_t LeadingBytes(std::string_view key) {
  char bytes[8] = {};
  if (key.size() > sizeof(int32_t)) key.substr(sizeof(int32_t)).copy(bytes, sizeof bytes);
  return wire::LoadBigEndian<uint64_t>(bytes);
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

Applier::Applier(pg::Connection& store, HistoryLimits limits)
    : store_(&store), partitions_(store, limits) {
  PreparePlanner();
  // A batch's rows in memory: what is staged, and what an update ends.
  store_->Execute(R"sql(
SET temp_buffers = '32MB';
SELECT pg_catalog.set_config('work_mem', greatest(
  pg_catalog.pg_size_bytes(pg_catalog.current_setting('work_mem')) / 1024, 32768) || 'kB', false)
)sql");
}

void Applier::PreparePlanner() {
  // Batches are joined to big tables by key or ctid: nested loops over an index, whatever the
  // statistics of a temporary table say.
  store_->Execute(R"sql(
SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_seqscan = off;
SET enable_bitmapscan = off; SET enable_material = off; SET jit = off;
SET plan_cache_mode = force_generic_plan
)sql");
}

void Applier::RestorePlanner() {
  store_->Execute(R"sql(
RESET enable_hashjoin; RESET enable_mergejoin; RESET enable_seqscan;
RESET enable_bitmapscan; RESET enable_material; RESET jit;
RESET plan_cache_mode
)sql");
}

const ApplyStatements& Applier::For(const Dataset& d) {
  auto& slot = statements_[d.id];
  if (!slot) {
    slot = std::make_unique<ApplyStatements>(StatementsFor(d));
    store_->Execute(slot->create);
  }
  return *slot;
}

Applier::Staged Applier::Stage(Transition& transition, const ApplyStatements& sql) {
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
  // In the order of the key, neighbours in the index are looked up one after the other.
  std::vector<std::pair<uint64_t, uint32_t>> order;
  for (uint32_t i = 0; i < entries.size(); ++i) {
    if (entries[i].base) order.emplace_back(LeadingBytes(entries[i].key), i);
  }
  std::ranges::sort(order);
  RowStream rows(*store_, sql.copy_stage, sql.staged_columns);
  Staged staged;
  std::string kept;
  for (const auto& [leading, i] : order) {
    const auto& entry = entries[i];
    auto& writer = rows.Begin();
    auto& out = rows.buffer();
    if (d.keying == Keying::kMultiset) {
      ++staged.removed;
      WriteI32(out, static_cast<int32_t>(i));
      writer.WriteI64(entry.base_closed);
      WriteHash(out, entry.hash);
      continue;
    }
    const bool kept_here = entry.live && entry.image.has_kept && entry.kept_from == i;
    kept.assign((sql.columns + 7) / 8, '\0');
    staged.keeps = staged.keeps || kept_here;
    // A live image that needs another row's values is written later, once they are known.
    const bool replaced = entry.live && (!entry.image.has_kept || kept_here);
    ++(replaced ? staged.replaced : staged.removed);
    if (replaced) {
      WriteImage(out, entry.image, sql.columns, &kept);
    } else {
      ImageReader key({entry.key.data(), static_cast<uint32_t>(entry.key.size())});
      std::vector<ImageField> by_position(sql.columns, {kNullLength, {}});
      for (size_t at : key_positions) by_position[at] = key.Next();
      for (const auto& field : by_position) {
        writer.WriteField(field.length < 0 ? wire::CopyField{} : wire::CopyField{field.value});
      }
    }
    WriteI32(out, static_cast<int32_t>(i));
    writer.WriteI64(entry.base_closed);
    if (replaced) {
      writer.WriteI64(entry.from);
    } else {
      writer.WriteNull();
    }
    writer.WriteField(kept_here ? wire::CopyField{kept} : wire::CopyField{});
    writer.WriteField(std::string_view(wanted.contains(i) ? "\1" : "\0", 1));
  }
  rows.Finish();
  return staged;
}

// Whether there are values that neither the source sent nor a simple update can keep in place:
// versions between two of one batch, and rows that changed their key.
bool Applier::NeedsKept(Transition& transition) {
  const auto& entries = transition.entries();
  return std::ranges::any_of(transition.closed(), [](const auto& c) { return c.image.has_kept; }) ||
         std::ranges::any_of(entries, [&](const auto& e) {
           return e.live && e.image.has_kept && &e - entries.data() != e.kept_from;
         });
}

void Applier::FetchKept(Transition& transition, const ApplyStatements& sql) {
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

void Applier::CopyVersions(Transition& transition, const ApplyStatements& sql) {
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

void Applier::RefuseMissing(const Dataset& dataset, const ApplyStatements& sql) {
  const auto missing = store_->Execute(sql.find_missing);
  if (missing.rows() == 0) return;
  throw Error(base::kDataCorrupted, fmt::format("{} has no row for a change of its key {}",
                                                dataset.name.Display(), missing.str(0, 0)))
      .Hint(kVerify);
}

void Applier::RequireFound(const Dataset& dataset, const ApplyStatements& sql, int64_t staged,
                           int64_t found) {
  if (found == staged) return;
  if (found < staged) RefuseMissing(dataset, sql);
  throw Error(base::kDataCorrupted,
              fmt::format("{} has other than one row for each changed key", dataset.name.Display()))
      .Hint(kVerify);
}

// Returns how many versions have gone to history.
int64_t Applier::Remove(const Dataset& d, const ApplyStatements& sql, int64_t staged) {
  const auto ended = store_->ExecutePrepared(sql.removed_to_history, {}).affected();
  // Fewer where versions began in the tx that ends them, too.
  if (ended < staged) RefuseMissing(d, sql);
  RequireFound(d, sql, staged, store_->ExecutePrepared(sql.remove, {}).affected());
  return ended;
}

int64_t Applier::Replace(const Dataset& d, const ApplyStatements& sql, const Staged& staged) {
  store_->ExecutePrepared(
      "SELECT pg_catalog.set_config('tidemark.keep_ended', $1, true), "
      "pg_catalog.set_config('tidemark.kept_ended', '', true)",
      {sql.replaced_to_history});
  const auto& replace = staged.keeps ? sql.replace_keeping : sql.replace;
  RequireFound(d, sql, staged.replaced, store_->ExecutePrepared(replace, {}).affected());
  const auto kept =
      store_->ExecutePrepared("SELECT pg_catalog.current_setting('tidemark.kept_ended')", {});
  if (kept.text(0, 0).empty()) {
    throw Error(base::kNotInPrerequisiteState,
                fmt::format("the trigger that keeps the history of {} is gone or disabled",
                            d.name.Display()))
        .Hint(fmt::format("Nothing is lost: nothing of it is published. Enable it, or make it again "
                          "with SELECT tidemark.keep_ended_of('{}').",
                          d.Current()));
  }
  return kept.int64(0, 0);
}

// Of the batch before; after a rollback, of the one before that.
void Applier::DeleteStaged(const Dataset& d, const ApplyStatements& sql) {
  if (staged_.contains(d.id)) store_->ExecutePrepared(sql.delete_staged, {});
}

// A large batch leaves nothing behind, and many small ones little.
void Applier::NoteStaged(Transition& transition, const ApplyStatements& sql) {
  size_t& bytes = staged_[transition.dataset().id];
  bytes += transition.arena().bytes() + kRowOverhead * transition.entries().size();
  if (bytes <= kDeletedMost) return;
  store_->Execute(sql.truncate_staged);
  bytes = 0;
}

// Ends versions that the store has. Returns how many have gone to history.
int64_t Applier::ApplyStaged(Transition& transition, const ApplyStatements& sql) {
  const Dataset& d = transition.dataset();
  const Staged staged = Stage(transition, sql);
  base::KillPoint("apply.staged");
  if (d.keying == Keying::kMultiset) {
    RequireFound(d, sql, staged.removed, store_->ExecutePrepared(sql.find, {}).affected());
  } else if (NeedsKept(transition)) {
    FetchKept(transition, sql);
  }
  int64_t to_history = 0;
  if (staged.removed > 0) to_history += Remove(d, sql, staged.removed);
  if (staged.replaced > 0) to_history += Replace(d, sql, staged);
  return to_history;
}

void Applier::Apply(Transition& transition) {
  const Dataset& d = transition.dataset();
  try {
    const ApplyStatements& sql = For(d);
    const bool any_base = std::any_of(transition.entries().begin(), transition.entries().end(),
                                      [](const auto& e) { return e.base; });
    const bool stages = any_base || !sql.all_binary;
    if (stages) DeleteStaged(d, sql);
    int64_t to_history = static_cast<int64_t>(transition.closed().size());
    if (any_base) to_history += ApplyStaged(transition, sql);
    CopyVersions(transition, sql);
    if (stages) NoteStaged(transition, sql);
    partitions_.Count(d, to_history);
  } catch (Error& error) {
    error.AddContext(transition.changes() == 1
                         ? fmt::format("applying a change of {}, key {}", d.name.Display(),
                                       transition.DescribeKey())
                         : fmt::format("applying {} changes of {}", transition.changes(),
                                       d.name.Display()));
    throw;
  }
  base::KillPoint("apply.done");
  transition.Clear();
}

void Applier::Forget(const Dataset& d) {
  statements_.erase(d.id);
  staged_.erase(d.id);
  store_->Execute(fmt::format(
      "DROP TABLE IF EXISTS pg_temp.stage_{0}, pg_temp.found_{0}, pg_temp.versions_{0}", d.id));
}

int64_t Applier::Truncate(const Dataset& d, int64_t tx) {
  const ApplyStatements& sql = For(d);
  const auto moved = store_->Execute(sql.truncate_to_history, {std::to_string(tx)}).affected();
  partitions_.Count(d, moved);
  return store_->Execute(sql.truncate).affected();
}

}  // namespace tidemark::temporal
