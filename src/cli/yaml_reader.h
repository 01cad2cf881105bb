// A YAML map read key by key, so that every mistake is reported where it stands: unknown and
// repeated keys, wrong types, variables that are not set. Door to yaml-cpp, with config.cc.
#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/config.h"

namespace tidemark::cli {

/// What all maps of one file share.
struct YamlFile {
  std::string name;
  Environment environment;
  /// Throws F0000 `name:line:column: text`.
  [[noreturn]] void Complain(const YAML::Mark& mark, const std::string& text) const;
};

class YamlMap {
 public:
  /// `node` must be a map (or null, which is an empty one); `what` names it in complaints.
  YamlMap(const YamlFile& file, const YAML::Node& node, std::string what);

  /// Asks for a key; each key that is asked for is a known one.
  std::optional<YAML::Node> Find(const std::string& key);
  std::optional<std::string> Text(const std::string& key);
  /// Text of `key`, or the content of the file that `key`_file names.
  std::optional<std::string> Secret(const std::string& key);
  std::string RequiredText(const std::string& key);
  bool Flag(const std::string& key, bool otherwise);
  /// A whole number in that range.
  std::optional<uint32_t> Number(const std::string& key, uint32_t least, uint32_t most);
  /// A list of texts; a single text is a list of one.
  std::vector<std::string> Texts(const std::string& key);
  /// Every key of the map itself, in order.
  std::vector<std::string> Keys() const;
  /// Calls `each` for every entry of the map under `key`, in order.
  void EachEntry(const std::string& key,
                 const std::function<void(const std::string& name, const YAML::Node&)>& each);
  /// Complains about the first key that nobody asked for.
  void RefuseOthers() const;
  /// Complains at the map itself, or at one of its keys.
  [[noreturn]] void Complain(const std::string& text, const std::string& key = "") const;

 private:
  std::string ScalarText(const YAML::Node& node, const std::string& key) const;

  const YamlFile& file_;
  YAML::Node node_;
  std::string what_;
  std::vector<std::string> known_;
};

/// `text` with every `${NAME}` replaced; `$${` stands for `${`. Returns the name that is not set in
/// `missing`, if there is one.
std::string Expand(std::string_view text, const Environment& environment,
                   std::optional<std::string>& missing);

/// The word of `words` that `word` most likely means; empty when none is near.
std::string Nearest(std::string_view word, const std::vector<std::string>& words);

}  // namespace tidemark::cli
