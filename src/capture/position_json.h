// A source's position as the JSON that the store keeps: facts for evidence, and where a cursor goes
// on.
#pragma once

#include <optional>
#include <string>

#include "base/lsn.h"
#include "source/reader.h"

namespace tidemark::capture {

/// {"lsn": "0/16B3748", …}: a text for each fact, a list where one name stands more than once; for
/// cursors also "resume": {"cursor", "key"} and "settled".
std::string EvidenceJson(const source::Position& position);

/// {"cursor": "…", "key": ["…"]}.
std::string CursorJson(const source::CursorPosition& position);
/// Throws XX001 for anything else.
source::CursorPosition ParseCursor(const std::string& json);

/// The fact `lsn`, where the source has a log.
std::optional<base::Lsn> LsnOf(const source::Position& position);

}  // namespace tidemark::capture
