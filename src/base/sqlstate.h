// SQLSTATE codes by name: the vocabulary of base::Error. Only codes that some code path throws or
// inspects stand here; a server's own code is carried as it came. Source: PostgreSQL, appendix A.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace tidemark::base {

/// Five characters of a SQLSTATE, comparable and cheap to copy.
class SqlState {
 public:
  constexpr SqlState() = default;
  /// `code` must have exactly five characters; anything else becomes XX000.
  constexpr explicit SqlState(std::string_view code) {
    if (code.size() == 5) {
      for (size_t i = 0; i < 5; ++i) code_[i] = code[i];
    }
  }
  constexpr std::string_view view() const { return {code_.data(), code_.size()}; }
  std::string str() const { return std::string(view()); }
  /// The first two characters, e.g. "08" for connection exceptions.
  constexpr std::string_view error_class() const { return view().substr(0, 2); }
  constexpr bool operator==(const SqlState&) const = default;

 private:
  std::array<char, 5> code_ = {'X', 'X', '0', '0', '0'};
};

inline constexpr SqlState kConnectionFailure{"08006"};
inline constexpr SqlState kCannotConnect{"08001"};
inline constexpr SqlState kCommitOutcomeUnknown{"08007"};
inline constexpr SqlState kProtocolViolation{"08P01"};
inline constexpr SqlState kFeatureNotSupported{"0A000"};
inline constexpr SqlState kInvalidTransactionInitiation{"0B000"};
inline constexpr SqlState kNullValueNotAllowed{"22004"};
inline constexpr SqlState kInvalidDatetimeFormat{"22007"};
inline constexpr SqlState kDatetimeOverflow{"22008"};
inline constexpr SqlState kCharacterNotInRepertoire{"22021"};
inline constexpr SqlState kInvalidParameter{"22023"};
inline constexpr SqlState kInvalidBinary{"22P03"};
inline constexpr SqlState kNotNullViolation{"23502"};
inline constexpr SqlState kUniqueViolation{"23505"};
inline constexpr SqlState kReadOnlyTransaction{"25006"};
inline constexpr SqlState kInvalidAuthorization{"28000"};
inline constexpr SqlState kInvalidPassword{"28P01"};
inline constexpr SqlState kSerializationFailure{"40001"};
inline constexpr SqlState kInsufficientPrivilege{"42501"};
inline constexpr SqlState kSyntaxError{"42601"};
inline constexpr SqlState kInvalidName{"42602"};
inline constexpr SqlState kUndefinedColumn{"42703"};
inline constexpr SqlState kUndefinedObject{"42704"};
inline constexpr SqlState kDuplicateObject{"42710"};
inline constexpr SqlState kDatatypeMismatch{"42804"};
inline constexpr SqlState kWrongObjectType{"42809"};
inline constexpr SqlState kInvalidColumnReference{"42P10"};
inline constexpr SqlState kUndefinedTable{"42P01"};
inline constexpr SqlState kInvalidObjectDefinition{"42P17"};
inline constexpr SqlState kTooManyConnections{"53300"};
inline constexpr SqlState kNotInPrerequisiteState{"55000"};
inline constexpr SqlState kObjectInUse{"55006"};
inline constexpr SqlState kLockNotAvailable{"55P03"};
inline constexpr SqlState kQueryCanceled{"57014"};
inline constexpr SqlState kAdminShutdown{"57P01"};
inline constexpr SqlState kCannotConnectNow{"57P03"};
inline constexpr SqlState kSystemError{"58000"};
inline constexpr SqlState kIoError{"58030"};
inline constexpr SqlState kSnapshotTooOld{"72000"};
inline constexpr SqlState kConfigFileError{"F0000"};
inline constexpr SqlState kInternalError{"XX000"};
inline constexpr SqlState kDataCorrupted{"XX001"};

}  // namespace tidemark::base
