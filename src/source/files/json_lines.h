// NDJSON as batches. Values are taken as they are written, so numbers keep all their digits: a
// column is what all its values are (text_type.h), and json where they differ or are nested.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "source/files/text_type.h"

namespace arrow {
class RecordBatchReader;
class Schema;
}  // namespace arrow
namespace arrow::io {
class InputStream;
}  // namespace arrow::io

namespace tidemark::source {

enum class JsonKind { kNull, kBool, kNumber, kString, kNested };

/// Calls `visit` with name, kind and the value's raw text for each member of the object that `line`
/// holds. Throws 22P02 for a line that is no JSON object or has a member twice; what is nested is
/// only skipped.
void VisitMembers(std::string_view line,
                  const std::function<void(std::string&&, JsonKind, std::string_view)>& visit);

/// The text of a JSON string, quotes included. Throws 22P02.
std::string Unescape(std::string_view quoted);

/// Adds the columns of all lines.
void LearnJsonTypes(std::shared_ptr<arrow::io::InputStream> input, const std::string& path,
                    const Limit& limit, TextTypes& types);

/// The lines as batches of the columns of `types`.
std::shared_ptr<arrow::RecordBatchReader> OpenJsonLines(
    std::shared_ptr<arrow::io::InputStream> input, const std::string& path,
    const TextTypes& types);

}  // namespace tidemark::source
