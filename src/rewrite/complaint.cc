#include "rewrite/complaint.h"

#include <utility>

#include "rewrite/characters.h"

namespace tidemark::rewrite {

base::Error Complaint(base::SqlState state, std::string message, std::string_view sql,
                      size_t offset) {
  return base::Error(state, std::move(message)).Position(CharacterPosition(sql, offset));
}

}  // namespace tidemark::rewrite
