#include "temporal/transition.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include <cstring>

#include "base/error.h"
#include "temporal/field_translation.h"
#include "wire/bytes.h"

namespace tidemark::temporal {

using base::Error;
using wire::pgoutput::FieldKind;
using wire::pgoutput::OldTuple;
using wire::pgoutput::TupleField;

RowHash HashRow(wire::pgoutput::Tuple fields) {
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  for (const TupleField& field : fields) {
    const int64_t length =
        field.kind == FieldKind::kNull ? -1 : static_cast<int64_t>(field.value.size());
    XXH3_128bits_update(&state, &length, sizeof length);
    XXH3_128bits_update(&state, field.value.data(), field.value.size());
  }
  const auto digest = XXH3_128bits_digest(&state);
  return {digest.high64, digest.low64};
}

Transition::Transition(const Dataset& dataset, Translations translations)
    : dataset_(&dataset),
      translations_(std::move(translations)),
      key_positions_(dataset.KeyPositions()) {
  translations_.resize(dataset.columns.size(), nullptr);
}

void Transition::Clear() {
  entries_.clear();
  closed_.clear();
  by_key_.clear();
  by_hash_.clear();
  arena_.Clear();
  changes_ = 0;
  puts_ = deletions_ = rows_added_ = 0;
}

std::string Transition::DescribeKey() const {
  if (key_positions_.empty() || entries_.empty()) return "none";
  const auto& key = entries_.back().key;
  ImageReader fields({key.data(), static_cast<uint32_t>(key.size())});
  std::string text;
  for (const size_t at : key_positions_) {
    const auto& column = dataset_->columns[at];
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", base::DisplayIdentifier(column.name),
                        ShowValue(column, fields.Next().value));
  }
  return text;
}

void Transition::CheckWidth(Tuple row) const {
  if (row.size() != dataset_->columns.size()) {
    throw Error(base::kProtocolViolation,
                fmt::format("a row of {} has {} fields, expected {}", dataset_->name.Display(),
                            row.size(), dataset_->columns.size()));
  }
}

std::string_view Transition::KeyOf(Tuple row, Tuple fallback) {
  size_t size = 0;
  for (size_t at : key_positions_) {
    const bool kept = row[at].kind == FieldKind::kUnchanged;
    size += sizeof(int32_t) + (kept && !fallback.empty() ? fallback[at] : row[at]).value.size();
  }
  char* const begin = arena_.Allocate(size);
  char* to = begin;
  for (size_t at : key_positions_) {
    const bool kept = row[at].kind == FieldKind::kUnchanged;
    const TupleField& field = kept && !fallback.empty() ? fallback[at] : row[at];
    if (field.kind == FieldKind::kNull || field.kind == FieldKind::kUnchanged) {
      throw Error(base::kDataCorrupted,
                  fmt::format("a change of {} came without its key column {}",
                              dataset_->name.Display(),
                              base::DisplayIdentifier(dataset_->columns[at].name)));
    }
    wire::StoreBigEndian(to, static_cast<int32_t>(field.value.size()));
    to += sizeof(int32_t);
    std::memcpy(to, field.value.data(), field.value.size());
    if (translations_[at] != nullptr) {
      TranslateField(*dataset_, at, *translations_[at], {to, field.value.size()}, row);
    }
    to += field.value.size();
  }
  return {begin, size};
}

Image Transition::ImageOf(Tuple row, Tuple old_row) {
  CheckWidth(row);
  const auto pick = [&](size_t i) -> const TupleField& {
    return row[i].kind == FieldKind::kUnchanged && !old_row.empty() ? old_row[i] : row[i];
  };
  size_t size = 0;
  for (size_t i = 0; i < row.size(); ++i) size += sizeof(int32_t) + pick(i).value.size();
  char* const begin = arena_.Allocate(size);
  char* to = begin;
  Image image{begin, static_cast<uint32_t>(size), false};
  for (size_t i = 0; i < row.size(); ++i) {
    const TupleField& field = pick(i);
    int32_t length = static_cast<int32_t>(field.value.size());
    if (field.kind == FieldKind::kNull) {
      length = kNullLength;
    } else if (field.kind == FieldKind::kUnchanged) {
      length = kKeptLength;
      image.has_kept = true;
    } else if ((field.kind == FieldKind::kBinary) != dataset_->columns[i].binary) {
      throw Error(base::kFeatureNotSupported,
                  fmt::format("column {} of {} is sent as {}, but the store reads it as {}",
                              base::DisplayIdentifier(dataset_->columns[i].name),
                              dataset_->name.Display(),
                              field.kind == FieldKind::kBinary ? "binary" : "text",
                              dataset_->columns[i].binary ? "binary" : "text"));
    }
    wire::StoreBigEndian(to, length);
    to += sizeof length;
    if (length <= 0) continue;
    std::memcpy(to, field.value.data(), field.value.size());
    if (translations_[i] != nullptr) {
      TranslateField(*dataset_, i, *translations_[i], {to, field.value.size()}, row);
    }
    to += field.value.size();
  }
  return image;
}

uint32_t Transition::FindOrAddBase(std::string_view key) {
  const auto [found, added] = by_key_.try_emplace(key, static_cast<uint32_t>(entries_.size()));
  if (added) {
    Entry entry;
    entry.key = key;
    entry.base = true;
    entries_.push_back(entry);
  }
  return found->second;
}

// The entry of a key that a row is about to take.
uint32_t Transition::FindOrAddFree(std::string_view key) {
  const auto [found, added] = by_key_.try_emplace(key, static_cast<uint32_t>(entries_.size()));
  if (added) {
    entries_.emplace_back();
    entries_.back().key = key;
    return found->second;
  }
  const Entry& entry = entries_[found->second];
  if (entry.live || (entry.base && entry.base_closed == 0)) {
    throw Error(base::kDataCorrupted, fmt::format("{} already has a row under the key of a change",
                                                  dataset_->name.Display()));
  }
  return found->second;
}

// Ends whatever version of the entry is open: the live one of this batch, or the store's.
void Transition::EndLive(Entry& entry, int64_t tx) {
  if (entry.live) {
    if (entry.from < tx) closed_.push_back({entry.image, entry.from, tx, entry.kept_from});
    entry.live = false;
    return;
  }
  if (!entry.base || entry.base_closed != 0) {
    throw Error(base::kDataCorrupted,
                fmt::format("{} has no row under the key of a change", dataset_->name.Display()));
  }
  entry.base_closed = tx;
}

void Transition::PutLive(uint32_t index, int64_t tx, Image image, uint32_t kept_from) {
  Entry& entry = entries_[index];
  entry.live = true;
  entry.image = image;
  entry.from = tx;
  entry.kept_from = kept_from;
  ++puts_;
}

void Transition::Insert(int64_t tx, Tuple row) {
  CheckWidth(row);
  ++changes_;
  ++rows_added_;
  if (dataset_->keying == Keying::kMultiset) return InsertMultiset(tx, row, {});
  if (dataset_->keying == Keying::kAppend) {
    entries_.emplace_back();
    return PutLive(static_cast<uint32_t>(entries_.size() - 1), tx, ImageOf(row, {}), 0);
  }
  const uint32_t index = FindOrAddFree(KeyOf(row, {}));
  PutLive(index, tx, ImageOf(row, {}), index);
}

void Transition::Update(int64_t tx, OldTuple kind, Tuple old_row, Tuple row) {
  CheckWidth(row);
  if (kind != OldTuple::kNone) CheckWidth(old_row);
  ++changes_;
  if (dataset_->keying == Keying::kMultiset) {
    DeleteMultiset(tx, old_row);
    return InsertMultiset(tx, row, old_row);
  }
  if (dataset_->keying == Keying::kAppend) {
    throw Error(base::kNotInPrerequisiteState,
                fmt::format("an update of {} came, but its rows have no identity",
                            dataset_->name.Display()));
  }
  const Tuple full_old = kind == OldTuple::kFull ? old_row : Tuple{};
  const auto new_key = KeyOf(row, kind == OldTuple::kNone ? Tuple{} : old_row);
  const auto old_key = kind == OldTuple::kNone ? new_key : KeyOf(old_row, {});
  const uint32_t index = FindOrAddBase(old_key);
  Image image = ImageOf(row, full_old);
  uint32_t kept_from = index;
  if (image.has_kept && entries_[index].live) {
    image = FillKept(image, entries_[index].image, row.size(), arena_);
    kept_from = entries_[index].kept_from;
  }
  EndLive(entries_[index], tx);
  if (new_key == old_key) return PutLive(index, tx, image, kept_from);
  PutLive(FindOrAddFree(new_key), tx, image, kept_from);
}

void Transition::Delete(int64_t tx, OldTuple, Tuple old_row) {
  CheckWidth(old_row);
  ++changes_;
  ++deletions_;
  --rows_added_;
  if (dataset_->keying == Keying::kMultiset) return DeleteMultiset(tx, old_row);
  if (dataset_->keying == Keying::kAppend) {
    throw Error(base::kNotInPrerequisiteState,
                fmt::format("a delete from {} came, but its rows have no identity",
                            dataset_->name.Display()));
  }
  EndLive(entries_[FindOrAddBase(KeyOf(old_row, {}))], tx);
}

// Equal rows are interchangeable: any one of them may be the one that ends. One of this batch is
// taken first, because it costs no look-up.
void Transition::DeleteMultiset(int64_t tx, Tuple old_row) {
  const RowHash hash = HashRow(old_row);
  if (const auto found = by_hash_.find(hash); found != by_hash_.end()) {
    EndLive(entries_[found->second], tx);
    by_hash_.erase(found);
    return;
  }
  Entry entry;
  entry.base = true;
  entry.base_closed = tx;
  entry.hash = hash;
  entries_.push_back(entry);
}

void Transition::InsertMultiset(int64_t tx, Tuple row, Tuple old_row) {
  std::vector<TupleField> whole(row.begin(), row.end());
  for (size_t i = 0; i < whole.size() && !old_row.empty(); ++i) {
    if (whole[i].kind == FieldKind::kUnchanged) whole[i] = old_row[i];
  }
  const uint32_t index = static_cast<uint32_t>(entries_.size());
  entries_.emplace_back();
  entries_.back().hash = HashRow(whole);
  by_hash_.emplace(entries_.back().hash, index);
  PutLive(index, tx, ImageOf(whole, {}), index);
}

}  // namespace tidemark::temporal
