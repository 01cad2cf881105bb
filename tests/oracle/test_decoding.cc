#include "tests/oracle/test_decoding.h"

#include <sstream>
#include <stdexcept>

namespace tidemark::oracle {

namespace {

// A cursor over one line.
class Line {
 public:
  explicit Line(std::string_view text) : text_(text), rest_(text) {}

  bool Skip(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  void Expect(std::string_view word) {
    if (!Skip(word)) Fail();
  }
  std::string_view Until(std::string_view word) {
    const auto at = rest_.find(word);
    if (at == std::string_view::npos) Fail();
    const auto taken = rest_.substr(0, at);
    rest_.remove_prefix(at + word.size());
    return taken;
  }
  bool empty() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }
  void Drop(size_t bytes) { rest_.remove_prefix(bytes); }
  [[noreturn]] void Fail() const {
    throw std::runtime_error("test_decoding printed what the model cannot read: " +
                             std::string(text_.substr(0, 400)));
  }

 private:
  std::string_view text_, rest_;
};

Field ReadValue(Line& line) {
  if (line.Skip("unchanged-toast-datum")) return {std::nullopt, true};
  if (line.Skip("'")) {
    std::string value;
    for (;;) {
      value += line.Until("'");
      if (!line.Skip("'")) return {std::move(value), false};
      value += '\'';
    }
  }
  const auto rest = line.rest();
  const auto end = std::min(rest.find(' '), rest.size());
  const auto word = rest.substr(0, end);
  line.Drop(end);
  if (word == "null") return {};
  return {std::string(word), false};
}

// `id[integer]:1 note[text]:'abc'`, up to `stop` or the end of the line.
Fields ReadFields(Line& line, std::string_view stop) {
  Fields fields;
  while (!line.empty()) {
    if (!stop.empty() && line.Skip(stop)) break;
    const auto name = std::string(line.Until("["));
    line.Until("]:");
    fields.emplace(name, ReadValue(line));
    line.Skip(" ");
  }
  return fields;
}

std::string WithoutSchema(std::string_view name) {
  const auto dot = name.find('.');
  return std::string(dot == std::string_view::npos ? name : name.substr(dot + 1));
}

}  // namespace

Change ReadChange(std::string_view text) {
  Line line(text);
  line.Expect("table ");
  Change change;
  for (auto names = line.Until(": "); !names.empty();) {
    const auto comma = std::min(names.find(", "), names.size());
    change.tables.push_back(WithoutSchema(names.substr(0, comma)));
    names.remove_prefix(std::min(comma + 2, names.size()));
  }
  if (line.Skip("TRUNCATE:")) {
    change.kind = Change::Kind::kTruncate;
    return change;
  }
  if (line.Skip("INSERT: ")) {
    change.kind = Change::Kind::kInsert;
    change.new_row = ReadFields(line, "");
  } else if (line.Skip("UPDATE: ")) {
    change.kind = Change::Kind::kUpdate;
    if (line.Skip("old-key: ")) change.old_row = ReadFields(line, "new-tuple: ");
    change.new_row = ReadFields(line, "");
  } else if (line.Skip("DELETE: ")) {
    change.kind = Change::Kind::kDelete;
    if (!line.Skip("(no-tuple-data)")) change.old_row = ReadFields(line, "");
  } else {
    line.Fail();
  }
  return change;
}

// rewrite TABLE ADDED TYPES | rename TABLE FROM TO | reshape TABLE | join TABLE
std::optional<Change> ReadMessage(std::string_view text) {
  Line line(text);
  line.Until("prefix: ");
  if (line.Until(",") != kMessagePrefix) return std::nullopt;
  line.Until("content:");
  std::istringstream words{std::string(line.rest())};
  std::string kind;
  Change change;
  change.tables.resize(1);
  words >> kind >> change.tables[0];
  if (kind == "rewrite") {
    change.kind = Change::Kind::kRewrite;
    words >> change.added >> change.types;
  } else if (kind == "rename") {
    change.kind = Change::Kind::kRename;
    words >> change.from >> change.to;
  } else if (kind == "reshape") {
    change.kind = Change::Kind::kReshape;
  } else if (kind == "join") {
    change.kind = Change::Kind::kJoin;
  } else {
    line.Fail();
  }
  if (!words) line.Fail();
  return change;
}

std::string ReadCommitTime(std::string_view line) {
  const auto begin = line.find("(at ");
  if (begin == std::string_view::npos) return "";
  return std::string(line.substr(begin + 4, line.rfind(')') - begin - 4));
}

}  // namespace tidemark::oracle
