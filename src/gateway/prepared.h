// The session's prepared statements and portals whose text the gateway rewrote, by the names the
// client gave them. Statements that pass unchanged are not kept. One thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rewrite/statement.h"

namespace tidemark::gateway {

struct RewrittenStatement {
  rewrite::PositionMap positions;
  bool settles = false;
  std::vector<size_t> hidden_results;  // of a simple query, see rewrite::Rewritten
  int instant_position = 0;
};

class Prepared {
 public:
  using Statement = std::shared_ptr<const RewrittenStatement>;

  /// What a message changed: to be undone if the server refuses or skips that message.
  struct Change {
    bool portal;
    std::string name;
    Statement before;
  };
  using ChangePointer = std::shared_ptr<const Change>;

  /// A Parse was sent; nullptr when its text was not rewritten.
  ChangePointer OnParse(std::string_view name, Statement statement);
  /// A Bind was sent; FindPortal() then tells what the portal runs.
  ChangePointer OnBind(std::string_view portal, std::string_view name);
  ChangePointer OnClose(char kind, std::string_view name);
  /// Changes are undone the newest first.
  void Undo(const Change& change);
  /// A simple Query was sent: it ends the unnamed statement and portal.
  void OnQuery();

  /// nullptr when the statement passes unchanged.
  Statement FindStatement(std::string_view name) const;
  Statement FindPortal(std::string_view name) const;
  bool empty() const { return statements_.empty() && portals_.empty(); }

 private:
  using Names = std::map<std::string, Statement, std::less<>>;
  ChangePointer Set(bool portal, std::string_view name, Statement statement);
  Names statements_, portals_;
};

}  // namespace tidemark::gateway
