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

Applier::Applier(pg::Connection& store, HistoryLimits limits)
    : store_(&store), partitions_(store, limits) {
  PreparePlanner();
  store_->Execute("SET temp_buffers = '32MB'");
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

void Applier::RequireFound(const Dataset& dataset, const ApplyStatements& sql,
                           const Staged& staged, int64_t found) {
  if (found == staged.rows) return;
  if (found > staged.rows) {
    throw Error(base::kDataCorrupted,
                fmt::format("{} has more than one row under one key", dataset.name.Display()));
  }
  const auto missing = store_->Execute(sql.find_missing);
  const auto key = missing.rows() == 1 ? missing.str(0, 0) : "unknown";
  throw Error(base::kDataCorrupted,
              fmt::format("{} has no row for a change of its key {}", dataset.name.Display(), key))
      .Hint("The mirror differs from its source; compare with \"tidemark verify\".");
}

void Applier::Apply(Transition& transition) {
  const Dataset& d = transition.dataset();
  try {
    const ApplyStatements& sql = For(d);
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
      if (d.keying == Keying::kKey && !staged.removes && !NeedsKept(transition)) {
        to_history += store_->ExecutePrepared(sql.staged_to_history, {}).affected();
        const auto& replace = staged.keeps ? sql.replace_staged_keeping : sql.replace_staged;
        RequireFound(d, sql, staged, store_->ExecutePrepared(replace, {}).affected());
      } else {
        RequireFound(d, sql, staged, store_->ExecutePrepared(sql.find, {}).affected());
        if (NeedsKept(transition)) FetchKept(transition, sql);
        to_history += store_->ExecutePrepared(sql.to_history, {}).affected();
        if (staged.removes) store_->ExecutePrepared(sql.remove, {});
        if (staged.replaces) {
          store_->ExecutePrepared(staged.keeps ? sql.replace_keeping : sql.replace, {});
        }
      }
    }
    CopyVersions(transition, sql);
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
  filled_.erase(d.id);
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
