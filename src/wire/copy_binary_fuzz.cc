// One stream read twice: whole, and in chunks of the size that the first byte gives. Both must
// find the same rows and fail or end alike. What was read whole is also written again.
#include "wire/copy_binary.h"

#include <cstdlib>

#include "base/error.h"

namespace {

using namespace tidemark::wire;  // NOLINT: a fuzz target is one file

struct Outcome {
  std::vector<std::string> rows;
  std::string written;
  bool failed = false;
};

Outcome ReadInChunks(std::string_view stream, size_t chunk_size) {
  Outcome outcome;
  CopyBinaryReader reader;
  CopyBinaryWriter writer(outcome.written);
  try {
    while (true) {
      const std::string chunk(stream.substr(0, chunk_size));
      stream.remove_prefix(chunk.size());
      reader.Feed(chunk);
      CopyBinaryReader::Step step;
      while ((step = reader.Next()) == CopyBinaryReader::Step::kRow) {
        outcome.rows.emplace_back(reader.row_bytes());
        writer.WriteRow(static_cast<int16_t>(reader.fields().size()));
        for (const CopyField& field : reader.fields()) writer.WriteField(field);
      }
      if (stream.empty()) break;
    }
    reader.ExpectEnd();
  } catch (const tidemark::base::Error&) {
    outcome.failed = true;
  }
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view stream(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Outcome whole = ReadInChunks(stream, stream.size() + 1);
  const Outcome split = ReadInChunks(stream, size_t{data[0]} + 1);
  if (whole.failed != split.failed || whole.rows != split.rows) std::abort();
  std::string joined;
  for (const std::string& row : whole.rows) joined += row;
  if (joined != whole.written) std::abort();
  return 0;
}
