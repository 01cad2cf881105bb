// Random transactions as lists of statements. Pure: what a seed writes is always the same; what
// becomes of it depends on the other sessions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace tidemark::oracle {

/// For MirrorOptions::batch_changes, where transactions are to be applied in parts.
constexpr size_t kBatchChanges = 2000;

struct ScriptOptions {
  bool shapes = false;    // some transactions add a column
  bool changing = false;  // some create tables and write to those of ChangingTables
  bool rewrites = false;  // with changing: some also rewrite or rename these
};

class ScriptWriter {
 public:
  /// `session` numbers the writer: it keeps some keys, prepared transactions and a table to itself.
  ScriptWriter(uint64_t seed, int session, ScriptOptions options)
      : random_(seed), session_(session), options_(options) {}

  /// The statements of one transaction, BEGIN and COMMIT included where there are any.
  std::vector<std::string> Next();
  /// One of more than kBatchChanges changes.
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
  // changing_script.cc
  void AddChanging(Script& script);
  void AddRewritten(Script& script);
  void AddReshaped(Script& script);
  void AddLate(Script& script);
  void AddRewrite(Script& script);
  void AddReshape(Script& script);
  Script NextChange();
  Script NextLate();

  std::mt19937_64 random_;
  int session_;
  ScriptOptions options_;
  int large_ = 0, prepared_ = 0, volatile_ = 0, joins_ = 0;
  bool late_ = false;                 // its own table has been created
  std::vector<std::string> waiting_;  // prepared and not yet ended
};

}  // namespace tidemark::oracle
