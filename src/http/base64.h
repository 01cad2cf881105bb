// Base64 with the standard alphabet and padding. Pure. RFC 4648, section 4.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tidemark::http {

std::string EncodeBase64(std::string_view bytes);

/// nullopt for anything that is no Base64; the padding may be left out.
std::optional<std::string> DecodeBase64(std::string_view text);

}  // namespace tidemark::http
