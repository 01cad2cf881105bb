#include "http/metrics_text.h"

#include <fmt/format.h>

#include <cmath>

namespace tidemark::http {

namespace {

std::string Escaped(std::string_view text, bool quotes) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\') {
      escaped += "\\\\";
    } else if (c == '\n') {
      escaped += "\\n";
    } else if (c == '"' && quotes) {
      escaped += "\\\"";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string Number(double value) {
  constexpr double kExactMax = 9007199254740992.0;  // 2^53
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  if (std::trunc(value) == value && std::abs(value) <= kExactMax) {
    return fmt::format("{}", static_cast<int64_t>(value));
  }
  return fmt::format("{}", value);
}

}  // namespace

void MetricsText::Family(std::string_view name, MetricType type, std::string_view help) {
  name_ = name;
  header_ = fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, Escaped(help, false),
                        type == MetricType::kCounter ? "counter" : "gauge");
}

void MetricsText::Sample(const Labels& labels, double value) {
  text_ += std::exchange(header_, {});
  text_ += name_;
  for (size_t i = 0; i < labels.size(); ++i) {
    text_ += fmt::format("{}{}=\"{}\"", i == 0 ? '{' : ',', labels[i].first,
                         Escaped(labels[i].second, true));
  }
  text_ += fmt::format("{} {}\n", labels.empty() ? "" : "}", Number(value));
}

}  // namespace tidemark::http
