// The files that a pattern names, read one after the other as one source relation. Complete reads
// only: files have no cursor.
#pragma once

#include <memory>
#include <string>

#include "source/reader.h"

namespace tidemark::source {

struct FileOptions {
  /// A path or an s3:// URI, wildcards in it; see FileSet.
  std::string pattern;
};

/// Looks at the files at the first call, not here. All must be of formats that FormatOf knows. Text
/// files are read once for their types before they are read for their rows.
std::unique_ptr<SourceRelation> OpenFileRelation(FileOptions options);

}  // namespace tidemark::source
