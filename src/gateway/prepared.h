// The session's prepared statements and portals whose text the gateway rewrote, or might have to,
// by the names the client gave them. One thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rewrite/statement.h"

namespace tidemark::gateway {

struct RewrittenStatement {
  std::optional<rewrite::PositionMap> positions;  // nullopt: it passed as it came
  bool settles = false;
  std::vector<size_t> hidden_results;  // of a simple query, see rewrite::Rewritten
  int instant_position = 0;
  /// What the session was pinned to when it was written, see Inquiry::pin().
  std::string pin = {};
  /// The client's Parse message, whole: to be written anew once the pin is another one.
  std::string client_parse = {};
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

  /// A Parse was sent; nullptr when its text was not rewritten and no pin can be in the way.
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
