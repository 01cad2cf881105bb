// The formats that a file can have, each opened as a stream of Arrow batches in the file's own
// types. Reads ahead by pages and blocks, never a whole file.
#pragma once

#include <memory>
#include <string>

#include "source/files/text_type.h"

namespace arrow {
class RecordBatchReader;
class Status;
}  // namespace arrow
namespace arrow::io {
class InputStream;
class RandomAccessFile;
}  // namespace arrow::io

namespace tidemark::source {

enum class FileFormat { kParquet, kCsv, kJsonLines, kArrowFile, kArrowStream };

/// By the ending of `path`: .parquet, .pq · .csv · .ndjson, .jsonl · .arrow, .feather, .ipc ·
/// .arrows; of text formats also with .gz or .zst behind. Throws 0A000 for any other.
FileFormat FormatOf(const std::string& path);

/// Whether the files of `format` say themselves which types they hold.
bool HasTypes(FileFormat format);

/// Parquet and Arrow IPC, in batches of at most `batch_rows_max` rows where the format is free to.
/// Throws 22000 with the path when the file is not of the format.
std::shared_ptr<arrow::RecordBatchReader> OpenTyped(
    FileFormat format, const std::string& path,
    const std::shared_ptr<arrow::io::RandomAccessFile>& file, int64_t batch_rows_max);

/// CSV (header line, comma, double quotes; an empty field without quotes is NULL) and NDJSON (one
/// object a line; a missing field is NULL) with the columns of `types`.
std::shared_ptr<arrow::RecordBatchReader> OpenText(
    FileFormat format, const std::string& path,
    const std::shared_ptr<arrow::io::RandomAccessFile>& file, const TextTypes& types);

/// Adds the columns of one text file and what their values look like; reads all of it.
void LearnTypes(FileFormat format, const std::string& path,
                const std::shared_ptr<arrow::io::RandomAccessFile>& file, const Limit& limit,
                TextTypes& types);

/// Throws for a status of reading `path` that is not OK: 22000 for wrong content, 58030 for I/O.
void CheckFile(const arrow::Status& status, const std::string& path);

/// `file`, decompressed by its ending.
std::shared_ptr<arrow::io::InputStream> Decompressed(
    const std::string& path, const std::shared_ptr<arrow::io::RandomAccessFile>& file);

}  // namespace tidemark::source
