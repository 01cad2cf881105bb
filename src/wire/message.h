// Messages of the frontend/backend protocol 3: their framing, and readers and writers for the few
// that Tidemark looks into or makes itself. Everything read borrows from the bytes it was read
// from; every Read throws 08P01 for a malformed body; every Write appends one whole message. Knows
// no socket and no order of messages. Any thread. Manual: "Message Formats".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace tidemark::wire {

/// What stands before every message except start-up packets.
struct MessageHeader {
  static constexpr size_t kBytes = 5;
  char type = 0;
  size_t body_bytes = 0;
};

/// The header at the start of `bytes`, or nullopt while fewer than five bytes are there. Throws
/// 08P01 for a length that no message can have (under 4, or over 1 GB).
std::optional<MessageHeader> ReadHeader(std::string_view bytes);

/// One message with this body.
void WriteMessage(std::string& out, char type, std::string_view body = {});

// ---- start-up packets: no type byte, the first thing on a connection ----

struct StartupPacket {
  enum class Kind { kStartup, kTlsRequest, kGssEncryptionRequest, kCancelRequest };
  static constexpr size_t kBytesMax = 10000;

  Kind kind = Kind::kStartup;
  uint16_t major = 0, minor = 0;                                          // kStartup
  std::vector<std::pair<std::string_view, std::string_view>> parameters;  // kStartup, major 3
  size_t bytes = 0;  // of the whole packet, its length word included

  /// The packet at the start of `bytes`, or nullopt until it is whole. Parameters are read for
  /// major version 3 only. Throws 08P01 for a bad length or unterminated parameters.
  static std::optional<StartupPacket> Read(std::string_view bytes);
  /// The value of a parameter, or nullopt.
  std::optional<std::string_view> Find(std::string_view name) const;
};

void WriteStartup(std::string& out,
                  const std::vector<std::pair<std::string_view, std::string_view>>& parameters,
                  uint16_t minor = 0);
void WriteTlsRequest(std::string& out);
void WriteGssEncryptionRequest(std::string& out);
/// `key` has four bytes in protocol 3.0 and up to 256 in 3.2.
void WriteCancelRequest(std::string& out, uint32_t process_id, std::string_view key);

// ---- frontend messages ----

struct Query {
  static constexpr char kType = 'Q';
  std::string_view text;
  static Query Read(std::string_view body);
  void Write(std::string& out) const;
};

struct Parse {
  static constexpr char kType = 'P';
  std::string_view statement, text;
  std::string_view parameter_types;  // count and OIDs as they stand in the message
  static Parse Read(std::string_view body);
  void Write(std::string& out) const;
};

/// The names of a Bind, which stand before its values.
struct BindNames {
  std::string_view portal, statement;
  /// nullopt when `prefix`, the beginning of a body, ends before both names do.
  static std::optional<BindNames> Read(std::string_view prefix);
};

struct Bind {
  static constexpr char kType = 'B';
  std::string_view portal, statement;
  std::vector<std::optional<std::string_view>> values;  // in text format
  static Bind Read(std::string_view body);
  void Write(std::string& out) const;
};

/// Describe and Close: what 'S' (statement) or 'P' (portal), and its name.
struct Naming {
  char kind = 'S';
  std::string_view name;
  static Naming Read(std::string_view body);
  void WriteDescribe(std::string& out) const;
  void WriteClose(std::string& out) const;
};

struct Execute {
  static constexpr char kType = 'E';
  std::string_view portal;
  uint32_t rows_max = 0;  // 0 = all
  static Execute Read(std::string_view body);
  void Write(std::string& out) const;
};

inline constexpr char kSync = 'S', kFlush = 'H', kTerminate = 'X', kFunctionCall = 'F';
inline constexpr char kCopyData = 'd', kCopyDone = 'c', kCopyFail = 'f';

// ---- backend messages ----

/// The fields of an ErrorResponse or a NoticeResponse, in the order they came.
struct ErrorFields {
  static constexpr char kErrorType = 'E', kNoticeType = 'N';
  std::vector<std::pair<char, std::string>> fields;

  static ErrorFields Read(std::string_view body);
  /// `severity` is ERROR or FATAL.
  static ErrorFields From(const base::Error& error, std::string_view severity);
  /// Empty when there is none.
  std::string_view Find(char field) const;
  /// Replaces the field, adds it, or removes it when `value` is empty.
  void Set(char field, std::string value);
  /// True for FATAL and PANIC, whatever the language of the messages.
  bool EndsConnection() const;
  void Write(std::string& out, char type = kErrorType) const;
};

struct ReadyForQuery {
  static constexpr char kType = 'Z';
  char status = 'I';  // I idle, T in a transaction, E in a failed one
  static ReadyForQuery Read(std::string_view body);
  void Write(std::string& out) const;
};

struct RowDescription {
  static constexpr char kType = 'T';
  struct Field {
    std::string_view name;
    uint32_t type_oid = 0;
  };
  std::vector<Field> fields;
  static RowDescription Read(std::string_view body);
  /// The other attributes of each field are written as unknown, the format as text.
  void Write(std::string& out) const;
};

struct DataRow {
  static constexpr char kType = 'D';
  std::vector<std::optional<std::string_view>> values;
  static DataRow Read(std::string_view body);
  void Write(std::string& out) const;
};

struct CommandComplete {
  static constexpr char kType = 'C';
  std::string_view tag;
  static CommandComplete Read(std::string_view body);
  void Write(std::string& out) const;
};

}  // namespace tidemark::wire
