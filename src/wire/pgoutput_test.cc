// The bytes are as PostgreSQL 15's pg_logical_slot_peek_binary_changes returned them with binary,
// messages and streaming on; versions 2 and 3. Version 4 (16 and newer) is written by hand.
#include "wire/pgoutput.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "wire/hex_literal.h"

namespace tidemark::wire::pgoutput {
namespace {

using base::Lsn;
using base::Timestamp;

// CREATE TABLE t(id int PRIMARY KEY, n int, m mood, big text STORAGE EXTERNAL)
const std::string kBegin = "42 0000000001556fc8 0003046c8d9563cd 000002df"_hex;
const std::string kType = "59 00004001 7075626c696300 6d6f6f6400"_hex;
const std::string kRelation =
    "52 00004008 7075626c696300 7400 64 0004 01 696400 00000017 ffffffff"
    "00 6e00 00000017 ffffffff 00 6d00 00004001 ffffffff 00 62696700 00000019 ffffffff"_hex;
const std::string kInsert =
    "49 00004008 4e 0004 62 00000004 00000001 62 00000004 00000007 62 00000002 6f6b 6e"_hex;
const std::string kCommit = "43 00 0000000001556fc8 0000000001556ff8 0003046c8d9563cd"_hex;
const std::string kKeyChange =
    "55 00004008 4b 0004 62 00000004 00000001 6e 6e 6e"
    "4e 0004 62 00000004 00000002 62 00000004 00000007 62 00000002 6f6b 6e"_hex;
const std::string kUnchangedToast =
    "55 00004008 4e 0004 62 00000004 00000002 62 00000004 00000008 62 00000002 6f6b 75"_hex;
const std::string kDelete = "44 00004008 4b 0004 62 00000004 00000002 6e 6e 6e"_hex;
// CREATE TABLE f(a int, b text); ALTER TABLE f REPLICA IDENTITY FULL
const std::string kFullRelation =
    "52 0000400f 7075626c696300 6600 66 0002 01 6100 00000017 ffffffff"
    "01 6200 00000019 ffffffff"_hex;
const std::string kFullUpdate =
    "55 0000400f 4f 0002 62 00000004 00000001 6e 4e 0002 62 00000004 00000001 62 00000001 62"_hex;
const std::string kFullDelete = "44 0000400f 4f 0002 62 00000004 00000002 62 00000003 74776f"_hex;
// TRUNCATE par RESTART IDENTITY CASCADE, where chi refers to par
const std::string kTruncate = "54 00000002 03 00004014 00004019"_hex;
const std::string kMessage = "4d 01 0000000001559180 746964656d61726b00 00000005 68656c6c6f"_hex;
const std::string kMessageNow = "4d 00 00000000015591e8 6e6f7700 00000002 0001"_hex;
const std::string kOrigin = "4f 0000000001234abc 757073747265616d00"_hex;
// BEGIN; INSERT s 1; SAVEPOINT a; INSERT s 2; ROLLBACK TO a; INSERT s 3; emit message; COMMIT
const std::string kStreamStart = "53 000002ed 01"_hex;
const std::string kStreamRelation =
    "52 000002ed 00004028 7075626c696300 7300 64 0001 01 696400 00000017 ffffffff"_hex;
const std::string kStreamInsert = "49 000002ed 00004028 4e 0001 62 00000004 00000001"_hex;
const std::string kStreamSubInsert = "49 000002ee 00004028 4e 0001 62 00000004 00000002"_hex;
const std::string kStreamStop = "45"_hex;
const std::string kStreamNext = "53 000002ed 00"_hex;
const std::string kStreamSubAbort = "41 000002ed 000002ee"_hex;
const std::string kStreamMessage =
    "4d 000002ed 01 00000000015c7288 696e00 00000006 73747265616d"_hex;
const std::string kStreamCommit =
    "63 000002ed 00 00000000015c7288 00000000015c72c0 0003046c8d9576aa"_hex;
const std::string kStreamAbort = "41 000002f0 000002f0"_hex;
const std::string kParallelAbort = "41 000002ed 000002ee 00000000015c7288 0003046c8d9576aa"_hex;
const std::string kBeginPrepare =
    "62 00000000015fe188 00000000015fe280 0003046c8d957a84 000002f1 673100"_hex;
const std::string kPrepare =
    "50 00 00000000015fe188 00000000015fe280 0003046c8d957a84 000002f1 673100"_hex;
const std::string kCommitPrepared =
    "4b 00 00000000015fe280 00000000015fe2b8 0003046c8d957afa 000002f1 673100"_hex;
const std::string kRollbackPrepared =
    "72 00 00000000015fe430 00000000015fe468 0003046c8d957b50 0003046c8d957b74 000002f2 673200"_hex;
const std::string kStreamPrepare =
    "70 00 0000000001635270 00000000016353c8 0003046c8d957ea8 000002f3 673300"_hex;

struct Sample {
  std::string bytes;
  bool in_stream = false;
};
const std::vector<Sample> kSamples = {
    {kBegin},
    {kType},
    {kRelation},
    {kInsert},
    {kCommit},
    {kKeyChange},
    {kUnchangedToast},
    {kDelete},
    {kFullRelation},
    {kFullUpdate},
    {kFullDelete},
    {kTruncate},
    {kMessage},
    {kMessageNow},
    {kOrigin},
    {kStreamStart},
    {kStreamRelation, true},
    {kStreamInsert, true},
    {kStreamStop, true},
    {kStreamSubAbort},
    {kStreamMessage, true},
    {kStreamCommit},
    {kBeginPrepare},
    {kPrepare},
    {kCommitPrepared},
    {kRollbackPrepared},
    {kStreamPrepare},
};

Decoder InsideBlock() {
  Decoder decoder;
  decoder.Decode(kStreamStart);
  return decoder;
}

Decoder DecoderFor(const Sample& sample) { return sample.in_stream ? InsideBlock() : Decoder(); }

template <typename Kind>
Kind DecodeAs(Decoder& decoder, std::string_view bytes) {
  return std::get<Kind>(decoder.Decode(bytes));
}

void ExpectViolation(Decoder decoder, std::string_view bytes) {
  try {
    decoder.Decode(bytes);
    ADD_FAILURE() << "accepted " << bytes.size() << " bytes of " << bytes.substr(0, 1);
  } catch (const base::Error& error) {
    EXPECT_EQ(error.state(), base::kProtocolViolation);
    EXPECT_EQ(error.context().size(), 1);
  }
}

void ExpectField(const TupleField& field, FieldKind kind, std::string_view value = {}) {
  EXPECT_EQ(field.kind, kind);
  EXPECT_EQ(field.value, value);
}

TEST(PgoutputDecoder, BeginAndCommitCarryPositionsTimeAndXid) {
  Decoder decoder;
  const auto begin = DecodeAs<Begin>(decoder, kBegin);
  EXPECT_EQ(begin.commit_lsn, Lsn::Parse("0/1556FC8"));
  EXPECT_EQ(begin.committed_at, Timestamp(0x0003046c8d9563cd));
  EXPECT_EQ(begin.xid, 735);
  const auto commit = DecodeAs<Commit>(decoder, kCommit);
  EXPECT_EQ(commit.commit_lsn, begin.commit_lsn);
  EXPECT_EQ(commit.end_lsn, Lsn::Parse("0/1556FF8"));
  EXPECT_EQ(commit.committed_at, begin.committed_at);
}

TEST(PgoutputDecoder, RelationNamesItsColumnsTypesAndKey) {
  Decoder decoder;
  const auto relation = DecodeAs<Relation>(decoder, kRelation);
  EXPECT_EQ(relation.xid, 0);
  EXPECT_EQ(relation.oid, 0x4008);
  EXPECT_EQ(relation.schema, "public");
  EXPECT_EQ(relation.name, "t");
  EXPECT_EQ(relation.identity, ReplicaIdentity::kDefault);
  ASSERT_EQ(relation.columns.size(), 4);
  EXPECT_TRUE(relation.columns[0].key);
  EXPECT_EQ(relation.columns[0].name, "id");
  EXPECT_EQ(relation.columns[0].type, 23);
  EXPECT_EQ(relation.columns[0].type_modifier, -1);
  EXPECT_FALSE(relation.columns[2].key);
  EXPECT_EQ(relation.columns[2].type, 0x4001);
  EXPECT_EQ(relation.columns[3].name, "big");
}

TEST(PgoutputDecoder, UnderIdentityFullEveryColumnIsKey) {
  Decoder decoder;
  const auto relation = DecodeAs<Relation>(decoder, kFullRelation);
  EXPECT_EQ(relation.identity, ReplicaIdentity::kFull);
  ASSERT_EQ(relation.columns.size(), 2);
  EXPECT_TRUE(relation.columns[0].key);
  EXPECT_TRUE(relation.columns[1].key);
}

TEST(PgoutputDecoder, EmptySchemaIsPgCatalog) {
  Decoder decoder;
  // CREATE DOMAIN dd AS varchar(9): the domain's OID with the name of its base type.
  const std::string domain_type = "59 000040a0 00 7661726368617200"_hex;
  const auto domain = DecodeAs<Type>(decoder, domain_type);
  EXPECT_EQ(domain.oid, 0x40a0);
  EXPECT_EQ(domain.schema, "pg_catalog");
  EXPECT_EQ(domain.name, "varchar");
  const auto type = DecodeAs<Type>(decoder, kType);
  EXPECT_EQ(type.oid, 0x4001);
  EXPECT_EQ(type.schema, "public");
  EXPECT_EQ(type.name, "mood");
}

TEST(PgoutputDecoder, InsertLendsItsValues) {
  Decoder decoder;
  const auto insert = DecodeAs<Insert>(decoder, kInsert);
  EXPECT_EQ(insert.xid, 0);
  EXPECT_EQ(insert.relation, 0x4008);
  ASSERT_EQ(insert.new_tuple.size(), 4);
  ExpectField(insert.new_tuple[0], FieldKind::kBinary, "00000001"_hex);
  ExpectField(insert.new_tuple[2], FieldKind::kBinary, "ok");
  ExpectField(insert.new_tuple[3], FieldKind::kNull);
  EXPECT_EQ(insert.new_tuple[0].value.data(), kInsert.data() + 13);
}

TEST(PgoutputDecoder, KeyChangeCarriesTheOldKeyOnly) {
  Decoder decoder;
  const auto update = DecodeAs<Update>(decoder, kKeyChange);
  EXPECT_EQ(update.old_kind, OldTuple::kKey);
  ASSERT_EQ(update.old_tuple.size(), 4);
  ExpectField(update.old_tuple[0], FieldKind::kBinary, "00000001"_hex);
  ExpectField(update.old_tuple[1], FieldKind::kNull);
  ASSERT_EQ(update.new_tuple.size(), 4);
  ExpectField(update.new_tuple[0], FieldKind::kBinary, "00000002"_hex);
  ExpectField(update.new_tuple[1], FieldKind::kBinary, "00000007"_hex);
}

TEST(PgoutputDecoder, UnchangedLargeValueIsNotNull) {
  Decoder decoder;
  const auto update = DecodeAs<Update>(decoder, kUnchangedToast);
  EXPECT_EQ(update.old_kind, OldTuple::kNone);
  EXPECT_TRUE(update.old_tuple.empty());
  ASSERT_EQ(update.new_tuple.size(), 4);
  ExpectField(update.new_tuple[3], FieldKind::kUnchanged);
}

TEST(PgoutputDecoder, OldTupleOfAnEarlierMessageIsNotSeenAgain) {
  Decoder decoder;
  decoder.Decode(kKeyChange);
  EXPECT_TRUE(DecodeAs<Update>(decoder, kUnchangedToast).old_tuple.empty());
}

TEST(PgoutputDecoder, IdentityFullCarriesTheWholeOldRow) {
  Decoder decoder;
  const auto update = DecodeAs<Update>(decoder, kFullUpdate);
  EXPECT_EQ(update.old_kind, OldTuple::kFull);
  ASSERT_EQ(update.old_tuple.size(), 2);
  ExpectField(update.old_tuple[1], FieldKind::kNull);
  ExpectField(update.new_tuple[1], FieldKind::kBinary, "b");
  const auto gone = DecodeAs<Delete>(decoder, kFullDelete);
  EXPECT_EQ(gone.old_kind, OldTuple::kFull);
  ExpectField(gone.old_tuple[1], FieldKind::kBinary, "two");
}

TEST(PgoutputDecoder, DeleteCarriesTheKey) {
  Decoder decoder;
  const auto gone = DecodeAs<Delete>(decoder, kDelete);
  EXPECT_EQ(gone.relation, 0x4008);
  EXPECT_EQ(gone.old_kind, OldTuple::kKey);
  ExpectField(gone.old_tuple[0], FieldKind::kBinary, "00000002"_hex);
}

TEST(PgoutputDecoder, TruncateNamesCascadedTablesToo) {
  Decoder decoder;
  const auto truncate = DecodeAs<Truncate>(decoder, kTruncate);
  EXPECT_TRUE(truncate.cascade);
  EXPECT_TRUE(truncate.restart_identity);
  ASSERT_EQ(truncate.relations.size(), 2);
  EXPECT_EQ(truncate.relations[0], 0x4014);
  EXPECT_EQ(truncate.relations[1], 0x4019);
}

TEST(PgoutputDecoder, LogicalMessagesAndOriginAreUnderstood) {
  Decoder decoder;
  const auto message = DecodeAs<LogicalMessage>(decoder, kMessage);
  EXPECT_TRUE(message.transactional);
  EXPECT_EQ(message.lsn, Lsn::Parse("0/1559180"));
  EXPECT_EQ(message.prefix, "tidemark");
  EXPECT_EQ(message.content, "hello");
  const auto now = DecodeAs<LogicalMessage>(decoder, kMessageNow);
  EXPECT_FALSE(now.transactional);
  EXPECT_EQ(now.content, "0001"_hex);
  const auto origin = DecodeAs<Origin>(decoder, kOrigin);
  EXPECT_EQ(origin.commit_lsn, Lsn::Parse("0/1234ABC"));
  EXPECT_EQ(origin.name, "upstream");
}

TEST(PgoutputDecoder, TransactionWithSavepointAbortArrivesInBlocks) {
  Decoder decoder;
  const auto start = DecodeAs<StreamStart>(decoder, kStreamStart);
  EXPECT_EQ(start.xid, 0x2ed);
  EXPECT_TRUE(start.first);
  EXPECT_TRUE(decoder.in_stream());
  EXPECT_EQ(DecodeAs<Relation>(decoder, kStreamRelation).xid, 0x2ed);
  EXPECT_EQ(DecodeAs<Insert>(decoder, kStreamInsert).xid, 0x2ed);
  const auto doomed = DecodeAs<Insert>(decoder, kStreamSubInsert);
  EXPECT_EQ(doomed.xid, 0x2ee);
  ExpectField(doomed.new_tuple[0], FieldKind::kBinary, "00000002"_hex);
  DecodeAs<StreamStop>(decoder, kStreamStop);
  EXPECT_FALSE(decoder.in_stream());

  const auto abort = DecodeAs<StreamAbort>(decoder, kStreamSubAbort);
  EXPECT_EQ(abort.xid, 0x2ed);
  EXPECT_EQ(abort.subxid, 0x2ee);
  EXPECT_FALSE(abort.aborted.has_value());

  EXPECT_FALSE(DecodeAs<StreamStart>(decoder, kStreamNext).first);
  const auto message = DecodeAs<LogicalMessage>(decoder, kStreamMessage);
  EXPECT_EQ(message.xid, 0x2ed);
  EXPECT_EQ(message.content, "stream");
  decoder.Decode(kStreamStop);
  const auto commit = DecodeAs<StreamCommit>(decoder, kStreamCommit);
  EXPECT_EQ(commit.xid, 0x2ed);
  EXPECT_EQ(commit.commit_lsn, Lsn::Parse("0/15C7288"));
  EXPECT_EQ(commit.end_lsn, Lsn::Parse("0/15C72C0"));
  EXPECT_EQ(commit.committed_at, Timestamp(0x0003046c8d9576aa));

  EXPECT_EQ(DecodeAs<Insert>(decoder, kInsert).xid, 0) << "outside a block there is no xid";
}

TEST(PgoutputDecoder, WholeTransactionAbortNamesItTwice) {
  Decoder decoder;
  const auto abort = DecodeAs<StreamAbort>(decoder, kStreamAbort);
  EXPECT_EQ(abort.xid, abort.subxid);
}

TEST(PgoutputDecoder, ParallelAbortCarriesItsInstant) {
  Decoder decoder;
  const auto abort = DecodeAs<StreamAbort>(decoder, kParallelAbort);
  ASSERT_TRUE(abort.aborted.has_value());
  EXPECT_EQ(abort.aborted->lsn, Lsn::Parse("0/15C7288"));
  EXPECT_EQ(abort.aborted->at, Timestamp(0x0003046c8d9576aa));
}

TEST(PgoutputDecoder, TwoPhaseCommitIsUnderstood) {
  Decoder decoder;
  const auto begin = DecodeAs<BeginPrepare>(decoder, kBeginPrepare);
  EXPECT_EQ(begin.prepare_lsn, Lsn::Parse("0/15FE188"));
  EXPECT_EQ(begin.end_lsn, Lsn::Parse("0/15FE280"));
  EXPECT_EQ(begin.xid, 0x2f1);
  EXPECT_EQ(begin.gid, "g1");
  EXPECT_EQ(DecodeAs<Prepare>(decoder, kPrepare).prepared_at, begin.prepared_at);
  const auto commit = DecodeAs<CommitPrepared>(decoder, kCommitPrepared);
  EXPECT_EQ(commit.commit_lsn, begin.end_lsn);
  EXPECT_EQ(commit.end_lsn, Lsn::Parse("0/15FE2B8"));
  EXPECT_EQ(commit.gid, "g1");
  const auto rollback = DecodeAs<RollbackPrepared>(decoder, kRollbackPrepared);
  EXPECT_EQ(rollback.prepare_end_lsn, Lsn::Parse("0/15FE430"));
  EXPECT_EQ(rollback.rollback_end_lsn, Lsn::Parse("0/15FE468"));
  EXPECT_LT(rollback.prepared_at, rollback.rolled_back_at);
  EXPECT_EQ(rollback.xid, 0x2f2);
  EXPECT_EQ(rollback.gid, "g2");
  const auto streamed = DecodeAs<StreamPrepare>(decoder, kStreamPrepare);
  EXPECT_EQ(streamed.end_lsn, Lsn::Parse("0/16353C8"));
  EXPECT_EQ(streamed.gid, "g3");
}

TEST(PgoutputDecoder, TruncatedAtAnyByteThrows08P01) {
  for (const Sample& sample : kSamples) {
    for (size_t size = 0; size < sample.bytes.size(); ++size) {
      ExpectViolation(DecoderFor(sample), sample.bytes.substr(0, size));
    }
  }
  for (size_t size = kStreamSubAbort.size() + 1; size < kParallelAbort.size(); ++size) {
    ExpectViolation(Decoder(), kParallelAbort.substr(0, size));
  }
}

TEST(PgoutputDecoder, ByteTooManyThrows08P01) {
  for (const Sample& sample : kSamples) {
    ExpectViolation(DecoderFor(sample), sample.bytes + "x");
  }
}

TEST(PgoutputDecoder, MessagesOutOfPlaceThrow08P01) {
  const Decoder outside;
  const Decoder inside = InsideBlock();
  ExpectViolation(outside, kStreamStop);
  for (const std::string& bytes : {kBegin, kCommit, kStreamStart, kStreamCommit, kStreamSubAbort,
                                   kBeginPrepare, kPrepare, kStreamPrepare}) {
    ExpectViolation(inside, bytes);
  }
}

TEST(PgoutputDecoder, UnknownLettersAreNamed) {
  Decoder decoder;
  const auto message_of = [&](std::string_view bytes) {
    try {
      decoder.Decode(bytes);
    } catch (const base::Error& error) {
      return error.message();
    }
    return std::string("no error");
  };
  EXPECT_EQ(message_of("z"), "unknown replication message \"z\" at offset 0");
  EXPECT_EQ(message_of("\x01"), "unknown replication message 0x01 at offset 0");
  EXPECT_EQ(message_of("49 00004008 4b"_hex), "unknown tuple kind \"K\" at offset 5");
  EXPECT_EQ(message_of("49 00004008 4e 0001 78"_hex), "unknown column kind \"x\" at offset 8");
  EXPECT_EQ(message_of("55 00004008 58"_hex), "unknown tuple kind \"X\" at offset 5");
  EXPECT_EQ(message_of("44 00004008 4e"_hex), "unknown tuple kind \"N\" at offset 5");
  EXPECT_EQ(message_of("49 00004008 4e 0001 74 ffffffff"_hex), "negative length -1 at offset 9");
  EXPECT_EQ(message_of("52 00004008 00 7400 78"_hex), "unknown replica identity \"x\" at offset 8");
}

TEST(PgoutputDecoder, FailedMessageLeavesTheStreamStateAsItWas) {
  Decoder decoder;
  EXPECT_THROW(decoder.Decode(kStreamStart + "x"), base::Error);
  EXPECT_FALSE(decoder.in_stream());
  decoder.Decode(kStreamStart);
  EXPECT_THROW(decoder.Decode(kStreamStop + "x"), base::Error);
  EXPECT_TRUE(decoder.in_stream());
}

TEST(PgoutputDecoder, CountsBeyondTheBytesAllocateNoMoreThanTheBytes) {
  ExpectViolation(Decoder(), "54 7fffffff 00"_hex);
  ExpectViolation(Decoder(), "49 00004008 4e ffff"_hex);
  ExpectViolation(Decoder(), "52 00004008 00 7400 64 ffff"_hex);
}

TEST(PgoutputDecoder, RowsOfOneWidthReuseOneBuffer) {
  Decoder decoder;
  const TupleField* const first = DecodeAs<Insert>(decoder, kInsert).new_tuple.data();
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(DecodeAs<Insert>(decoder, kInsert).new_tuple.data(), first);
  }
}

}  // namespace
}  // namespace tidemark::wire::pgoutput
