#include "wire/replication.h"

#include <fmt/format.h>

#include "wire/bytes.h"

namespace tidemark::wire {

using base::Lsn;
using base::Timestamp;

ReplicationMessage ReadReplicationMessage(std::string_view copy_data) {
  ByteReader in(copy_data);
  const char kind = in.ReadChar();
  switch (kind) {
    case 'w':
      return XLogData{Lsn(in.ReadU64()), Lsn(in.ReadU64()), Timestamp(in.ReadI64()), in.ReadRest()};
    case 'k': {
      const PrimaryKeepalive keepalive{Lsn(in.ReadU64()), Timestamp(in.ReadI64()),
                                       in.ReadU8() != 0};
      in.ExpectEnd();
      return keepalive;
    }
    default:
      throw base::Error(base::kProtocolViolation, fmt::format("unknown copy-both message 0x{:02x}",
                                                              static_cast<unsigned char>(kind)));
  }
}

void WriteStandbyStatusUpdate(const StandbyStatusUpdate& status, std::string& out) {
  ByteWriter writer(out);
  writer.WriteChar('r');
  writer.WriteU64(status.written.value());
  writer.WriteU64(status.flushed.value());
  writer.WriteU64(status.applied.value());
  writer.WriteI64(status.sent_at.postgres_us());
  writer.WriteU8(status.reply_requested ? 1 : 0);
}

}  // namespace tidemark::wire
