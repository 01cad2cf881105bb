// The packets that open a connection: they have no type byte, and say what they are by the
// "protocol version" they carry. Manual: "Message Formats", StartupMessage and the three requests.
#include "wire/bytes.h"
#include "wire/message.h"

namespace tidemark::wire {
namespace {

constexpr uint32_t kCancelRequestCode = 80877102;
constexpr uint32_t kTlsRequestCode = 80877103;
constexpr uint32_t kGssEncryptionRequestCode = 80877104;

void WriteRequest(std::string& out, uint32_t code) {
  ByteWriter writer(out);
  writer.WriteU32(8);
  writer.WriteU32(code);
}

}  // namespace

std::optional<StartupPacket> StartupPacket::Read(std::string_view bytes) {
  if (bytes.size() < 4) return std::nullopt;
  const auto length = LoadBigEndian<uint32_t>(bytes.data());
  if (length < 8 || length > kBytesMax) {
    throw base::Error(base::kProtocolViolation, "invalid length of startup packet");
  }
  if (bytes.size() < length) return std::nullopt;

  StartupPacket packet;
  packet.bytes = length;
  ByteReader reader(bytes.substr(4, length - 4));
  const uint32_t code = reader.ReadU32();
  switch (code) {
    case kCancelRequestCode:
      packet.kind = Kind::kCancelRequest;
      return packet;
    case kTlsRequestCode:
      packet.kind = Kind::kTlsRequest;
      return packet;
    case kGssEncryptionRequestCode:
      packet.kind = Kind::kGssEncryptionRequest;
      return packet;
    default:
      break;
  }
  packet.major = static_cast<uint16_t>(code >> 16);
  packet.minor = static_cast<uint16_t>(code & 0xffff);
  if (packet.major != 3) return packet;
  for (auto name = reader.ReadString(); !name.empty(); name = reader.ReadString()) {
    packet.parameters.emplace_back(name, reader.ReadString());
  }
  return packet;
}

std::optional<std::string_view> StartupPacket::Find(std::string_view name) const {
  for (const auto& [key, value] : parameters) {
    if (key == name) return value;
  }
  return std::nullopt;
}

void WriteStartup(std::string& out,
                  const std::vector<std::pair<std::string_view, std::string_view>>& parameters,
                  uint16_t minor) {
  const size_t begin = out.size();
  ByteWriter writer(out);
  writer.WriteI32(0);
  writer.WriteU16(3);
  writer.WriteU16(minor);
  for (const auto& [name, value] : parameters) {
    writer.WriteString(name);
    writer.WriteString(value);
  }
  writer.WriteU8(0);
  writer.PatchI32(begin, static_cast<int32_t>(out.size() - begin));
}

void WriteTlsRequest(std::string& out) { WriteRequest(out, kTlsRequestCode); }

void WriteGssEncryptionRequest(std::string& out) { WriteRequest(out, kGssEncryptionRequestCode); }

void WriteCancelRequest(std::string& out, uint32_t process_id, std::string_view key) {
  ByteWriter writer(out);
  writer.WriteU32(static_cast<uint32_t>(12 + key.size()));
  writer.WriteU32(kCancelRequestCode);
  writer.WriteU32(process_id);
  writer.WriteBytes(key);
}

}  // namespace tidemark::wire
