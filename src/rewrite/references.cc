#include "rewrite/references.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/identifier.h"
#include "rewrite/syntax_tree.h"

namespace tidemark::rewrite {
namespace {

using Json = nlohmann::json;

/// Names that WITH clauses make visible, innermost first.
struct Scope {
  const Scope* outer = nullptr;
  std::vector<std::string> names;
  bool Defines(const std::string& name) const {
    return std::ranges::find(names, name) != names.end() || (outer && outer->Defines(name));
  }
};

/// One item of a FROM list under the name that FOR UPDATE OF knows it by.
struct FromItem {
  std::string name;
  std::vector<size_t> tables;
};

bool IsQuery(const std::string& key) {
  return key == "SelectStmt" || key == "InsertStmt" || key == "UpdateStmt" || key == "DeleteStmt" ||
         key == "MergeStmt";
}

/// The command that `key` is the node of, where its relation is a target.
std::string_view CommandOf(const std::string& key) {
  if (key == "InsertStmt") return "INSERT";
  if (key == "UpdateStmt") return "UPDATE";
  if (key == "DeleteStmt") return "DELETE";
  if (key == "MergeStmt") return "MERGE";
  if (key == "TruncateStmt") return "TRUNCATE";
  if (key == "CopyStmt") return "COPY";
  if (key == "LockStmt") return "LOCK TABLE";
  return {};
}

std::string_view LockWords(const std::string& strength) {
  if (strength == "LCS_FORKEYSHARE") return "FOR KEY SHARE";
  if (strength == "LCS_FORSHARE") return "FOR SHARE";
  if (strength == "LCS_FORNOKEYUPDATE") return "FOR NO KEY UPDATE";
  return "FOR UPDATE";
}

std::string AliasOf(const Json& node) {
  const auto alias = node.find("alias");
  return alias == node.end() ? std::string() : alias->value("aliasname", std::string());
}

class Walk {
 public:
  Walk(size_t offset, QueryLevels& levels) : offset_(offset), levels_(levels) {}

  References Find(const Json& tree) {
    OpenLevel(0);
    Visit(tree);
    std::ranges::sort(found_.columns, {}, &ColumnReference::offset);
    return std::move(found_);
  }

 private:
  void OpenLevel(size_t outer) {
    level_ = levels_.size();
    levels_.push_back(outer);
  }

  /// Everything below `root` that is in the same query, without recursion: expressions may be deep.
  void Visit(const Json& root) {
    std::vector<const Json*> pending = {&root};
    while (!pending.empty()) {
      const Json& node = *pending.back();
      pending.pop_back();
      if (node.is_object() && node.contains("relname")) {
        AddTable(node, /*reads=*/false);
        continue;
      }
      for (auto child = node.begin(); child != node.end(); ++child) {
        if (!child->is_structured()) continue;
        if (!node.is_object() || !VisitAs(child.key(), *child)) pending.push_back(&*child);
      }
    }
  }

  /// Handles the nodes that mean more than what is below them; false for any other.
  bool VisitAs(const std::string& key, const Json& node) {
    if (IsQuery(key)) {
      Query(key, node);
    } else if (key == "ColumnRef") {
      AddColumn(node);
    } else if (key == "FuncCall") {
      AddCall(node);
      return false;
    } else if (const std::string_view command = CommandOf(key); !command.empty()) {
      const std::string_view before = std::exchange(command_, command);
      Visit(node);
      command_ = before;
    } else {
      return false;
    }
    return true;
  }

  /// Returns the items of its FROM, which a row lock around it reaches too.
  std::vector<FromItem> Query(const std::string& kind, const Json& query) {
    const size_t outer_level = level_;
    const Scope* const outer_scope = scope_;
    const std::string_view outer_command = std::exchange(command_, CommandOf(kind));
    OpenLevel(outer_level);
    Scope scope{outer_scope, {}};
    if (const auto with = query.find("withClause"); with != query.end()) With(*with, scope);
    scope_ = &scope;
    std::vector<FromItem> items;
    // The arms of UNION and its like, without recursion: there may be many.
    std::vector<const Json*> arms = {&query};
    const size_t level = level_;
    while (!arms.empty()) {
      const Json& arm = *arms.back();
      arms.pop_back();
      if (&arm != &query && (arm.contains("withClause") || arm.contains("lockingClause"))) {
        Append(items, Query(kind, arm));
        continue;
      }
      if (&arm != &query) OpenLevel(level);
      for (auto part = arm.begin(); part != arm.end(); ++part) {
        if (kind == "SelectStmt" && (part.key() == "larg" || part.key() == "rarg")) {
          arms.push_back(&*part);
        } else {
          Append(items, PartOfQuery(part.key(), *part));
        }
      }
      level_ = level;
    }
    if (const auto locks = query.find("lockingClause"); locks != query.end()) {
      for (const Json& lock : *locks) AddLock(lock.at("LockingClause"), items);
    }
    scope_ = outer_scope;
    level_ = outer_level;
    command_ = outer_command;
    return items;
  }

  std::vector<FromItem> PartOfQuery(const std::string& key, const Json& part) {
    std::vector<FromItem> items;
    if (key == "fromClause" || key == "usingClause") {
      for (const Json& item : part) Append(items, From(item));
    } else if (key == "sourceRelation") {
      return From(part);
    } else if (key != "withClause" && key != "lockingClause" && part.is_structured()) {
      Visit(part);
    }
    return items;
  }

  static void Append(std::vector<FromItem>& items, std::vector<FromItem> more) {
    std::ranges::move(more, std::back_inserter(items));
  }

  void With(const Json& with, Scope& scope) {
    const Json none = Json::array();
    const auto found = with.find("ctes");
    const Json& ctes = found == with.end() ? none : *found;
    const auto name_of = [](const Json& cte) {
      return cte.at("CommonTableExpr").value("ctename", std::string());
    };
    const bool recursive = with.value("recursive", false);
    if (recursive) {
      for (const Json& cte : ctes) scope.names.push_back(name_of(cte));
    }
    for (const Json& cte : ctes) {
      scope_ = &scope;
      Visit(cte);
      if (!recursive) scope.names.push_back(name_of(cte));
    }
  }

  std::vector<FromItem> From(const Json& item) {
    if (const auto table = item.find("RangeVar"); table != item.end()) {
      return {AddTable(*table, /*reads=*/true)};
    }
    if (const auto join = item.find("JoinExpr"); join != item.end()) {
      std::vector<FromItem> items = From(join->at("larg"));
      Append(items, From(join->at("rarg")));
      if (const auto on = join->find("quals"); on != join->end()) Visit(*on);
      return items;
    }
    if (const auto select = item.find("RangeSubselect"); select != item.end()) {
      return {FromSubselect(*select)};
    }
    if (const auto sample = item.find("RangeTableSample"); sample != item.end()) {
      return FromSample(*sample);
    }
    Visit(item);
    return {};
  }

  FromItem FromSubselect(const Json& select) {
    FromItem whole{AliasOf(select), {}};
    for (const FromItem& inner : Query("SelectStmt", select.at("subquery").at("SelectStmt"))) {
      std::ranges::copy(inner.tables, std::back_inserter(whole.tables));
    }
    return whole;
  }

  std::vector<FromItem> FromSample(const Json& sample) {
    std::vector<FromItem> items = From(sample.at("relation"));
    for (const FromItem& sampled : items) {
      for (size_t i : sampled.tables) {
        found_.tables[i].sample_offset = offset_ + LocationOf(sample);
      }
    }
    for (const char* part : {"args", "repeatable"}) {
      if (const auto found = sample.find(part); found != sample.end()) Visit(*found);
    }
    return items;
  }

  FromItem AddTable(const Json& range_var, bool reads) {
    TableReference table{.offset = offset_ + LocationOf(range_var), .name = {}};
    for (const char* part : {"catalogname", "schemaname", "relname"}) {
      if (range_var.contains(part)) table.name.push_back(range_var.at(part).get<std::string>());
    }
    const std::string alias = AliasOf(range_var);
    table.has_alias = !alias.empty();
    table.reads = reads;
    if (!reads) table.target_of = command_;
    table.is_cte = reads && table.name.size() == 1 && scope_ && scope_->Defines(table.name[0]);
    table.level = level_;
    FromItem item{alias.empty() ? table.name.back() : alias, {found_.tables.size()}};
    found_.tables.push_back(std::move(table));
    return item;
  }

  void AddColumn(const Json& column_ref) {
    auto column = SchemaQualifiedColumn(column_ref);
    if (!column) return;
    column->offset += offset_;
    column->level = level_;
    found_.columns.push_back(std::move(*column));
  }

  void AddCall(const Json& call) {
    std::string name;
    for (const std::string& part : NamesOf(call.at("funcname"))) {
      name += (name.empty() ? "" : ".") + base::QuoteIdentifier(part);
    }
    if (std::ranges::find(found_.calls, name) == found_.calls.end()) {
      found_.calls.push_back(std::move(name));
    }
  }

  void AddLock(const Json& clause, const std::vector<FromItem>& items) {
    RowLock lock{LockWords(clause.value("strength", std::string())), {}, {}};
    const auto names = clause.find("lockedRels");
    for (const FromItem& item : items) {
      const auto locks_item = [&](const Json& name) {
        return name.at("RangeVar").value("relname", std::string()) == item.name;
      };
      if (names == clause.end() || std::ranges::any_of(*names, locks_item)) {
        std::ranges::copy(item.tables, std::back_inserter(lock.tables));
      }
    }
    if (names != clause.end() && !names->empty()) {
      lock.offset = offset_ + LocationOf(names->front().at("RangeVar"));
    }
    found_.locks.push_back(std::move(lock));
  }

  const size_t offset_;
  QueryLevels& levels_;
  References found_;
  const Scope* scope_ = nullptr;
  size_t level_ = 0;
  std::string_view command_;
};

}  // namespace

bool IsWithin(const QueryLevels& levels, size_t inner, size_t outer) {
  while (inner != outer && inner != 0) inner = levels[inner];
  return inner == outer;
}

References FindReferences(const Json& tree, size_t offset, QueryLevels& levels) {
  return Walk(offset, levels).Find(tree);
}

std::optional<ColumnReference> SchemaQualifiedColumn(const Json& column_ref) {
  const auto fields = column_ref.find("fields");
  if (fields == column_ref.end()) return std::nullopt;
  ColumnReference column{.offset = LocationOf(column_ref), .name = NamesOf(*fields)};
  column.star = column.name.size() < fields->size();
  if (fields->size() < 3 || fields->size() > 4) return std::nullopt;
  if (column.name.size() + (column.star ? 1 : 0) != fields->size()) return std::nullopt;
  return column;
}

}  // namespace tidemark::rewrite
