#include "rewrite/view_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "rewrite/binding.h"
#include "rewrite/edit.h"
#include "rewrite/references.h"
#include "rewrite/syntax_tree.h"
#include "rewrite/token.h"

namespace tidemark::rewrite {
namespace {

// Views that read each other in a lattice double with each level.
constexpr size_t kTextBytesMax = size_t{4} << 20;

class ViewWriter {
 public:
  ViewWriter(std::span<const ViewRelation> relations, const RelationText& text_of)
      : relations_(relations), text_of_(text_of) {}

  std::string Write(const base::QualifiedName& name) {
    const ViewRelation* view = Find(name);
    if (view == nullptr || view->kind != Relation::Kind::kView) Refuse(name, "its definition is not known");
    if (!view->refused_function.empty()) {
      Refuse(name, "it calls function \"" + view->refused_function + "\", which may read tables");
    }
    const std::string& sql = view->definition;
    const TokenList tokens(sql);
    const auto statements = SplitStatements(tokens);
    if (statements.size() != 1 || IsTooDeep(tokens, statements[0])) {
      Refuse(name, "its definition is too complex");
    }
    const size_t begin = tokens[statements[0].begin].begin;
    const size_t end = tokens[statements[0].end - 1].end;
    const Parsed parsed = Parse(std::string_view(sql).substr(begin, end - begin));
    if (!parsed.tree) Refuse(name, "its definition is not understood: " + parsed.message);
    QueryLevels levels;
    const References found = FindReferences(parsed.tree->at("stmts").at(0).at("stmt"), begin, levels);
    std::vector<Edit> edits;
    for (const BoundTable& table : BindTables(sql, tokens, statements[0], {}, found)) {
      if (auto edit = EditOf(name, table)) edits.push_back(std::move(*edit));
    }
    std::string text = ApplyEdits(std::string_view(sql).substr(0, end), std::move(edits)).sql;
    written_ += text.size();
    if (written_ > kTextBytesMax) Refuse(name, "its definition is too complex");
    return "(" + text + ")";
  }

 private:
  const ViewRelation* Find(const base::QualifiedName& name) const {
    const auto found = std::ranges::find(relations_, name, &ViewRelation::name);
    return found == relations_.end() ? nullptr : &*found;
  }

  std::optional<Edit> EditOf(const base::QualifiedName& view, const BoundTable& table) {
    // Names of pg_catalog alone come without their schema.
    if (table.table.name.size() < 2) return std::nullopt;
    const auto& parts = table.table.name;
    const ViewRelation* relation = Find({parts[parts.size() - 2], parts.back()});
    if (relation == nullptr) Refuse(view, "\"" + parts.back() + "\", which it reads, is not known");
    std::string text;
    switch (relation->kind) {
      case Relation::Kind::kMissing:
      case Relation::Kind::kNotVersioned:
        return std::nullopt;
      case Relation::Kind::kMaterialized:
        Refuse(view, "it reads materialized view \"" + parts.back() + '"');
      case Relation::Kind::kPlane:
        Refuse(view, "it reads \"" + parts.back() + "\" past its table");
      case Relation::Kind::kView:
        text = Write(relation->name);
        break;
      case Relation::Kind::kHistory:
      case Relation::Kind::kVersioned:
        text = text_of_(*relation, !table.only.empty());
        break;
    }
    if (table.sample) Refuse(view, "it has a TABLESAMPLE");
    Edit edit{table.whole.begin, table.whole.end, {}};
    if (table.alias.empty()) {
      edit.Generate(text + " AS " + base::QuoteIdentifier(parts.back()), table.name.begin);
    } else {
      edit.Generate(text + " ", table.name.begin);
      edit.Keep(table.alias.begin, table.alias.end);
    }
    return edit;
  }

  [[noreturn]] static void Refuse(const base::QualifiedName& view, const std::string& why) {
    throw base::Error(base::kFeatureNotSupported,
                      "view \"" + view.name + "\" cannot be read at an instant")
        .Detail("View " + view.Display() + ": " + why + ".");
  }

  const std::span<const ViewRelation> relations_;
  const RelationText& text_of_;
  size_t written_ = 0;
};

}  // namespace

std::string TextOfView(const base::QualifiedName& view, std::span<const ViewRelation> relations,
                       const RelationText& text_of) {
  return ViewWriter(relations, text_of).Write(view);
}

}  // namespace tidemark::rewrite
