// The status document (temporal/status.h) as text for people. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tidemark::cli {

/// The whole document, a paragraph a mirror.
std::string StatusText(const nlohmann::json& status);

/// One line on a mirror that is being copied or followed, such as "shop: copying, 1,200,000 of
/// about 2,000,000 rows (60 %)".
std::string ProgressLine(const nlohmann::json& mirror);

}  // namespace tidemark::cli
