// The session's prepared statements and portals whose text the gateway rewrote, by the names the
// client gave them. Statements that pass unchanged are not kept. One thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "rewrite/statement.h"

namespace tidemark::gateway {

struct RewrittenStatement {
  rewrite::PositionMap positions;
  bool settles = false;
};

class Prepared {
 public:
  using Statement = std::shared_ptr<const RewrittenStatement>;

  /// A Parse was sent; nullptr when its text was not rewritten. The server refuses a name that is
  /// in use, so a named statement that settles keeps settling until it is closed.
  void OnParse(std::string_view name, Statement statement);
  /// A Bind was sent; returns what the portal runs.
  Statement OnBind(std::string_view portal, std::string_view name);
  void OnClose(char kind, std::string_view name);
  /// A simple Query was sent: it ends the unnamed statement and portal.
  void OnQuery();

  /// nullptr when the statement passes unchanged.
  Statement FindStatement(std::string_view name) const;
  Statement FindPortal(std::string_view name) const;
  bool empty() const { return statements_.empty() && portals_.empty(); }

 private:
  using Names = std::map<std::string, Statement, std::less<>>;
  Names statements_, portals_;
};

}  // namespace tidemark::gateway
