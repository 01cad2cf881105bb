// A relation read to its end into a table of a real PostgreSQL, the way a capture stages it: what
// the tests of sources compare.
#pragma once

#include <string>

#include "pg/connection.h"
#include "source/reader.h"

namespace tidemark::tests {

struct Loaded {
  source::End end;
  int batches = 0;
  int64_t rows_max = 0;   // of one batch
  int64_t bytes_max = 0;  // of one batch, as Arrow counts its own buffers' parts
};

/// A minute from now.
source::Limit Soon();

/// Pulls `reader` to its end into the new table `table`: `_ordinal`, then the columns as the shape
/// has them. Checks that each batch is of the schema, not empty, valid, and that ordinals run on.
Loaded Load(source::Reader& reader, pg::Connection& store, const std::string& table);

}  // namespace tidemark::tests
