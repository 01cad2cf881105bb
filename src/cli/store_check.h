// The two kinds of `tidemark verify` that contact the store only: whether its row versions still
// give the versions that were published, and whether their periods can be what was published. Exit
// code 4 when not.
#pragma once

#include <string>
#include <vector>

#include "base/identifier.h"
#include "cli/exit_code.h"
#include "cli/invocation.h"

namespace tidemark::cli {

/// schema.table as `status` shows it; the first dot parts the two.
base::QualifiedName NameOf(const std::string& text);
std::string Shown(const base::QualifiedName& name);

/// --versions: of the datasets outside mirrors that are called `names`, or of all. Throws 42P01.
ExitCode CheckVersions(const Invocation& invocation, const std::vector<std::string>& names);
/// --history: of all datasets, or those called `names`. Throws 42P01.
ExitCode CheckHistories(const Invocation& invocation, const std::vector<std::string>& names);

}  // namespace tidemark::cli
