#include "cli/config.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "base/error.h"
#include "capture/cadence.h"
#include "capture/mirror_options.h"
#include "cli/signed_calls.h"
#include "cli/yaml_reader.h"
#include "pg/dsn.h"

namespace tidemark::cli {

namespace {

constexpr const char* kSlotNameCharacters = "abcdefghijklmnopqrstuvwxyz0123456789_";

Source ReadSource(const YamlFile& file, const std::string& name, const YAML::Node& node) {
  YamlMap map(file, node, fmt::format("source \"{}\"", name));
  const auto postgres = map.Secret("postgres");
  const auto files = map.Text("files");
  const auto adbc = map.Find("adbc");
  map.RefuseOthers();
  if (int{postgres.has_value()} + int{files.has_value()} + int{adbc.has_value()} != 1) {
    map.Complain(fmt::format("source \"{}\" needs exactly one of \"postgres\", \"adbc\" and "
                             "\"files\"",
                             name));
  }
  if (postgres) {
    try {
      pg::EndpointOf(*postgres);
    } catch (const base::Error& error) {
      map.Complain(error.message(), "postgres");
    }
    return {.name = name, .reached_by = PostgresSource{*postgres}};
  }
  if (files) return {.name = name, .reached_by = FilesSource{*files}};
  YamlMap inner(file, *adbc, "\"adbc\"");
  AdbcSource source{.driver = inner.RequiredText("driver"), .uri = ""};
  source.uri = inner.Secret("uri").value_or("");
  inner.RefuseOthers();
  return {.name = name, .reached_by = source};
}

/// The source that an entry refers to; it must be declared.
std::string ReadSourceName(YamlMap& map, const Config& config) {
  auto name = map.RequiredText("source");
  if (config.FindSource(name) == nullptr) {
    std::vector<std::string> names;
    for (const auto& source : config.sources) names.push_back(source.name);
    const auto meant = Nearest(name, names);
    map.Complain(fmt::format("there is no source \"{}\"{}", name,
                             meant.empty() ? "" : fmt::format(", did you mean \"{}\"?", meant)),
                 "source");
  }
  return name;
}

std::string ReadCadence(YamlMap& map) {
  const auto text = map.Text("cadence").value_or("");
  if (text.empty()) return text;
  try {
    capture::Cadence::Parse(text);
  } catch (const base::Error& error) {
    map.Complain(fmt::format("\"cadence\" must be a cron expression of five fields: {}",
                             error.detail()),
                 "cadence");
  }
  return text;
}

/// 90d, 12h, 2w: a number and s, m, h, d, w or y.
std::string ReadRetention(YamlMap& map, const std::string& key = "retention") {
  const auto text = map.Text(key).value_or("");
  if (text.empty()) return text;
  const auto digits = text.find_first_not_of("0123456789");
  const bool fits = digits != 0 && digits == text.size() - 1 &&
                    std::string_view("smhdwy").find(text.back()) != std::string_view::npos &&
                    text.find_first_not_of('0') < digits;
  if (!fits) map.Complain(fmt::format("\"{}\" must be a span like 90d, 12h or 2y", key), key);
  return text;
}

std::map<std::string, std::string> ReadTableRetention(const YamlFile& file, YamlMap& map) {
  std::map<std::string, std::string> retention;
  const auto node = map.Find("table_retention");
  if (!node) return retention;
  YamlMap tables(file, *node, "\"table_retention\"");
  for (const auto& name : tables.Keys()) {
    if (name.find('.') == std::string::npos) {
      tables.Complain(fmt::format("table \"{}\" must be named schema.table", name), name);
    }
    retention[name] = ReadRetention(tables, name);
  }
  tables.RefuseOthers();
  return retention;
}

/// 500MB, 10GB, or a number of bytes.
std::optional<int64_t> ReadBytes(YamlMap& map, const std::string& key) {
  const auto text = map.Text(key);
  if (!text) return std::nullopt;
  static const std::array<std::pair<std::string_view, int>, 5> units = {
      {{"", 0}, {"kB", 10}, {"MB", 20}, {"GB", 30}, {"TB", 40}}};
  int64_t number = 0;
  const auto [end, code] = std::from_chars(text->data(), text->data() + text->size(), number);
  const std::string_view unit(end, static_cast<size_t>(text->data() + text->size() - end));
  for (const auto& [name, shift] : units) {
    if (code == std::errc() && unit == name && number > 0 && number < (int64_t{1} << 22)) {
      return number << shift;
    }
    if (code == std::errc() && unit == name && shift == 0 && number > 0) return number;
  }
  map.Complain(fmt::format("\"{}\" must be a size like 500MB or 10GB", key), key);
}

std::string ReadSlot(YamlMap& map, const std::string& name) {
  auto slot = map.Text("slot").value_or(capture::SlotNameFor(name));
  if (slot.empty() || slot.find_first_not_of(kSlotNameCharacters) != std::string::npos) {
    map.Complain("\"slot\" may contain only lower-case letters, digits and underscores", "slot");
  }
  return slot;
}

Following ReadFollowing(YamlMap& map) {
  Following following;
  const auto on_gap = map.Text("on_gap").value_or("resync");
  if (on_gap != "resync" && on_gap != "stop") {
    map.Complain("\"on_gap\" must be resync or stop", "on_gap");
  }
  following.resync_on_gap = on_gap == "resync";
  const auto encoding_errors = map.Text("encoding_errors").value_or("stop");
  if (encoding_errors != "stop" && encoding_errors != "replace") {
    map.Complain("\"encoding_errors\" must be stop or replace", "encoding_errors");
  }
  following.replace_undecodable = encoding_errors == "replace";
  const auto unknown_types = map.Text("unknown_types").value_or("refuse");
  if (unknown_types != "refuse" && unknown_types != "text") {
    map.Complain("\"unknown_types\" must be refuse or text", "unknown_types");
  }
  following.unknown_as_text = unknown_types == "text";
  following.isolate_failed_tables = map.Flag("isolate_failed_tables", false);
  following.wal_warn_bytes = ReadBytes(map, "wal_warn_bytes");
  return following;
}

// Between its captures nobody looks at the slot.
void RefuseWatchOnCadence(YamlMap& map, const Following& following, const std::string& cadence) {
  if (!following.wal_warn_bytes || cadence.empty()) return;
  map.Complain("\"wal_warn_bytes\" is of what is followed live: it needs no \"cadence\"",
               "wal_warn_bytes");
}

Mirror ReadMirror(const YamlFile& file, const Config& config, const std::string& name,
                  const YAML::Node& node) {
  YamlMap map(file, node, fmt::format("mirror \"{}\"", name));
  Mirror mirror{.name = name, .source = ReadSourceName(map, config), .slot = ""};
  if (config.FindSource(mirror.source)->dsn() == nullptr) {
    map.Complain(fmt::format("source \"{}\" is no PostgreSQL: only one can be mirrored",
                             mirror.source),
                 "source");
  }
  mirror.publication = map.Text("publication").value_or(kDefaultPublication);
  mirror.slot = ReadSlot(map, name);
  mirror.cadence = ReadCadence(map);
  mirror.following = ReadFollowing(map);
  mirror.retention = ReadRetention(map);
  mirror.table_retention = ReadTableRetention(file, map);
  RefuseWatchOnCadence(map, mirror.following, mirror.cadence);
  map.RefuseOthers();
  return mirror;
}

Strategy ReadStrategy(YamlMap& map) {
  static const std::array<std::pair<const char*, Strategy>, 3> names = {
      {{"snapshot", Strategy::kSnapshot}, {"cursor", Strategy::kCursor}, {"cdc", Strategy::kCdc}}};
  const auto text = map.RequiredText("strategy");
  for (const auto& [name, strategy] : names) {
    if (text == name) return strategy;
  }
  map.Complain("\"strategy\" must be snapshot, cursor or cdc", "strategy");
}

/// Of a dataset that is followed through a slot of its own.
void CompleteCdc(YamlMap& map, const Config& config, Dataset& dataset) {
  if (config.FindSource(dataset.source)->dsn() == nullptr) {
    map.Complain(fmt::format("source \"{}\" is no PostgreSQL: only one has changes to follow",
                             dataset.source),
                 "source");
  }
  if (!dataset.key.empty()) {
    map.Complain("with \"strategy: cdc\" the key is the table's own: leave \"key\" out", "key");
  }
  if (std::count(dataset.relation.begin(), dataset.relation.end(), '.') != 1) {
    map.Complain("with \"strategy: cdc\" the relation must be named schema.table", "relation");
  }
  dataset.publication = map.Text("publication").value_or(capture::SlotNameFor(dataset.name));
  dataset.slot = ReadSlot(map, dataset.name);
  dataset.following = ReadFollowing(map);
  const auto& cadence = dataset.cadence.empty() ? config.cadence : dataset.cadence;
  RefuseWatchOnCadence(map, dataset.following, cadence);
}

// A complete capture has no stream: what is unknown or undecodable in it fails it.
void RefuseFollowing(YamlMap& map) {
  for (const char* key : {"on_gap", "encoding_errors", "unknown_types", "isolate_failed_tables",
                          "wal_warn_bytes"}) {
    if (map.Find(key)) map.Complain(fmt::format("\"{}\" needs \"strategy: cdc\"", key), key);
  }
}

Dataset ReadDataset(const YamlFile& file, const Config& config, const std::string& name,
                    const YAML::Node& node) {
  YamlMap map(file, node, fmt::format("dataset \"{}\"", name));
  Dataset dataset{.name = name, .source = ReadSourceName(map, config)};
  dataset.relation = map.RequiredText("relation");
  dataset.strategy = ReadStrategy(map);
  dataset.key = map.Texts("key");
  dataset.cursor = map.Text("cursor").value_or("");
  dataset.overlap = map.Text("overlap").value_or("");
  dataset.as = map.Text("as").value_or("");
  dataset.cadence = ReadCadence(map);
  dataset.retention = ReadRetention(map);
  if (dataset.strategy == Strategy::kCdc) {
    CompleteCdc(map, config, dataset);
  } else {
    if (dataset.key.empty()) map.Complain(fmt::format("dataset \"{}\" needs \"key\"", name));
    RefuseFollowing(map);
  }
  map.RefuseOthers();
  if ((dataset.strategy == Strategy::kCursor) != !dataset.cursor.empty()) {
    map.Complain(fmt::format("dataset \"{}\": \"cursor\" and \"strategy: cursor\" need each other",
                             name));
  }
  if (dataset.strategy != Strategy::kCursor && !dataset.overlap.empty()) {
    map.Complain(fmt::format("dataset \"{}\": \"overlap\" needs \"strategy: cursor\"", name),
                 "overlap");
  }
  const auto& in_store = dataset.as.empty() ? dataset.name : dataset.as;
  if (std::count(in_store.begin(), in_store.end(), '.') != 1) {
    map.Complain(fmt::format("dataset \"{}\" must be named schema.table, or say so with \"as\"",
                             name));
  }
  return dataset;
}

uint16_t ReadPort(const YamlMap& map, std::string_view text, const std::string& key) {
  uint16_t port = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (code != std::errc() || end != text.data() + text.size()) {
    map.Complain(fmt::format("\"{}\" must end with a port number from 0 to 65535", key), key);
  }
  return port;
}

void ReadTls(const YamlFile& file, const YAML::Node& node, Listen& listen) {
  YamlMap map(file, node, "\"tls\"");
  const auto folder = std::filesystem::path(file.name).parent_path();
  listen.tls_certificate_file = folder / map.RequiredText("certificate_file");
  listen.tls_key_file = folder / map.RequiredText("key_file");
  if (map.Find("required")) listen.tls_required = map.Flag("required", true);
  map.RefuseOthers();
}

GatewayLimits ReadLimits(const YamlFile& file, const YAML::Node& node) {
  YamlMap map(file, node, "\"limits\"");
  const GatewayLimits limits{.sessions = map.Number("sessions", 1, 100'000),
                             .startups = map.Number("startups", 1, 100'000),
                             .startup_bytes = map.Number("startup_bytes", 100, 10'000),
                             .startup_seconds = map.Number("startup_seconds", 1, 3600)};
  map.RefuseOthers();
  return limits;
}

void ReadGateway(const YamlFile& file, YamlMap& map, Config& config) {
  if (const auto given = map.Find("limits")) config.gateway_limits = ReadLimits(file, *given);
  config.gateway_superusers = map.Flag("superusers", false);
}

void ReadHttp(const YamlFile& file, YamlMap& map, Config& config) {
  auto& serving = config.http_serving;
  serving.off = map.Flag("off", false);
  if (const auto token = map.Secret("token")) {
    if (token->empty()) map.Complain("\"token\" must not be empty", "token");
    serving.token = *token;
  }
  if (const auto given = map.Find("limits")) {
    YamlMap limits(file, *given, "\"limits\"");
    serving.connections = limits.Number("connections", 1, 10'000);
    serving.subscribers = limits.Number("subscribers", 0, 10'000);
    serving.body_bytes = limits.Number("body_bytes", 1, 64U << 20);
    limits.RefuseOthers();
  }
}

/// `rest` reads what only this server has.
void ReadListen(const YamlFile& file, YamlMap& above, const std::string& name, Listen& listen,
                const std::function<void(YamlMap&)>& rest) {
  const auto node = above.Find(name);
  if (!node) return;
  YamlMap map(file, *node, fmt::format("\"{}\"", name));
  if (const auto address = map.Text("listen")) {
    const auto colon = address->rfind(':');
    const bool has_host = colon != std::string::npos;
    listen.port = ReadPort(map, std::string_view(*address).substr(has_host ? colon + 1 : 0),
                           "listen");
    if (has_host) listen.host = address->substr(0, colon);
    if (listen.host.starts_with('[') && listen.host.ends_with(']')) {
      listen.host = listen.host.substr(1, listen.host.size() - 2);
    }
  }
  listen.insecure = map.Flag("insecure", listen.insecure);
  if (const auto tls = map.Find("tls")) ReadTls(file, *tls, listen);
  rest(map);
  map.RefuseOthers();
}

}  // namespace

const std::string* Source::dsn() const {
  const auto* postgres = std::get_if<PostgresSource>(&reached_by);
  return postgres == nullptr ? nullptr : &postgres->dsn;
}

const Source* Config::FindSource(const std::string& name) const {
  const auto found = std::find_if(sources.begin(), sources.end(),
                                  [&](const Source& source) { return source.name == name; });
  return found == sources.end() ? nullptr : &*found;
}

bool Listen::IsLoopback() const {
  in_addr v4 = {};
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6 = {};
  if (::inet_pton(AF_INET6, host.c_str(), &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6) != 0;
  return host == "localhost";
}

bool Listen::RequiresTls() const {
  return HasTls() && tls_required.value_or(!IsLoopback() && !insecure);
}

std::optional<std::string> ProcessEnvironment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

Config ReadConfig(const std::string& text, const std::string& file_name,
                  const Environment& environment) {
  const YamlFile file{file_name, environment};
  YAML::Node root;
  try {
    root = YAML::Load(text);
  } catch (const YAML::Exception& error) {
    file.Complain(error.mark, error.msg);
  }
  Config config;
  YamlMap map(file, root, "the configuration");
  if (const auto store = map.Secret("store"); store && *store != "embedded") {
    config.store_dsn = *store;
    try {
      pg::EndpointOf(*store);
    } catch (const base::Error& error) {
      map.Complain("\"store\" must be \"embedded\" or a connection string", "store");
    }
  }
  if (const auto data = map.Text("data")) config.data = *data;
  config.allow_volatile_store = map.Flag("allow_volatile_store", false);
  config.gateway.insecure = config.http.insecure = map.Flag("insecure", false);
  ReadListen(file, map, "gateway", config.gateway,
             [&](YamlMap& inner) { ReadGateway(file, inner, config); });
  ReadListen(file, map, "http", config.http,
             [&](YamlMap& inner) { ReadHttp(file, inner, config); });
  map.EachEntry("sources", [&](const std::string& name, const YAML::Node& node) {
    config.sources.push_back(ReadSource(file, name, node));
  });
  config.cadence = ReadCadence(map);
  map.EachEntry("mirrors", [&](const std::string& name, const YAML::Node& node) {
    config.mirrors.push_back(ReadMirror(file, config, name, node));
  });
  map.EachEntry("datasets", [&](const std::string& name, const YAML::Node& node) {
    config.datasets.push_back(ReadDataset(file, config, name, node));
  });
  config.keep_going = map.Flag("keep_going", false);
  config.retention = ReadRetention(map);
  ReadOccurrences(file, map, config);
  ReadWebhooks(file, map, config);
  map.RefuseOthers();
  return config;
}

Config LoadConfig(const std::filesystem::path& file) {
  std::ifstream in(file);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in) {
    throw base::Error(base::kConfigFileError,
                      fmt::format("could not read configuration file \"{}\"", file.string()));
  }
  return ReadConfig(text, file.string());
}

void AddMirrorOf(Config& config, const std::string& dsn) {
  auto name = pg::EndpointOf(dsn).database;
  config.sources.push_back({.name = name, .reached_by = PostgresSource{dsn}});
  config.mirrors.push_back({.name = name, .source = name, .slot = capture::SlotNameFor(name)});
}

}  // namespace tidemark::cli
