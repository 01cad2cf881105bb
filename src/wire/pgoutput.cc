#include "wire/pgoutput.h"

#include <fmt/format.h>

namespace tidemark::wire::pgoutput {

namespace {

using base::Lsn;
using base::Timestamp;

constexpr uint8_t kColumnIsKey = 1;
constexpr uint8_t kTruncateCascade = 1;
constexpr uint8_t kTruncateRestartIdentity = 2;
constexpr uint8_t kMessageTransactional = 1;

Lsn ReadLsn(ByteReader& in) { return Lsn(in.ReadU64()); }
Timestamp ReadTimestamp(ByteReader& in) { return Timestamp(in.ReadI64()); }

// The empty name of a schema stands for pg_catalog.
std::string_view ReadSchema(ByteReader& in) {
  const std::string_view schema = in.ReadString();
  return schema.empty() ? "pg_catalog" : schema;
}

std::string Letter(char letter) {
  const bool printable = letter > ' ' && letter < '\x7f';
  return printable ? fmt::format("\"{}\"", letter)
                   : fmt::format("0x{:02x}", static_cast<unsigned char>(letter));
}

[[noreturn]] void ThrowUnknown(std::string_view what, char letter, const ByteReader& in) {
  throw base::Error(base::kProtocolViolation,
                    fmt::format("unknown {} {} at offset {}", what, Letter(letter),
                                in.offset() == 0 ? 0 : in.offset() - 1));
}

[[noreturn]] void ThrowMisplaced(char kind, bool in_stream) {
  throw base::Error(base::kProtocolViolation,
                    fmt::format("replication message {} is out of place {} a stream block",
                                Letter(kind), in_stream ? "inside" : "outside"));
}

size_t ReadLength(ByteReader& in) {
  const int32_t length = in.ReadI32();
  if (length < 0) [[unlikely]] {
    throw base::Error(base::kProtocolViolation,
                      fmt::format("negative length {} at offset {}", length, in.offset() - 4));
  }
  return static_cast<size_t>(length);
}

void ReadTuple(ByteReader& in, std::vector<TupleField>& fields) {
  const uint16_t count = in.ReadU16();
  fields.clear();
  for (uint16_t i = 0; i < count; ++i) {
    const char kind = in.ReadChar();
    switch (kind) {
      case 't':
      case 'b':
        fields.push_back({static_cast<FieldKind>(kind), in.ReadBytes(ReadLength(in))});
        break;
      case 'n':
      case 'u':
        fields.push_back({static_cast<FieldKind>(kind), {}});
        break;
      default:
        ThrowUnknown("column kind", kind, in);
    }
  }
}

OldTuple ReadOldKind(ByteReader& in) {
  const char kind = in.ReadChar();
  switch (kind) {
    case 'K':
      return OldTuple::kKey;
    case 'O':
      return OldTuple::kFull;
    default:
      ThrowUnknown("tuple kind", kind, in);
  }
}

void ExpectNewTuple(ByteReader& in) {
  const char kind = in.ReadChar();
  if (kind != 'N') [[unlikely]] {
    ThrowUnknown("tuple kind", kind, in);
  }
}

ReplicaIdentity ReadIdentity(ByteReader& in) {
  const char letter = in.ReadChar();
  switch (letter) {
    case 'd':
    case 'n':
    case 'f':
    case 'i':
      return static_cast<ReplicaIdentity>(letter);
    default:
      ThrowUnknown("replica identity", letter, in);
  }
}

LogicalMessage ReadLogicalMessage(Xid xid, ByteReader& in) {
  LogicalMessage message{};
  message.xid = xid;
  message.transactional = (in.ReadU8() & kMessageTransactional) != 0;
  message.lsn = ReadLsn(in);
  message.prefix = in.ReadString();
  message.content = in.ReadBytes(ReadLength(in));
  return message;
}

StreamAbort ReadStreamAbort(ByteReader& in) {
  StreamAbort abort{in.ReadU32(), in.ReadU32(), {}};
  if (in.remaining() > 0) abort.aborted = {ReadLsn(in), ReadTimestamp(in)};
  return abort;
}

// Prepare, CommitPrepared and StreamPrepare differ in nothing but the letter.
template <typename Prepared>
Prepared ReadPrepared(ByteReader& in) {
  in.ReadU8();  // flags, none defined
  return Prepared{ReadLsn(in), ReadLsn(in), ReadTimestamp(in), in.ReadU32(), in.ReadString()};
}

}  // namespace

Message Decoder::Decode(std::string_view bytes) {
  try {
    ByteReader in(bytes);
    const char kind = in.ReadChar();
    Message message = Read(kind, in);
    in.ExpectEnd();
    if (const auto* start = std::get_if<StreamStart>(&message)) stream_xid_ = start->xid;
    if (std::holds_alternative<StreamStop>(message)) stream_xid_.reset();
    return message;
  } catch (base::Error& error) {
    error.AddContext(bytes.empty() ? std::string("decoding an empty replication message")
                                   : fmt::format("decoding replication message {} of {} bytes",
                                                 Letter(bytes.front()), bytes.size()));
    throw;
  }
}

Message Decoder::Read(char kind, ByteReader& in) {
  switch (kind) {
    case 'I':
    case 'U':
    case 'D':
    case 'T':
    case 'R':
    case 'Y':
    case 'M':
      return ReadChange(kind, in);
    case 'O':
      return Origin{ReadLsn(in), in.ReadString()};
    case 'E':
      if (!in_stream()) ThrowMisplaced(kind, false);
      return StreamStop{};
    default:
      if (in_stream()) ThrowMisplaced(kind, true);
      return ReadTransaction(kind, in);
  }
}

Message Decoder::ReadChange(char kind, ByteReader& in) {
  const Xid xid = in_stream() ? in.ReadU32() : 0;
  switch (kind) {
    case 'I': {
      const RelationOid relation = in.ReadU32();
      ExpectNewTuple(in);
      ReadTuple(in, new_fields_);
      return Insert{xid, relation, new_fields_};
    }
    case 'U':
      return ReadUpdate(xid, in);
    case 'D':
      return ReadDelete(xid, in);
    case 'T':
      return ReadTruncate(xid, in);
    case 'R':
      return ReadRelation(xid, in);
    case 'Y':
      return Type{xid, in.ReadU32(), ReadSchema(in), in.ReadString()};
    default:
      return ReadLogicalMessage(xid, in);
  }
}

Message Decoder::ReadTransaction(char kind, ByteReader& in) {
  switch (kind) {
    case 'B':
      return Begin{ReadLsn(in), ReadTimestamp(in), in.ReadU32()};
    case 'C':
      in.ReadU8();  // flags, none defined
      return Commit{ReadLsn(in), ReadLsn(in), ReadTimestamp(in)};
    case 'S':
      return StreamStart{in.ReadU32(), in.ReadU8() != 0};
    case 'c': {
      const Xid xid = in.ReadU32();
      in.ReadU8();  // flags, none defined
      return StreamCommit{xid, ReadLsn(in), ReadLsn(in), ReadTimestamp(in)};
    }
    case 'A':
      return ReadStreamAbort(in);
    default:
      return ReadPreparedTransaction(kind, in);
  }
}

Message Decoder::ReadPreparedTransaction(char kind, ByteReader& in) {
  switch (kind) {
    case 'b':
      return BeginPrepare{ReadLsn(in), ReadLsn(in), ReadTimestamp(in), in.ReadU32(),
                          in.ReadString()};
    case 'P':
      return ReadPrepared<Prepare>(in);
    case 'K':
      return ReadPrepared<CommitPrepared>(in);
    case 'p':
      return ReadPrepared<StreamPrepare>(in);
    case 'r':
      in.ReadU8();  // flags, none defined
      return RollbackPrepared{ReadLsn(in),       ReadLsn(in),  ReadTimestamp(in),
                              ReadTimestamp(in), in.ReadU32(), in.ReadString()};
    default:
      ThrowUnknown("replication message", kind, in);
  }
}

Relation Decoder::ReadRelation(Xid xid, ByteReader& in) {
  Relation relation{};
  relation.xid = xid;
  relation.oid = in.ReadU32();
  relation.schema = ReadSchema(in);
  relation.name = in.ReadString();
  relation.identity = ReadIdentity(in);
  const uint16_t count = in.ReadU16();
  columns_.clear();
  for (uint16_t i = 0; i < count; ++i) {
    const bool key = (in.ReadU8() & kColumnIsKey) != 0;
    columns_.push_back({key, in.ReadString(), in.ReadU32(), in.ReadI32()});
  }
  relation.columns = columns_;
  return relation;
}

Update Decoder::ReadUpdate(Xid xid, ByteReader& in) {
  Update update{};
  update.xid = xid;
  update.relation = in.ReadU32();
  const char kind = in.ReadChar();
  if (kind == 'K' || kind == 'O') {
    update.old_kind = static_cast<OldTuple>(kind);
    ReadTuple(in, old_fields_);
    update.old_tuple = old_fields_;
    ExpectNewTuple(in);
  } else if (kind != 'N') {
    ThrowUnknown("tuple kind", kind, in);
  }
  ReadTuple(in, new_fields_);
  update.new_tuple = new_fields_;
  return update;
}

Delete Decoder::ReadDelete(Xid xid, ByteReader& in) {
  const RelationOid relation = in.ReadU32();
  const OldTuple old_kind = ReadOldKind(in);
  ReadTuple(in, old_fields_);
  return Delete{xid, relation, old_kind, old_fields_};
}

Truncate Decoder::ReadTruncate(Xid xid, ByteReader& in) {
  const size_t count = ReadLength(in);
  const uint8_t options = in.ReadU8();
  relations_.clear();
  for (size_t i = 0; i < count; ++i) relations_.push_back(in.ReadU32());
  return Truncate{xid, (options & kTruncateCascade) != 0, (options & kTruncateRestartIdentity) != 0,
                  relations_};
}

}  // namespace tidemark::wire::pgoutput
