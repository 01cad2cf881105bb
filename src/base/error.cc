#include "base/error.h"

#include <fmt/format.h>

#include <utility>

namespace tidemark::base {

Error::Error(SqlState state, std::string message)
    : state_(state),
      message_(std::move(message)),
      line_(fmt::format("{} ({})", message_, state_.view())) {}

Error&& Error::Detail(std::string text) && {
  detail_ = std::move(text);
  return std::move(*this);
}

Error&& Error::Hint(std::string text) && {
  hint_ = std::move(text);
  return std::move(*this);
}

Error&& Error::Position(int characters) && {
  position_ = characters;
  return std::move(*this);
}

Error& Error::AddContext(std::string line) {
  context_.push_back(std::move(line));
  return *this;
}

bool Error::IsTransient() const {
  if (state_ == kProtocolViolation) return false;
  const auto c = state_.error_class();
  return c == "08" || c == "53" || c == "57" || c == "40" || c == "58" || state_ == kObjectInUse ||
         state_ == kLockNotAvailable;
}

bool Error::IsConnectionLoss() const {
  return (state_.error_class() == "08" && state_ != kProtocolViolation) ||
         state_ == kAdminShutdown ||
         state_ == SqlState("57P02") || state_ == kCannotConnectNow || state_ == SqlState("57P05");
}

std::string Error::Full() const {
  std::string text = fmt::format("{} ({})", message_, state_.view());
  if (!detail_.empty()) text += "\nDETAIL:  " + detail_;
  if (!hint_.empty()) text += "\nHINT:  " + hint_;
  for (const auto& line : context_) text += "\nCONTEXT:  " + line;
  return text;
}

}  // namespace tidemark::base
