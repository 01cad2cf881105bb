// How a connection to a server begins, for those in this room who hold libpq's handle themselves.
#pragma once

#include <stop_token>
#include <string>

#include "base/clock.h"
#include "pg/wait.h"

struct pg_conn;

namespace tidemark::pg {

/// libpq's own text as one line.
std::string OneLine(const char* text);

/// Connects with libpq's parameters (nullptr ends both arrays; the first is a connection string).
/// The handle is the caller's, for PQfinish. Throws 08001 when the server cannot be reached or
/// refuses; never shows the password.
pg_conn* Connect(const char* const* keys, const char* const* values, Bell& bell,
                 base::Deadline deadline, const std::stop_token& stop);

}  // namespace tidemark::pg
