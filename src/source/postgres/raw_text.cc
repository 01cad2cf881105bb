#include "source/postgres/raw_text.h"

#include <algorithm>
#include <utility>

#include "wire/utf8.h"

namespace tidemark::source {

namespace {

bool IsReadable(const std::string& text) {
  return wire::FindInvalidUtf8(text) == std::string::npos;
}

}  // namespace

bool HasReadableNames(const pg::Relation& relation) {
  return IsReadable(relation.name.schema) && IsReadable(relation.name.name) &&
         std::ranges::all_of(relation.columns, IsReadable, &pg::Column::name);
}

bool HasReadableNames(const pg::Type& type) {
  return IsReadable(type.name.schema) && IsReadable(type.name.name) &&
         std::ranges::all_of(type.labels, IsReadable) &&
         std::ranges::all_of(type.attributes, IsReadable, &pg::TypeAttribute::name);
}

std::string Readable(std::string text) {
  wire::ReplaceInvalidUtf8(text);
  return text;
}

void MakeCommentsReadable(pg::Relation& relation) {
  if (relation.comment) relation.comment = Readable(std::move(*relation.comment));
  for (auto& column : relation.columns) {
    if (column.comment) column.comment = Readable(std::move(*column.comment));
  }
}

}  // namespace tidemark::source
