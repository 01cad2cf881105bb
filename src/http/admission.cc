#include "http/admission.h"

#include "http/bearer_token.h"

namespace tidemark::http {

std::variant<Router::Route, Response> Admit(const Router& router, std::string_view token,
                                            const Request& request, std::string_view raw_path) {
  auto found = router.Find(request.method, raw_path);
  const auto* route = std::get_if<Router::Route>(&found);
  const bool open = route != nullptr && route->access == Access::kOpen;
  if (!open && !ShowsToken(request, token)) return TokenWanted();
  return found;
}

}  // namespace tidemark::http
