// What the conformance suite asks of every source: the same rows behind each kind of it, and the
// cases that go wrong. One specimen is one kind; it makes relations in a place of its own.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "source/reader.h"

namespace tidemark::tests {

/// Rows 1 to `rows`: id (an integer), name ("row 7", NULL where id is a multiple of 7), amount
/// (id + 0.25).
class Specimen {
 public:
  virtual ~Specimen() = default;
  virtual std::unique_ptr<source::SourceRelation> Rows(int rows) = 0;
  virtual std::unique_ptr<source::SourceRelation> Missing() = 0;
  /// Gives several thousand rows, then fails, unless reading it is refused at once.
  virtual std::unique_ptr<source::SourceRelation> Broken() = 0;
  /// A relation whose first row does not come within the hour. ServerSpecimens only.
  virtual std::unique_ptr<source::SourceRelation> Stuck() { return nullptr; }
  /// Names of facts that the position must have, none of them empty.
  virtual std::vector<std::string> Facts() const = 0;
};

struct SpecimenKind {
  std::string name;
  std::function<std::unique_ptr<Specimen>()> make;
};

std::vector<SpecimenKind> PostgresSpecimens();
std::vector<SpecimenKind> AdbcSpecimens();
std::vector<SpecimenKind> FileSpecimens();
/// Those of the above that can be Stuck.
std::vector<SpecimenKind> ServerSpecimens();

/// A new database of the shared cluster.
std::string NewDatabase();

/// Runs statements through an ADBC driver of the tests, "sqlite" or "postgresql".
void RunThroughAdbc(const std::string& driver, const std::string& uri,
                    const std::vector<std::string>& statements);
/// The path of that driver's shared library.
std::string AdbcDriverPath(const std::string& driver);

}  // namespace tidemark::tests
