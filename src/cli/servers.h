// The two servers of the serving half, gateway and http, as the configuration describes them.
#pragma once

#include "cli/config.h"
#include "gateway/options.h"
#include "http/options.h"

namespace tidemark::cli {

/// Throws F0000 when a server that is wanted would listen elsewhere in the clear or on the other
/// one's port, or shows a certificate or key that cannot be used.
void RequireServable(const Config& config);

/// `superusers`: whether the command line lets the store's superusers in.
gateway::Options GatewayOptions(const Config& config, bool superusers);

http::Options HttpOptions(const Config& config);

}  // namespace tidemark::cli
