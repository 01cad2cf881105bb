#include "wire/message.h"

#include <fmt/format.h>

#include "wire/bytes.h"

namespace tidemark::wire {
namespace {

// The largest message either side of PostgreSQL accepts (MaxAllocSize - 1).
constexpr uint32_t kMessageBytesMax = 0x3ffffffe;

/// One message, its length filled in when the writer goes out of scope.
class Framed {
 public:
  Framed(std::string& out, char type) : out_(out), bytes_(out) {
    bytes_.WriteChar(type);
    begin_ = out_.size();
    bytes_.WriteI32(0);
  }
  ~Framed() { bytes_.PatchI32(begin_, static_cast<int32_t>(out_.size() - begin_)); }
  Framed(const Framed&) = delete;
  Framed& operator=(const Framed&) = delete;
  ByteWriter* operator->() { return &bytes_; }

 private:
  std::string& out_;
  ByteWriter bytes_;
  size_t begin_ = 0;
};

std::vector<std::optional<std::string_view>> ReadValues(ByteReader& reader) {
  const uint16_t count = reader.ReadU16();
  std::vector<std::optional<std::string_view>> values;
  for (uint16_t i = 0; i < count; ++i) {
    const int32_t bytes = reader.ReadI32();
    if (bytes < 0) {
      values.emplace_back();
    } else {
      values.emplace_back(reader.ReadBytes(static_cast<size_t>(bytes)));
    }
  }
  return values;
}

void WriteValues(ByteWriter& out, const std::vector<std::optional<std::string_view>>& values) {
  out.WriteU16(static_cast<uint16_t>(values.size()));
  for (const auto& value : values) {
    out.WriteI32(value ? static_cast<int32_t>(value->size()) : -1);
    if (value) out.WriteBytes(*value);
  }
}

}  // namespace

std::optional<MessageHeader> ReadHeader(std::string_view bytes) {
  if (bytes.size() < MessageHeader::kBytes) return std::nullopt;
  const auto length = LoadBigEndian<uint32_t>(bytes.data() + 1);
  if (length < 4 || length > kMessageBytesMax) {
    throw base::Error(base::kProtocolViolation, "invalid message length");
  }
  return MessageHeader{bytes[0], length - 4};
}

void WriteMessage(std::string& out, char type, std::string_view body) {
  Framed(out, type)->WriteBytes(body);
}

Query Query::Read(std::string_view body) {
  ByteReader reader(body);
  return {.text = reader.ReadString()};
}

void Query::Write(std::string& out) const { Framed(out, kType)->WriteString(text); }

Parse Parse::Read(std::string_view body) {
  ByteReader reader(body);
  Parse parse;
  parse.statement = reader.ReadString();
  parse.text = reader.ReadString();
  parse.parameter_types = reader.ReadRest();
  ByteReader types(parse.parameter_types);
  types.ReadBytes(size_t{types.ReadU16()} * sizeof(uint32_t));
  types.ExpectEnd();
  return parse;
}

void Parse::Write(std::string& out) const {
  Framed message(out, kType);
  message->WriteString(statement);
  message->WriteString(text);
  message->WriteBytes(parameter_types.empty() ? std::string_view("\0\0", 2) : parameter_types);
}

std::optional<BindNames> BindNames::Read(std::string_view prefix) {
  const size_t portal_end = prefix.find('\0');
  if (portal_end == std::string_view::npos) return std::nullopt;
  const size_t statement_end = prefix.find('\0', portal_end + 1);
  if (statement_end == std::string_view::npos) return std::nullopt;
  return BindNames{prefix.substr(0, portal_end),
                   prefix.substr(portal_end + 1, statement_end - portal_end - 1)};
}

Bind Bind::Read(std::string_view body) {
  ByteReader reader(body);
  Bind bind;
  bind.portal = reader.ReadString();
  bind.statement = reader.ReadString();
  reader.ReadBytes(size_t{reader.ReadU16()} * sizeof(uint16_t));
  bind.values = ReadValues(reader);
  reader.ReadBytes(size_t{reader.ReadU16()} * sizeof(uint16_t));
  reader.ExpectEnd();
  return bind;
}

void Bind::Write(std::string& out) const {
  Framed message(out, kType);
  message->WriteString(portal);
  message->WriteString(statement);
  message->WriteU16(0);
  WriteValues(*message.operator->(), values);
  message->WriteU16(0);
}

Naming Naming::Read(std::string_view body) {
  ByteReader reader(body);
  Naming naming;
  naming.kind = reader.ReadChar();
  naming.name = reader.ReadString();
  return naming;
}

void Naming::WriteDescribe(std::string& out) const {
  Framed message(out, 'D');
  message->WriteChar(kind);
  message->WriteString(name);
}

void Naming::WriteClose(std::string& out) const {
  Framed message(out, 'C');
  message->WriteChar(kind);
  message->WriteString(name);
}

Execute Execute::Read(std::string_view body) {
  ByteReader reader(body);
  Execute execute;
  execute.portal = reader.ReadString();
  execute.rows_max = reader.ReadU32();
  return execute;
}

void Execute::Write(std::string& out) const {
  Framed message(out, kType);
  message->WriteString(portal);
  message->WriteU32(rows_max);
}

ErrorFields ErrorFields::Read(std::string_view body) {
  ByteReader reader(body);
  ErrorFields error;
  for (char field = reader.ReadChar(); field != 0; field = reader.ReadChar()) {
    error.fields.emplace_back(field, reader.ReadString());
  }
  return error;
}

ErrorFields ErrorFields::From(const base::Error& error, std::string_view severity) {
  ErrorFields made;
  made.fields = {{'S', std::string(severity)},
                 {'V', std::string(severity)},
                 {'C', error.state().str()},
                 {'M', error.message()}};
  made.Set('D', error.detail());
  made.Set('H', error.hint());
  if (error.position()) made.Set('P', fmt::format("{}", *error.position()));
  std::string where;
  for (const auto& line : error.context()) where += (where.empty() ? "" : "\n") + line;
  made.Set('W', where);
  return made;
}

std::string_view ErrorFields::Find(char field) const {
  for (const auto& [letter, value] : fields) {
    if (letter == field) return value;
  }
  return {};
}

void ErrorFields::Set(char field, std::string value) {
  if (value.empty()) {
    std::erase_if(fields, [&](const auto& pair) { return pair.first == field; });
    return;
  }
  for (auto& [letter, old] : fields) {
    if (letter == field) {
      old = std::move(value);
      return;
    }
  }
  fields.emplace_back(field, std::move(value));
}

bool ErrorFields::EndsConnection() const {
  std::string_view severity = Find('V');
  if (severity.empty()) severity = Find('S');
  return severity == "FATAL" || severity == "PANIC";
}

void ErrorFields::Write(std::string& out, char type) const {
  Framed message(out, type);
  for (const auto& [letter, value] : fields) {
    message->WriteChar(letter);
    message->WriteString(value);
  }
  message->WriteU8(0);
}

ReadyForQuery ReadyForQuery::Read(std::string_view body) {
  ByteReader reader(body);
  return {.status = reader.ReadChar()};
}

void ReadyForQuery::Write(std::string& out) const { Framed(out, kType)->WriteChar(status); }

RowDescription RowDescription::Read(std::string_view body) {
  ByteReader reader(body);
  const uint16_t count = reader.ReadU16();
  RowDescription row;
  for (uint16_t i = 0; i < count; ++i) {
    Field field;
    field.name = reader.ReadString();
    reader.ReadBytes(6);  // table OID, column number
    field.type_oid = reader.ReadU32();
    reader.ReadBytes(8);  // type size, type modifier, format
    row.fields.push_back(field);
  }
  reader.ExpectEnd();
  return row;
}

void RowDescription::Write(std::string& out) const {
  Framed message(out, kType);
  message->WriteU16(static_cast<uint16_t>(fields.size()));
  for (const Field& field : fields) {
    message->WriteString(field.name);
    message->WriteU32(0);
    message->WriteU16(0);
    message->WriteU32(field.type_oid);
    message->WriteI16(-1);
    message->WriteI32(-1);
    message->WriteU16(0);
  }
}

DataRow DataRow::Read(std::string_view body) {
  ByteReader reader(body);
  DataRow row;
  row.values = ReadValues(reader);
  reader.ExpectEnd();
  return row;
}

void DataRow::Write(std::string& out) const {
  Framed message(out, kType);
  WriteValues(*message.operator->(), values);
}

CommandComplete CommandComplete::Read(std::string_view body) {
  ByteReader reader(body);
  return {.tag = reader.ReadString()};
}

void CommandComplete::Write(std::string& out) const { Framed(out, kType)->WriteString(tag); }

}  // namespace tidemark::wire
