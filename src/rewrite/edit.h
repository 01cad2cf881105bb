// Edits of a client's text, and the text they make together with its position map. An edit replaces
// a range of bytes by pieces of generated and of the client's own text; inside the latter, further
// edits apply.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "rewrite/statement.h"

namespace tidemark::rewrite {

struct Edit {
  struct Part {
    std::string generated;    // used when client_end == client_begin
    size_t client_begin = 0;  // where errors in the generated text are shown
    size_t client_end = 0;
  };
  size_t begin, end;  // bytes replaced
  std::vector<Part> parts;

  void Generate(std::string text, size_t shown_at) {
    parts.push_back({std::move(text), shown_at, shown_at});
  }
  void Keep(size_t client_begin, size_t client_end) {
    parts.push_back({{}, client_begin, client_end});
  }
};

/// `edits` do not overlap, except that one may lie inside a kept part of another. An empty one
/// comes before another that begins at the same byte.
Rewritten ApplyEdits(std::string_view client, std::vector<Edit> edits);

}  // namespace tidemark::rewrite
