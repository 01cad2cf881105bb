#include "cli/yaml_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>

#include "base/error.h"

namespace tidemark::cli {

void YamlFile::Complain(const YAML::Mark& mark, const std::string& text) const {
  if (mark.is_null()) throw base::Error(base::kConfigFileError, fmt::format("{}: {}", name, text));
  throw base::Error(base::kConfigFileError, fmt::format("{}:{}:{}: {}", name, mark.line + 1,
                                                        mark.column + 1, text));
}

YamlMap::YamlMap(const YamlFile& file, const YAML::Node& node, std::string what)
    : file_(file), node_(node), what_(std::move(what)) {
  if (node_.IsNull()) return;
  if (!node_.IsMap()) {
    file_.Complain(node_.Mark(), fmt::format("{} must be a map of keys and values", what_));
  }
  std::vector<std::string> seen;
  for (const auto& entry : node_) {
    const auto key = ScalarText(entry.first, "a key");
    if (std::count(seen.begin(), seen.end(), key) > 0) {
      file_.Complain(entry.first.Mark(), fmt::format("key \"{}\" stands here twice", key));
    }
    seen.push_back(key);
  }
}

std::string YamlMap::ScalarText(const YAML::Node& node, const std::string& key) const {
  if (!node.IsScalar()) file_.Complain(node.Mark(), fmt::format("{} must be a text", key));
  std::optional<std::string> missing;
  auto text = Expand(node.Scalar(), file_.environment, missing);
  if (missing) {
    file_.Complain(node.Mark(), fmt::format("environment variable \"{}\" is not set", *missing));
  }
  return text;
}

std::optional<YAML::Node> YamlMap::Find(const std::string& key) {
  known_.push_back(key);
  for (const auto& entry : node_) {
    if (entry.first.Scalar() == key) return entry.second;
  }
  return std::nullopt;
}

std::optional<std::string> YamlMap::Text(const std::string& key) {
  const auto node = Find(key);
  if (!node) return std::nullopt;
  return ScalarText(*node, fmt::format("\"{}\"", key));
}

std::string YamlMap::RequiredText(const std::string& key) {
  auto text = Text(key);
  if (!text || text->empty()) Complain(fmt::format("{} needs \"{}\"", what_, key));
  return *text;
}

std::optional<std::string> YamlMap::Secret(const std::string& key) {
  const auto text = Text(key);
  const auto named = Text(key + "_file");
  if (!named) return text;
  if (text) Complain(fmt::format("\"{0}\" and \"{0}_file\" exclude each other", key), key);
  const auto path = std::filesystem::path(file_.name).parent_path() / *named;
  std::ifstream in(path);
  if (!in) Complain(fmt::format("could not read \"{}\"", path.string()), key + "_file");
  std::string content{std::istreambuf_iterator<char>(in), {}};
  while (!content.empty() && (content.back() == '\n' || content.back() == '\r')) content.pop_back();
  return content;
}

bool YamlMap::Flag(const std::string& key, bool otherwise) {
  const auto text = Text(key);
  if (!text) return otherwise;
  if (*text == "true") return true;
  if (*text != "false") Complain(fmt::format("\"{}\" must be true or false", key), key);
  return false;
}

std::optional<uint32_t> YamlMap::Number(const std::string& key, uint32_t least, uint32_t most) {
  const auto text = Text(key);
  if (!text) return std::nullopt;
  uint32_t number = 0;
  const auto [end, code] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (code != std::errc() || end != text->data() + text->size() || number < least ||
      number > most) {
    Complain(fmt::format("\"{}\" must be a whole number from {} to {}", key, least, most), key);
  }
  return number;
}

std::vector<std::string> YamlMap::Texts(const std::string& key) {
  const auto node = Find(key);
  if (!node) return {};
  if (!node->IsSequence()) return {ScalarText(*node, fmt::format("\"{}\"", key))};
  std::vector<std::string> texts;
  for (const auto& one : *node) texts.push_back(ScalarText(one, fmt::format("\"{}\"", key)));
  return texts;
}

std::vector<std::string> YamlMap::Keys() const {
  std::vector<std::string> keys;
  for (const auto& entry : node_) keys.push_back(entry.first.Scalar());
  return keys;
}

void YamlMap::EachEntry(
    const std::string& key,
    const std::function<void(const std::string& name, const YAML::Node&)>& each) {
  const auto node = Find(key);
  if (!node) return;
  const YamlMap checked(file_, *node, fmt::format("\"{}\"", key));
  for (const auto& entry : checked.node_) each(entry.first.Scalar(), entry.second);
}

void YamlMap::RefuseOthers() const {
  for (const auto& entry : node_) {
    const auto& key = entry.first.Scalar();
    if (std::count(known_.begin(), known_.end(), key) > 0) continue;
    const auto meant = Nearest(key, known_);
    file_.Complain(entry.first.Mark(),
                   fmt::format("unknown key \"{}\" in {}{}", key, what_,
                               meant.empty() ? "" : fmt::format(", did you mean \"{}\"?", meant)));
  }
}

void YamlMap::Complain(const std::string& text, const std::string& key) const {
  for (const auto& entry : node_) {
    if (!key.empty() && entry.first.Scalar() == key) file_.Complain(entry.second.Mark(), text);
  }
  file_.Complain(node_.Mark(), text);
}

std::string Expand(std::string_view text, const Environment& environment,
                   std::optional<std::string>& missing) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    if (text.substr(at).starts_with("$${")) {
      out += "${";
      at += 3;
      continue;
    }
    const auto end = text.find('}', at);
    if (!text.substr(at).starts_with("${") || end == std::string_view::npos) {
      out += text[at++];
      continue;
    }
    const std::string name(text.substr(at + 2, end - at - 2));
    const auto value = environment(name);
    if (!value && !missing) missing = name;
    out += value.value_or("");
    at = end + 1;
  }
  return out;
}

namespace {

/// Insertions, deletions, replacements and swaps of neighbours between two words.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), row(b.size() + 1), next(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    next[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = row[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      next[j] = std::min({row[j] + 1, next[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        next[j] = std::min(next[j], before[j - 2] + 1);
      }
    }
    std::swap(before, row);
    std::swap(row, next);
  }
  return row[b.size()];
}

}  // namespace

std::string Nearest(std::string_view word, const std::vector<std::string>& words) {
  std::string nearest;
  size_t least = std::max<size_t>(1, word.size() / 3) + 1;
  for (const auto& candidate : words) {
    if (const size_t distance = EditDistance(word, candidate); distance < least) {
      least = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace tidemark::cli
