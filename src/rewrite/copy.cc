#include "rewrite/copy.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "rewrite/syntax_tree.h"

namespace tidemark::rewrite {
namespace {

/// Options in the grammar of PostgreSQL before 9.0 that stand outside the list of options and are
/// not allowed with a query: COPY BINARY, and [USING] DELIMITERS before WITH.
class OldOptions {
 public:
  explicit OldOptions(const TokenList& tokens) : tokens_(tokens) {}

  void TakeBinary(size_t token) {
    binary_ = true;
    Remove(tokens_[token].begin, tokens_[token + 1].begin);
  }

  /// `at` is the token after the file name. Puts the options into the list that follows.
  void MoveIntoList(size_t at) {
    const size_t file_end = tokens_[at - 1].end;
    const size_t word = tokens_.IsWord(at, "using") ? at + 1 : at;
    std::string delimiter;
    if (tokens_.IsWord(word, "delimiters")) {
      delimiter = tokens_.Text(word + 1);
      Remove(file_end, tokens_[word + 1].end);
      at = word + 2;
    }
    if (!binary_ && delimiter.empty()) return;
    size_t insert_at = tokens_[at - 1].end;
    if (tokens_.IsWord(at, "with")) insert_at = tokens_[at++].end;
    const bool list = tokens_.IsPunctuation(at, '(');
    std::string options = list ? "" : " ";
    const auto add = [&](std::string_view option) {
      options += std::string(options.size() > 1 ? (list ? ", " : " ") : "") + std::string(option);
    };
    if (binary_) add(list ? "FORMAT binary" : "BINARY");
    if (!delimiter.empty()) add("DELIMITER " + delimiter);
    if (list) {
      insert_at = tokens_[at].end;
      options += ", ";
    }
    Edit& insert = edits.emplace_back(Edit{insert_at, insert_at, {}});
    insert.Generate(std::move(options), insert_at);
  }

  std::vector<Edit> edits;

 private:
  void Remove(size_t begin, size_t end) { edits.push_back({begin, end, {}}); }

  const TokenList& tokens_;
  bool binary_ = false;
};

}  // namespace

std::optional<CopyOfTable> ReadCopyOfTable(std::string_view sql, const TokenList& tokens,
                                           StatementRange range) {
  const size_t offset = tokens[range.begin].begin;
  const Parsed parsed = Parse(sql.substr(offset, tokens[range.end - 1].end - offset));
  if (!parsed.tree) return std::nullopt;
  const auto& statement = parsed.tree->at("stmts").at(0).at("stmt");
  const auto copy = statement.find("CopyStmt");
  if (copy == statement.end() || !copy->contains("relation") || copy->value("is_from", false)) {
    return std::nullopt;
  }
  CopyOfTable table;
  const auto& relation = copy->at("relation");
  for (const char* part : {"catalogname", "schemaname", "relname"}) {
    if (relation.contains(part)) table.name.push_back(relation.at(part).get<std::string>());
  }
  const size_t name = tokens.IndexAt(offset + LocationOf(relation));
  size_t at = tokens.PastName(name);
  while (tokens.IsPunctuation(at, '.')) at = tokens.PastName(at + 1);
  table.written = {tokens[name].begin, tokens[at - 1].end};

  Edit query{table.written.begin, table.written.end, {}};
  query.Generate("(SELECT ", table.written.begin);
  if (tokens.IsPunctuation(at, '(')) {
    const size_t columns = at;
    at = tokens.PastBracket(at, range.end).value();
    query.Keep(tokens[columns].end, tokens[at - 1].begin);
    query.end = tokens[at - 1].end;
  } else {
    query.Generate("*", table.written.begin);
  }
  query.Generate(" FROM ", table.written.begin);
  query.Keep(table.written.begin, table.written.end);
  query.Generate(")", table.written.begin);

  OldOptions options(tokens);
  if (tokens.IsWord(range.begin + 1, "binary") && name == range.begin + 2) {
    options.TakeBinary(range.begin + 1);
  }
  ++at;  // TO
  if (tokens.IsWord(at, "program")) ++at;
  options.MoveIntoList(at + 1);
  table.edits = std::move(options.edits);
  table.edits.push_back(std::move(query));
  return table;
}

}  // namespace tidemark::rewrite
