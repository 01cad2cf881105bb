// Random transactions as lists of statements. Pure: what a seed writes is always the same; what
// becomes of it depends on the other sessions.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace tidemark::oracle {

class ScriptWriter {
 public:
  /// `session` numbers the writer: it keeps some keys and prepared transactions to itself.
  /// `shapes`: some transactions add a column.
  ScriptWriter(uint64_t seed, int session, bool shapes)
      : random_(seed), session_(session), shapes_(shapes) {}

  /// The statements of one transaction, BEGIN and COMMIT included where there are any.
  std::vector<std::string> Next();
  /// One of more than 20,000 changes, so that the mirror applies it in parts.
  std::vector<std::string> NextLarge();

 private:
  using Script = std::vector<std::string>;
  int Below(int bound) { return static_cast<int>(random_() % static_cast<uint64_t>(bound)); }
  int Id() { return 1 + Below(40); }
  std::string Large();
  std::string Text();

  void AddChanges(Script& script, int count);
  void AddSavepoints(Script& script, int depth);
  void AddItems(Script& script);
  void AddPairs(Script& script);
  void AddWide(Script& script);
  void AddBag(Script& script);
  void AddTransfer(Script& script);
  void AddLines(Script& script);
  void AddFamily(Script& script);
  void AddPublishedInPart(Script& script);
  void AddTyped(Script& script);
  void AddCaught(Script& script);
  void AddTruncate(Script& script);
  void AddEmpty(Script& script);
  void AddShape(Script& script);

  std::mt19937_64 random_;
  int session_;
  bool shapes_;
  int large_ = 0, prepared_ = 0;
  std::vector<std::string> waiting_;  // prepared and not yet ended
};

}  // namespace tidemark::oracle
