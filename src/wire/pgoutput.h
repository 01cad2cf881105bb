// Messages of PostgreSQL's pgoutput plugin, protocol versions 1 to 4, as structs that borrow the
// bytes. Not a consumer: no relation cache, no transaction assembly, no reading of values.
// One decoder belongs to one stream and one thread.
// Manual: "Logical Replication Message Formats"; our page: docs/formats/pgoutput.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/lsn.h"
#include "wire/bytes.h"

namespace tidemark::wire::pgoutput {

using Xid = uint32_t;
using RelationOid = uint32_t;
using TypeOid = uint32_t;

enum class FieldKind : char {
  kNull = 'n',
  kUnchanged = 'u',  // a large value that the update did not touch and the source did not send
  kText = 't',
  kBinary = 'b',
};

struct TupleField {
  FieldKind kind;
  std::string_view value;  // empty for kNull and kUnchanged
};

/// The columns of one row image in the order of the Relation message in force.
using Tuple = std::span<const TupleField>;

enum class ReplicaIdentity : char { kDefault = 'd', kNothing = 'n', kFull = 'f', kIndex = 'i' };

struct RelationColumn {
  bool key;  // part of the replica identity
  std::string_view name;
  TypeOid type;
  int32_t type_modifier;
};

/// Which old row image an update or delete carries.
enum class OldTuple : char {
  kNone = 0,
  kKey = 'K',   // identity columns only, every other column kNull
  kFull = 'O',  // the whole row: REPLICA IDENTITY FULL
};

// In the structs below `xid` of a change is the (sub)transaction it belongs to, and 0 outside a
// stream block, where the Begin before it says so.

struct Begin {
  base::Lsn commit_lsn;  // where the commit record starts
  base::Timestamp committed_at;
  Xid xid;
};
struct Commit {
  base::Lsn commit_lsn;
  base::Lsn end_lsn;  // where the commit record ends: the position to resume from
  base::Timestamp committed_at;
};
struct Origin {
  base::Lsn commit_lsn;  // at the origin
  std::string_view name;
};
/// In force from here on for its table; inside a stream block for that transaction, and for all
/// once it commits, since the source does not send it again then.
struct Relation {
  Xid xid;
  RelationOid oid;
  std::string_view schema;
  std::string_view name;
  ReplicaIdentity identity;
  std::span<const RelationColumn> columns;
};
/// Sent before a relation whose columns have a user-defined type. For a domain: the OID is the
/// domain's, the names are its base type's.
struct Type {
  Xid xid;
  TypeOid oid;
  std::string_view schema;
  std::string_view name;
};
struct Insert {
  Xid xid;
  RelationOid relation;
  Tuple new_tuple;
};
struct Update {
  Xid xid;
  RelationOid relation;
  OldTuple old_kind;
  Tuple old_tuple;  // empty for OldTuple::kNone
  Tuple new_tuple;
};
struct Delete {
  Xid xid;
  RelationOid relation;
  OldTuple old_kind;  // never kNone
  Tuple old_tuple;
};
struct Truncate {
  Xid xid;
  bool cascade;
  bool restart_identity;
  std::span<const RelationOid> relations;
};
/// What pg_logical_emit_message wrote. Inside a stream block its xid is the top-level one even
/// when a subtransaction emitted it.
struct LogicalMessage {
  Xid xid;
  bool transactional;
  base::Lsn lsn;
  std::string_view prefix;
  std::string_view content;
};
struct StreamStart {
  Xid xid;     // top-level transaction
  bool first;  // its first block
};
struct StreamStop {};
struct StreamCommit {
  Xid xid;
  base::Lsn commit_lsn;
  base::Lsn end_lsn;
  base::Timestamp committed_at;
};
struct StreamAbort {
  Xid xid;
  Xid subxid;  // == xid when the whole transaction was rolled back
  struct Instant {
    base::Lsn lsn;
    base::Timestamp at;
  };
  std::optional<Instant> aborted;  // sent with streaming = parallel only
};
struct BeginPrepare {
  base::Lsn prepare_lsn;
  base::Lsn end_lsn;
  base::Timestamp prepared_at;
  Xid xid;
  std::string_view gid;
};
struct Prepare {
  base::Lsn prepare_lsn;
  base::Lsn end_lsn;
  base::Timestamp prepared_at;
  Xid xid;
  std::string_view gid;
};
struct CommitPrepared {
  base::Lsn commit_lsn;
  base::Lsn end_lsn;
  base::Timestamp committed_at;
  Xid xid;
  std::string_view gid;
};
struct RollbackPrepared {
  base::Lsn prepare_end_lsn;
  base::Lsn rollback_end_lsn;
  base::Timestamp prepared_at;
  base::Timestamp rolled_back_at;
  Xid xid;
  std::string_view gid;
};
struct StreamPrepare {
  base::Lsn prepare_lsn;
  base::Lsn end_lsn;
  base::Timestamp prepared_at;
  Xid xid;
  std::string_view gid;
};

using Message =
    std::variant<Insert, Update, Delete, Begin, Commit, Origin, Relation, Type, Truncate,
                 LogicalMessage, StreamStart, StreamStop, StreamCommit, StreamAbort, BeginPrepare,
                 Prepare, CommitPrepared, RollbackPrepared, StreamPrepare>;

class Decoder {
 public:
  /// Decode one message. Texts and values point into `bytes`; tuples, columns and relation lists
  /// are held by the decoder and are valid until its next Decode. Allocates nothing once its
  /// buffers have grown to the widest table. Throws 08P01 for a message that is short, long,
  /// unknown, or out of place in the stream; the decoder's state is then as before.
  Message Decode(std::string_view bytes);

  /// Between StreamStart and StreamStop, when changes carry their own xid.
  bool in_stream() const { return stream_xid_.has_value(); }

 private:
  Message Read(char kind, ByteReader& in);
  Message ReadChange(char kind, ByteReader& in);
  Message ReadTransaction(char kind, ByteReader& in);
  Message ReadPreparedTransaction(char kind, ByteReader& in);
  Relation ReadRelation(Xid xid, ByteReader& in);
  Update ReadUpdate(Xid xid, ByteReader& in);
  Delete ReadDelete(Xid xid, ByteReader& in);
  Truncate ReadTruncate(Xid xid, ByteReader& in);

  std::optional<Xid> stream_xid_;
  std::vector<TupleField> old_fields_, new_fields_;
  std::vector<RelationColumn> columns_;
  std::vector<RelationOid> relations_;
};

}  // namespace tidemark::wire::pgoutput
