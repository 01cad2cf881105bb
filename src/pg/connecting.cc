#include "pg/connecting.h"

#include <fmt/format.h>
#include <libpq-fe.h>

#include <algorithm>
#include <memory>

#include "base/error.h"

namespace tidemark::pg {

using base::Error;

std::string OneLine(const char* text) {
  std::string line = text == nullptr ? "" : text;
  while (!line.empty() && (line.back() == '\n' || line.back() == ' ')) line.pop_back();
  std::replace(line.begin(), line.end(), '\n', ' ');
  std::erase(line, '\t');
  return line;
}

pg_conn* Connect(const char* const* keys, const char* const* values, Bell& bell,
                 base::Deadline deadline, const std::stop_token& stop) {
  std::unique_ptr<PGconn, decltype(&PQfinish)> connection(PQconnectStartParams(keys, values, 1),
                                                          PQfinish);
  PGconn* raw = connection.get();
  if (raw == nullptr) throw Error(base::kCannotConnect, "could not connect: out of memory");
  for (auto state = PGRES_POLLING_WRITING; state != PGRES_POLLING_OK; state = PQconnectPoll(raw)) {
    if (PQstatus(raw) == CONNECTION_BAD || state == PGRES_POLLING_FAILED) {
      // libpq gives no SQLSTATE for refusals at start-up in all versions; read it from the text
      // is not allowed, so only what the server's error result carries is kept.
      throw Error(base::kCannotConnect,
                  fmt::format("could not connect: {}", OneLine(PQerrorMessage(raw))));
    }
    if (bell.Wait(PQsocket(raw), state == PGRES_POLLING_WRITING, deadline, stop) ==
        Ready::kDeadline) {
      throw Error(base::kCannotConnect, "could not connect: the server did not answer in time");
    }
  }
  PQsetnonblocking(raw, 1);
  return connection.release();
}

}  // namespace tidemark::pg
