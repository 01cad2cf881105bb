#include "cli/signed_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/error.h"

namespace tidemark::cli {

using base::Error;
using http::SignatureScheme;

namespace {

constexpr uint32_t kPerMinuteMax = 6000;
constexpr std::chrono::hours kToleranceMax{1};

SignatureScheme ReadScheme(YamlMap& map) {
  static const std::array<std::pair<const char*, SignatureScheme>, 3> names = {
      {{"standard", SignatureScheme::kStandard},
       {"github", SignatureScheme::kGithub},
       {"stripe", SignatureScheme::kStripe}}};
  const auto text = map.Text("signature").value_or("standard");
  for (const auto& [name, scheme] : names) {
    if (text == name) return scheme;
  }
  map.Complain("\"signature\" must be standard, github or stripe", "signature");
}

/// `secret`, a text or a list of them, or the content of `secret_file`: one key each.
std::vector<std::string> ReadKeys(YamlMap& map, const std::string& what, SignatureScheme scheme) {
  std::vector<std::string> secrets;
  const auto node = map.Find("secret");
  if (node && node->IsSequence()) {
    if (map.Find("secret_file")) {
      map.Complain("\"secret\" and \"secret_file\" exclude each other", "secret");
    }
    secrets = map.Texts("secret");
  } else if (auto secret = map.Secret("secret")) {
    secrets.push_back(std::move(*secret));
  }
  if (secrets.empty()) map.Complain(fmt::format("{} needs \"secret\"", what));
  std::vector<std::string> keys;
  for (const auto& secret : secrets) {
    try {
      keys.push_back(http::SigningKey(scheme, secret));
    } catch (const Error& error) {
      map.Complain(error.message(), node ? "secret" : "secret_file");
    }
  }
  return keys;
}

/// A number of seconds, minutes or hours: 90s, 5m, 1h.
std::optional<std::chrono::seconds> ReadSpan(YamlMap& map, const std::string& key,
                                             std::chrono::seconds most) {
  const auto text = map.Text(key);
  if (!text) return std::nullopt;
  uint32_t number = 0;
  const auto [end, code] = std::from_chars(text->data(), text->data() + text->size(), number);
  const std::string unit(end, text->data() + text->size());
  const int64_t factor = unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  const std::chrono::seconds span(number * factor);
  if (code != std::errc() || span <= std::chrono::seconds(0) || span > most) {
    map.Complain(
        fmt::format("\"{}\" must be a time such as 90s or 5m, at most {}m", key, most.count() / 60),
        key);
  }
  return span;
}

/// What takes no occurrences is refused where it is known that it does not.
void RequireCaptured(const YamlMap& map, const Config& config, const std::string& name) {
  if (config.sources.empty()) return;
  std::vector<std::string> names;
  bool declared = false, live = false;
  for (const auto& dataset : config.datasets) {
    names.push_back(dataset.name);
    if (dataset.name != name) continue;
    declared = true;
    live = dataset.strategy == Strategy::kCdc && dataset.cadence.empty() && config.cadence.empty();
  }
  for (const auto& mirror : config.mirrors) {
    names.push_back(mirror.name);
    if (mirror.name != name) continue;
    declared = true;
    live = mirror.cadence.empty();
  }
  if (live) {
    map.Complain(fmt::format("\"{}\" is followed live and takes no occurrences", name));
  }
  if (declared) return;
  const auto meant = Nearest(name, names);
  map.Complain(fmt::format("there is no dataset \"{}\"{}", name,
                           meant.empty() ? "" : fmt::format(", did you mean \"{}\"?", meant)));
}

}  // namespace

void ReadOccurrences(const YamlFile& file, YamlMap& map, Config& config) {
  map.EachEntry("occurrences", [&](const std::string& name, const YAML::Node& node) {
    const auto what = fmt::format("entry \"{}\" of occurrences", name);
    YamlMap entry(file, node, what);
    http::OccurrenceRules rules;
    rules.scheme = ReadScheme(entry);
    rules.keys = ReadKeys(entry, what, rules.scheme);
    if (const auto tolerance = ReadSpan(entry, "tolerance", kToleranceMax)) {
      if (rules.scheme == SignatureScheme::kGithub) {
        entry.Complain(
            "\"tolerance\" needs a signature that covers a time, which github's does not",
            "tolerance");
      }
      rules.tolerance = *tolerance;
    }
    rules.per_minute = entry.Number("per_minute", 1, kPerMinuteMax).value_or(rules.per_minute);
    entry.RefuseOthers();
    RequireCaptured(entry, config, name);
    config.occurrences.emplace(name, std::move(rules));
  });
}

void ReadWebhooks(const YamlFile& file, YamlMap& map, Config& config) {
  map.EachEntry("webhooks", [&](const std::string& name, const YAML::Node& node) {
    const auto what = fmt::format("webhook \"{}\"", name);
    YamlMap entry(file, node, what);
    Webhook webhook{.name = name, .url = {}, .keys = {}, .datasets = {}};
    const auto url = entry.Secret("url");
    const char* url_key = entry.Find("url") ? "url" : "url_file";
    if (!url) entry.Complain(fmt::format("{} needs \"url\"", what));
    try {
      webhook.url = http::Url::Parse(*url);
    } catch (const Error& error) {
      entry.Complain(error.message(), url_key);
    }
    const bool insecure = entry.Flag("insecure", false);
    if (!webhook.url.secure && !webhook.url.IsLoopback() && !insecure) {
      entry.Complain(fmt::format("{} needs https, or an explicit \"insecure: true\"", what),
                     url_key);
    }
    webhook.keys = ReadKeys(entry, what, SignatureScheme::kStandard);
    webhook.datasets = entry.Texts("datasets");
    entry.RefuseOthers();
    config.webhooks.push_back(std::move(webhook));
  });
}

}  // namespace tidemark::cli
