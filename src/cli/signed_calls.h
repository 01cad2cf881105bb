// The parts of tidemark.yaml on signed calls: `occurrences`, which come in, and `webhooks`, which
// go out. As config.h: reading only; mistakes throw F0000 with `file:line:column`, and no secret is
// shown.
#pragma once

#include "cli/config.h"
#include "cli/yaml_reader.h"

namespace tidemark::cli {

/// Reads `occurrences`, a map of datasets' names to how their calls are verified, into `config`,
/// whose sources, mirrors and datasets have been read. A configuration without any source is one
/// that serves only, and knows no datasets to compare the names with.
void ReadOccurrences(const YamlFile& file, YamlMap& map, Config& config);

/// Reads `webhooks`, a map of names to receivers. http goes to this machine only, unless the
/// webhook says `insecure: true`.
void ReadWebhooks(const YamlFile& file, YamlMap& map, Config& config);

}  // namespace tidemark::cli
