#include <algorithm>
#include <utility>

#include "rewrite/characters.h"
#include "rewrite/statement.h"

namespace tidemark::rewrite {

PositionMap::PositionMap(std::string client, std::string rewritten, std::vector<Piece> pieces)
    : client_(std::move(client)), rewritten_(std::move(rewritten)), pieces_(std::move(pieces)) {}

int PositionMap::ToClient(int rewritten_position) const {
  const size_t offset = ByteOffset(rewritten_, rewritten_position);
  const auto piece = std::find_if(pieces_.begin(), pieces_.end(), [&](const Piece& p) {
    return offset >= p.rewritten_begin && offset < p.rewritten_end;
  });
  if (piece == pieces_.end()) return CharacterPosition(client_, client_.size());
  const size_t inside = piece->verbatim ? offset - piece->rewritten_begin : 0;
  return CharacterPosition(client_, piece->client_begin + inside);
}

}  // namespace tidemark::rewrite
