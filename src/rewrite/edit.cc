#include "rewrite/edit.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace tidemark::rewrite {
namespace {

bool IsNamePart(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' ||
         static_cast<unsigned char>(c) >= 0x80;
}

class Editor {
 public:
  Editor(std::string_view client, const std::vector<Edit>& edits)
      : client_(client), edits_(edits) {}

  /// Writes client bytes [begin, end), with the edits from `next` on that lie inside.
  void Write(size_t begin, size_t end, size_t next) {
    size_t at = begin;
    for (size_t i = next; i < edits_.size() && edits_[i].begin <= end; ++i) {
      const Edit& edit = edits_[i];
      if (edit.begin < at || edit.end > end) continue;  // inside the edit before, or around us
      Copy(at, edit.begin);
      for (const Edit::Part& part : edit.parts) {
        if (part.client_end > part.client_begin) {
          Write(part.client_begin, part.client_end, i + 1);
        } else {
          Add(part.generated, part.client_begin, /*verbatim=*/false);
        }
      }
      at = edit.end;
    }
    Copy(at, end);
  }

  std::string sql;
  std::vector<PositionMap::Piece> pieces;

 private:
  void Copy(size_t begin, size_t end) {
    Add(client_.substr(begin, end - begin), begin, /*verbatim=*/true);
  }
  void Add(std::string_view text, size_t client_begin, bool verbatim) {
    if (text.empty()) return;
    // What a quote kept apart in the client's text must not grow together.
    if (!sql.empty() && IsNamePart(sql.back()) && IsNamePart(text.front()) &&
        !(verbatim && client_begin > 0 && IsNamePart(client_[client_begin - 1]))) {
      pieces.push_back({sql.size(), sql.size() + 1, client_begin, false});
      sql += ' ';
    }
    pieces.push_back({sql.size(), sql.size() + text.size(), client_begin, verbatim});
    sql += text;
  }

  const std::string_view client_;
  const std::vector<Edit>& edits_;
};

}  // namespace

Rewritten ApplyEdits(std::string_view client, std::vector<Edit> edits) {
  std::ranges::stable_sort(edits, [](const Edit& a, const Edit& b) {
    if (a.begin != b.begin) return a.begin < b.begin;
    const bool a_empty = a.begin == a.end, b_empty = b.begin == b.end;
    return a_empty != b_empty ? a_empty : a.end > b.end;
  });
  Editor editor(client, edits);
  editor.Write(0, client.size(), 0);
  PositionMap positions(std::string(client), editor.sql, std::move(editor.pieces));
  return {.sql = std::move(editor.sql), .positions = std::move(positions)};
}

}  // namespace tidemark::rewrite
