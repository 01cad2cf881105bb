// The server's own pages: health, status, bases and their evidence. Each is a few lines around what
// temporal/status.h loads. docs/reference/http.md.
#pragma once

#include "http/router.h"

namespace tidemark::http {

void AddPages(Router& router);

}  // namespace tidemark::http
