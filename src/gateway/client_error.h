// The store's errors and notices as the client must see them: what speaks of the rewritten text is
// said of the client's own. Any thread.
#pragma once

#include "gateway/prepared.h"
#include "wire/message.h"

namespace tidemark::gateway {

/// An ErrorResponse or NoticeResponse of a rewritten statement: its position points into the
/// client's text, and a clause whose instant has the wrong type is 42804 instead of a missing
/// function tidemark.….
void TranslateForClient(wire::ErrorFields& error, const RewrittenStatement& statement);

/// 42883 of one of the clauses' functions, or 42846 of a cast to timestamptz, as 42804.
void TranslateInstantType(wire::ErrorFields& error);

/// Characters of UTF-8 text, as field 'P' counts them.
size_t CountCharacters(std::string_view text);

}  // namespace tidemark::gateway
