// An http server in this process before the store of a capture fixture.
#pragma once

#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "http/server.h"
#include "tests/capture/capture_fixture.h"
#include "tests/http/event_reader.h"
#include "tests/http/http_client.h"

namespace tidemark::tests {

using nlohmann::json;

class HttpFixture : public CaptureFixture {
 protected:
  void SetUp() override {
    CaptureFixture::SetUp();
    source_->Execute(
        "CREATE TABLE items (id int PRIMARY KEY, name text NOT NULL); "
        "INSERT INTO items SELECT i, 'item ' || i FROM generate_series(1, 10) i; "
        "CREATE TABLE more (id int PRIMARY KEY, n int); INSERT INTO more VALUES (1, 1)");
    options_.listen_port = 0;
    options_.on_log = [this](std::string_view line) {
      const std::scoped_lock lock(log_mutex_);
      log_ += std::string(line) + "\n";
    };
  }
  void TearDown() override { Stop(); }

  /// Starts it at the first use; `options_` are of no effect afterwards.
  uint16_t port() {
    if (!server_) {
      options_.store_dsn = store_dsn_;
      server_ = std::make_unique<http::Server>(options_);
      thread_ = std::jthread([this](std::stop_token stop) { server_->Run(stop); });
    }
    return server_->port();
  }
  void Stop() {
    thread_ = {};
    server_.reset();
  }
  http::Server& server() { return *server_; }
  std::string LogText() {
    const std::scoped_lock lock(log_mutex_);
    return log_;
  }

  HttpAnswer Get(const std::string& target, const std::string& headers = "") {
    return HttpClient(port()).Ask("GET", target, headers);
  }
  json GetJson(const std::string& target) {
    const auto answer = Get(target);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return json::parse(answer.body);
  }
  /// The value of a metric, labels and all; -1 when it is not there.
  double Metric(const std::string& name) {
    const auto text = "\n" + Get("/metrics").body;
    const auto at = text.find("\n" + name + " ");
    return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size() + 2));
  }
  template <typename Condition>
  static bool Becomes(Condition&& condition) {
    const auto deadline = base::Deadline::After(30s);
    while (!deadline.passed()) {
      if (condition()) return true;
      std::this_thread::sleep_for(10ms);
    }
    return false;
  }

  /// Changes `items` at the source and captures it; returns the event's id.
  std::string CaptureChange() {
    source_->Execute("UPDATE items SET name = 'changed ' || " + std::to_string(++changes_) +
                     " WHERE id = 1");
    Captured({Snapshot("items")});
    return Value("SELECT id FROM tidemark.event ORDER BY basis DESC, dataset_id DESC LIMIT 1");
  }
  /// All events that the store keeps, in order.
  std::vector<std::string> KeptIds(const std::string& where = "true") {
    const auto rows = store_->Execute("SELECT id FROM tidemark.event WHERE " + where +
                                      " ORDER BY basis, dataset_id");
    std::vector<std::string> ids;
    for (int i = 0; i < rows.rows(); ++i) ids.push_back(rows.str(i, 0));
    return ids;
  }

  http::Options options_;
  int changes_ = 0;

 private:
  std::mutex log_mutex_;
  std::string log_;
  std::unique_ptr<http::Server> server_;
  std::jthread thread_;
};

}  // namespace tidemark::tests
