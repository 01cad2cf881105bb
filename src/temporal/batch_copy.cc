#include "temporal/batch_copy.h"

#include <algorithm>

#include "wire/bytes.h"
#include "wire/copy_binary.h"

namespace tidemark::temporal {

namespace {

// An int8 field behind its length.
constexpr size_t kOrdinalBytes = sizeof(int32_t) + sizeof(int64_t);

std::string Header() {
  std::string header;
  wire::CopyBinaryWriter(header).WriteHeader();
  return header;
}

}  // namespace

BatchCopy::BatchCopy(pg::Connection& store, const std::string& sql,
                     std::shared_ptr<arrow::Schema> schema, Options options)
    : encoder_(std::move(schema), {.write_ordinal = options.write_ordinal}),
      options_(std::move(options)),
      translates_(std::any_of(options_.translations.begin(), options_.translations.end(),
                              [](const auto* plan) { return plan != nullptr; })),
      copy_(store, sql) {
  copy_.Write(Header());
}

// Values that name types by OID name the source's; the encoded rows are rewritten.
void BatchCopy::Translate() {
  const size_t before = options_.write_ordinal ? 1 : 0;
  translated_ = Header();
  const size_t header = translated_.size();
  encoded_.insert(0, translated_);
  wire::CopyBinaryReader rows;
  rows.Feed(encoded_);
  wire::CopyBinaryWriter writer(translated_);
  while (rows.Next() == wire::CopyBinaryReader::Step::kRow) {
    const auto fields = rows.fields();
    writer.WriteRow(static_cast<int16_t>(fields.size()));
    for (size_t i = 0; i < fields.size(); ++i) {
      writer.WriteField(fields[i]);
      const auto* plan = i < before ? nullptr : options_.translations[i - before];
      if (!fields[i] || plan == nullptr) continue;
      const size_t size = fields[i]->size();
      wire::Translate(*plan, {translated_.data() + translated_.size() - size, size});
    }
  }
  translated_.erase(0, header);
}

// Leaves in passed_ what the filter sends.
void BatchCopy::Filter(std::string_view rows) {
  const size_t before = sizeof(int16_t) + (options_.write_ordinal ? kOrdinalBytes : 0);
  passed_.clear();
  for (const char* at = rows.data(); at < rows.data() + rows.size();) {
    const char* const row = at;
    const auto fields = wire::LoadBigEndian<int16_t>(at);
    at += sizeof fields;
    for (int16_t i = 0; i < fields; ++i) {
      const auto length = wire::LoadBigEndian<int32_t>(at);
      at += sizeof length + static_cast<size_t>(std::max(length, 0));
    }
    options_.filter->Pass({row, at}, {row + before, at}, passed_);
  }
}

void BatchCopy::Write(const arrow::RecordBatch& batch) {
  encoded_.clear();
  encoder_.WriteBatch(batch, encoded_);
  if (translates_) Translate();
  const std::string& out = translates_ ? translated_ : encoded_;
  bytes_ += static_cast<int64_t>(out.size());
  if (options_.filter != nullptr) Filter(out);
  copy_.Write(options_.filter != nullptr ? passed_ : out);
}

int64_t BatchCopy::Finish() {
  passed_.clear();
  while (options_.filter != nullptr && options_.filter->PassHeld(passed_)) {
    copy_.Write(passed_);
    passed_.clear();
  }
  std::string trailer;
  wire::CopyBinaryWriter(trailer).WriteTrailer();
  copy_.Write(trailer);
  return copy_.Finish();
}

}  // namespace tidemark::temporal
