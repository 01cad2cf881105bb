// The layer of copy-both messages that carries a replication stream: what the server sends around
// each payload, and the standby's status reply. Not the payload itself (pgoutput.h) and not the
// decision what may be confirmed. Manual: "Streaming Replication Protocol".
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "base/clock.h"
#include "base/lsn.h"

namespace tidemark::wire {

/// One message of the output plugin. On a logical stream both positions are the change's own LSN,
/// and 0 for messages sent ahead of a change (relation, type, origin): neither is progress.
struct XLogData {
  base::Lsn start;
  base::Lsn wal_end;
  base::Timestamp sent_at;
  std::string_view payload;  // borrowed from the message
};

/// Says how far the server has decoded. Whether `wal_end` may be confirmed is the reader's care:
/// only when nothing received before is still unstored.
struct PrimaryKeepalive {
  base::Lsn wal_end;
  base::Timestamp sent_at;
  bool reply_requested;
};

using ReplicationMessage = std::variant<XLogData, PrimaryKeepalive>;

/// Read the content of one CopyData message from the server. Throws 08P01 for any other kind and
/// for a malformed one.
ReplicationMessage ReadReplicationMessage(std::string_view copy_data);

struct StandbyStatusUpdate {
  base::Lsn written;
  base::Lsn flushed;  // what a logical slot takes as confirmed
  base::Lsn applied;
  base::Timestamp sent_at;
  bool reply_requested = false;
};

/// Append the content of one CopyData message to the server (34 bytes).
void WriteStandbyStatusUpdate(const StandbyStatusUpdate& status, std::string& out);

}  // namespace tidemark::wire
