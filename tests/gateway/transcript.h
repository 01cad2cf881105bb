// What a server answers to statements, message by message and field by field, as text that can be
// compared between two connections. Identifiers that the server made up while the statements ran
// (OIDs of new relations and types) are numbered in order of appearance; everything else is exact.
// One thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/gateway/raw_client.h"
#include "tests/gateway/statement_file.h"

namespace tidemark::tests {

/// How statements are sent.
enum class Manner {
  kSimple,         // a Query each
  kExtended,       // Parse, Describe, Bind, Describe, Execute, Sync each; results in text
  kBinary,         // the same with results in binary
  kRowByRow,       // two rows an Execute, until the portal is done
  kPipelined,      // all of them before anything is read, a Sync each
  kOneSyncInFive,  // the same, a Sync after every fifth
};
const char* NameOf(Manner manner);

class Transcript {
 public:
  struct Options {
    bool origins = true;  // whether columns tell the table they come from
  };
  explicit Transcript(gateway::RawClient& client) : client_(client) {}
  Transcript(gateway::RawClient& client, Options options) : client_(client), options_(options) {}

  /// The answers to each statement; with kOneSyncInFive to each five.
  std::vector<std::string> Run(const std::vector<FileStatement>& statements, Manner manner);
  /// The answers to a client's first message up to ReadyForQuery, without the cancel key.
  std::string Start(const std::string& database, const std::string& user);

 private:
  std::string UpToReady();
  std::string Next(const std::string& told);
  std::string RowByRow(const FileStatement& statement);
  std::string Told(const std::string& message);
  std::string Columns(std::string_view body);
  std::string Oid(uint32_t oid);

  gateway::RawClient& client_;
  Options options_;
  std::map<uint32_t, size_t> seen_;
  char last_ = 0;  // type of the newest message
};

}  // namespace tidemark::tests
