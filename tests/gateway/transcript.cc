#include "tests/gateway/transcript.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "wire/bytes.h"
#include "wire/message.h"

namespace tidemark::tests {
namespace {

constexpr uint32_t kFirstOidOfUsers = 16384;

std::string Escaped(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    if (c >= ' ' && c <= '~' && c != '\\') {
      text += c;
    } else {
      text += fmt::format("\\{:02x}", static_cast<unsigned char>(c));
    }
  }
  return text;
}

void WriteBind(std::string& out, const FileStatement& statement, bool binary) {
  std::string body;
  wire::ByteWriter writer(body);
  writer.WriteString("");  // the unnamed portal
  writer.WriteString("");  // and statement
  writer.WriteI16(0);      // all values are text
  writer.WriteI16(static_cast<int16_t>(statement.parameters.size()));
  for (const auto& value : statement.parameters) {
    writer.WriteI32(value ? static_cast<int32_t>(value->size()) : -1);
    if (value) writer.WriteBytes(*value);
  }
  writer.WriteI16(1);
  writer.WriteI16(binary ? 1 : 0);
  wire::WriteMessage(out, wire::Bind::kType, body);
}

void WriteCopy(std::string& out, const FileStatement& statement) {
  using CopyEnd = FileStatement::CopyEnd;
  if (statement.copy_end == CopyEnd::kNone) return;
  if (!statement.copy_data.empty()) {
    wire::WriteMessage(out, wire::kCopyData, statement.copy_data);
  }
  if (statement.copy_end == CopyEnd::kDone) {
    wire::WriteMessage(out, wire::kCopyDone);
  } else {
    wire::WriteMessage(out, wire::kCopyFail, std::string("no more\0", 8));
  }
}

void WriteOpening(std::string& out, const FileStatement& statement, bool binary) {
  wire::Parse{{}, statement.sql, std::string_view("\0\0", 2)}.Write(out);
  wire::Naming{'S', {}}.WriteDescribe(out);
  WriteBind(out, statement, binary);
  wire::Naming{'P', {}}.WriteDescribe(out);
}

void WriteStatement(std::string& out, const FileStatement& statement, Manner manner) {
  if (manner == Manner::kSimple) {
    wire::Query{statement.sql}.Write(out);
    WriteCopy(out, statement);
    return;
  }
  WriteOpening(out, statement, manner == Manner::kBinary);
  wire::Execute{}.Write(out);
  WriteCopy(out, statement);
}

}  // namespace

const char* NameOf(Manner manner) {
  switch (manner) {
    case Manner::kSimple: return "simple";
    case Manner::kExtended: return "extended";
    case Manner::kBinary: return "binary";
    case Manner::kRowByRow: return "row by row";
    case Manner::kPipelined: return "pipelined";
    case Manner::kOneSyncInFive: return "one Sync in five";
  }
  return "";
}

std::vector<std::string> Transcript::Run(const std::vector<FileStatement>& statements,
                                         Manner manner) {
  std::vector<std::string> answers;
  std::string ahead;
  size_t owed = 0;
  for (size_t i = 0; i < statements.size(); ++i) {
    if (manner == Manner::kRowByRow) {
      answers.push_back(RowByRow(statements[i]));
      continue;
    }
    WriteStatement(ahead, statements[i], manner);
    const bool more = manner == Manner::kOneSyncInFive && i % 5 != 4 && i + 1 < statements.size();
    if (more) continue;
    if (manner != Manner::kSimple) wire::WriteMessage(ahead, wire::kSync);
    ++owed;
    if (manner == Manner::kPipelined || manner == Manner::kOneSyncInFive) continue;
    client_.Send(std::exchange(ahead, {}));
    answers.push_back(UpToReady());
    --owed;
  }
  if (owed > 0) client_.Send(ahead);
  for (; owed > 0; --owed) answers.push_back(UpToReady());
  return answers;
}

std::string Transcript::Start(const std::string& database, const std::string& user) {
  std::string start;
  wire::WriteStartup(start, {{"user", user}, {"database", database}});
  client_.Send(start);
  return UpToReady();
}

std::string Transcript::RowByRow(const FileStatement& statement) {
  std::string opening, next;
  WriteOpening(opening, statement, false);
  wire::Execute{{}, 2}.Write(next);
  wire::WriteMessage(next, wire::kFlush);
  std::string data;
  WriteCopy(data, statement);
  // The server ignores a Flush while it reads data.
  if (!data.empty()) wire::WriteMessage(data, wire::kFlush);
  client_.Send(opening + next + data);
  std::string told;
  do {
    told += Told(Next(told));
    if (last_ == 's') client_.Send(next);
    // Until the statement is done: CommandComplete, ErrorResponse, EmptyQueryResponse.
  } while (last_ != 'C' && last_ != 'E' && last_ != 'I');
  std::string sync;
  wire::WriteMessage(sync, wire::kSync);
  client_.Send(sync);
  return told + UpToReady();
}

std::string Transcript::UpToReady() {
  std::string told;
  do {
    told += Told(Next(told));
  } while (last_ != 'Z');
  return told;
}

// Throws, with what has been told of this answer, when nothing comes.
std::string Transcript::Next(const std::string& told) {
  std::string message;
  try {
    message = client_.Read();
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format("{} after: {}", error.what(), told));
  }
  if (message.empty()) throw std::runtime_error("the connection is closed after: " + told);
  last_ = message[0];
  return message;
}

std::string Transcript::Oid(uint32_t oid) {
  if (oid < kFirstOidOfUsers) return fmt::format("{}", oid);
  return fmt::format("new{}", seen_.emplace(oid, seen_.size()).first->second);
}

std::string Transcript::Columns(std::string_view body) {
  wire::ByteReader reader(body);
  std::string told;
  for (int n = reader.ReadI16(); n > 0; --n) {
    told += fmt::format(" {}", Escaped(reader.ReadString()));
    const uint32_t table = reader.ReadU32();
    const int16_t number = reader.ReadI16();
    if (options_.origins) told += fmt::format(" of {}.{}", Oid(table), number);
    told += fmt::format(" type {}", Oid(reader.ReadU32()));
    told += fmt::format(" size {}", reader.ReadI16());
    told += fmt::format(" modifier {}", reader.ReadI32());
    told += fmt::format(" format {};", reader.ReadI16());
  }
  return told;
}

// One line: the message's type and everything in it.
std::string Transcript::Told(const std::string& message) {
  const std::string_view body = std::string_view(message).substr(1);
  std::string told(1, message[0]);
  switch (message[0]) {
    case 'T':
      told += Columns(body);
      break;
    case 't': {  // ParameterDescription
      wire::ByteReader reader(body);
      for (int n = reader.ReadI16(); n > 0; --n) told += " " + Oid(reader.ReadU32());
      break;
    }
    case 'E':
    case 'N':
      for (const auto& [field, value] : wire::ErrorFields::Read(body).fields) {
        told += fmt::format(" {}={}", field, Escaped(value));
      }
      break;
    case 'K':  // the cancel key
      break;
    case 'A':  // a notification: the sender's process id first
      told += " " + Escaped(body.substr(4));
      break;
    default:
      told += " " + Escaped(body);
  }
  return told + "\n";
}

}  // namespace tidemark::tests
