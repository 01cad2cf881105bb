#include "temporal/put_digest.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "temporal/value_text.h"
#include "wire/bytes.h"

namespace tidemark::temporal {

using base::Hash;
using base::View;

namespace {

constexpr size_t kPiecesAhead = 4;
constexpr size_t kPrefixBytes = 2;

}  // namespace

std::unique_ptr<PutDigest> PutDigest::Begin(const pg::Connection& store,
                                            const std::vector<DatasetColumn>& columns) {
  if (store.parameter("server_encoding") != "UTF8" || !std::ranges::all_of(columns, HasValueText)) {
    return nullptr;
  }
  return std::make_unique<PutDigest>(columns);
}

PutDigest::PutDigest(std::vector<DatasetColumn> columns)
    : columns_(std::move(columns)),
      rows_(kPiecesAhead),
      thread_([this, stop = stop_.get_token()] { Run(stop); }) {}

PutDigest::~PutDigest() { stop_.request_stop(); }

void PutDigest::Give(std::string rows) { rows_.Give(std::move(rows), stop_.get_token()); }

std::optional<std::string> PutDigest::Finish() {
  rows_.End();
  thread_.join();
  return std::move(digest_);
}

void PutDigest::Run(const std::stop_token& stop) {
  bool certain = true;
  try {
    while (const auto rows = rows_.Take(base::Deadline::Never(), stop)) {
      certain = certain && HashRows(*rows);
    }
    if (certain) digest_ = Combine();
  } catch (const std::exception& error) {
    if (!stop.stop_requested()) spdlog::info("the store computes the digest: {}", error.what());
    stop_.request_stop();  // Give does not wait any more
  }
}

bool PutDigest::HashRows(std::string_view rows) {
  wire::ByteReader in(rows, base::kInvalidBinary);
  while (in.remaining() > 0) {
    in.ReadI16();
    row_ = "P";
    for (const DatasetColumn& column : columns_) {
      const int32_t length = in.ReadI32();
      if (length < 0) {
        row_ += '-';
        continue;
      }
      text_.clear();
      if (!AppendValueText(column, in.ReadBytes(static_cast<size_t>(length)), text_)) return false;
      row_ += std::to_string(text_.size());
      row_ += ':';
      row_ += text_;
    }
    sha256_.Add(row_);
    order_.Add(sha256_.Finish());
  }
  return true;
}

std::string PutDigest::Combine() {
  base::Sha256 all;
  bool any = false;
  char prefix[kPrefixBytes] = {};
  order_.Read([&](const Hash& hash) {
    if (any && std::memcmp(prefix, hash.data(), kPrefixBytes) != 0) all.Add(View(sha256_.Finish()));
    any = true;
    std::memcpy(prefix, hash.data(), kPrefixBytes);
    sha256_.Add(View(hash));
  });
  if (any) all.Add(View(sha256_.Finish()));
  return base::Hex(all.Finish());
}

}  // namespace tidemark::temporal
