// Clients that do not behave, and a store that is away.
#include "tests/http/http_fixture.h"

namespace tidemark::tests {
namespace {

using ::testing::HasSubstr;

class HttpRobustness : public HttpFixture {
 protected:
  /// What the server says to these bytes, sent on a line of their own.
  HttpAnswer Say(const std::string& bytes) {
    HttpClient client(port());
    client.Send(bytes);
    return client.Read();
  }
  void ExpectAlive() { EXPECT_EQ(Get("/healthz").status, 200); }
};

TEST_F(HttpRobustness, MalformedRequestsAreAnsweredAndClosed) {
  for (const char* bytes : {
           "nonsense\r\n\r\n",
           "GET /healthz\r\n\r\n",
           "GET  HTTP/1.1\r\n\r\n",
           "GET healthz HTTP/1.1\r\nHost: x\r\n\r\n",
           "GET /healthz HTTP/1.1\r\n\r\n",                          // no Host
           "GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",    // two of them
           "GET /healthz HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n",
           "GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
           "GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
           "POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n"
           "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",            // smuggling
           "GET /%00 HTTP/1.1\r\nHost: x\r\n\r\n",
           "GET /%ff HTTP/1.1\r\nHost: x\r\n\r\n",
           "CONNECT localhost:1 HTTP/1.1\r\nHost: x\r\n\r\n",
           "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",           // TLS where none is spoken
       }) {
    HttpClient client(port());
    client.Send(bytes);
    client.FinishSending();
    const auto answer = client.Read();
    EXPECT_TRUE(answer.status == 400 || answer.status == 0) << bytes << answer.status;
    EXPECT_TRUE(client.Ends()) << bytes;
    ExpectAlive();
  }
  EXPECT_EQ(Say("GET /healthz HTTP/3.0\r\nHost: x\r\n\r\n").status, 505);
  EXPECT_EQ(Say("GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n").status, 400);
  EXPECT_EQ(Say("POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n"
                "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
                .status,
            400);
}

TEST_F(HttpRobustness, OldAndUnusualButProperRequestsAreServed) {
  EXPECT_EQ(Say("GET /healthz HTTP/1.0\r\n\r\n").status, 200);
  EXPECT_EQ(Say("GET http://localhost/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 200);
  EXPECT_EQ(Say("OPTIONS /v1/status HTTP/1.1\r\nHost: x\r\n\r\n").status, 204);
  // Two in one go are answered in their order.
  HttpClient client(port());
  client.Send("GET /readyz HTTP/1.1\r\nHost: x\r\n\r\nGET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client.Read().status, 200);
  EXPECT_EQ(client.Read().status, 404);
  // Byte by byte.
  HttpClient slow(port());
  for (const char c : std::string("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")) {
    slow.Send(std::string(1, c));
  }
  EXPECT_EQ(slow.Read().status, 200);
  // An old client reads events, too, up to the end of the line.
  HttpClient old(port());
  old.Send("GET /v1/events HTTP/1.0\r\n\r\n");
  const auto head = old.ReadHead();
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.headers.count("transfer-encoding"), 0U);
}

class Posted : public HttpRobustness {
 protected:
  void SetUp() override {
    HttpRobustness::SetUp();
    options_.body_bytes_max = 10'000;
    options_.add_pages = [](http::Router& router) {
      router.Add("POST", "/echo", [](const http::Request& request, const http::PathParameters&,
                                     pg::Connection& store) {
        return http::Response{.body = store.Value("SELECT $1", {request.body})};
      });
      router.Add("POST", "/broken", [](const http::Request&, const http::PathParameters&,
                                       pg::Connection& store) -> http::Response {
        store.Execute("BEGIN");
        store.Execute("SELECT 1/0");
        return {};
      });
    };
  }
};

TEST_F(Posted, BodiesArriveWholeWhateverTheirFraming) {
  HttpClient client(port());
  EXPECT_EQ(client.Ask("POST", "/echo", "", "hello").body, "hello");
  client.Send("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
              "3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n");
  EXPECT_EQ(client.Read().body, "hello");
  client.Send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
              "Expect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.ReadHead().status, 100);
  client.Send("hello");
  EXPECT_EQ(client.Read().body, "hello");
  const std::string largest(10'000, 'x');
  EXPECT_EQ(client.Ask("POST", "/echo", "", largest).body, largest);
}

TEST_F(Posted, BodiesThatAreTooLargeAreRefusedAndTheRefusalIsReadable) {
  for (const std::string& framing :
       {std::string("Content-Length: 3000000"), std::string("Transfer-Encoding: chunked")}) {
    HttpClient client(port());
    client.Send("POST /echo HTTP/1.1\r\nHost: x\r\n" + framing + "\r\n\r\n");
    // As a client that sends all of it before it reads.
    std::string body(3'000'000, 'x');
    if (framing.ends_with("chunked")) body = "2dc6c0\r\n" + body + "\r\n0\r\n\r\n";
    client.Send(body);
    const auto answer = client.Read();
    EXPECT_EQ(answer.status, 413) << framing;
    EXPECT_EQ(json::parse(answer.body)["title"], "Content Too Large");
    EXPECT_TRUE(client.Ends());
  }
  HttpClient patient(port());
  patient.Send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\n"
               "Expect: 100-continue\r\n\r\n");
  EXPECT_EQ(patient.Read().status, 413);
  ExpectAlive();
}

TEST_F(Posted, APageThatFailsIsAProblemAndLeavesTheStoresConnectionUsable) {
  options_.workers = 1;
  HttpClient client(port());
  const auto failed = client.Ask("POST", "/broken", "", "x");
  EXPECT_EQ(failed.status, 400);
  EXPECT_EQ(json::parse(failed.body)["sqlstate"], "22012");
  EXPECT_EQ(client.Ask("POST", "/echo", "", "hello").body, "hello");
}

TEST_F(HttpRobustness, AHeadThatIsTooLargeIsRefused) {
  const auto answer = Say("GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + std::string(40'000, 'x') +
                          "\r\n\r\n");
  EXPECT_EQ(answer.status, 431);
  EXPECT_EQ(Say("GET /" + std::string(40'000, 'x') + " HTTP/1.1\r\nHost: x\r\n\r\n").status, 431);
  ExpectAlive();
}

TEST_F(HttpRobustness, WhoNeverFinishesARequestIsToldSoInTime) {
  options_.request_timeout = 200ms;
  HttpClient head(port());
  head.Send("GET /healthz HTTP/1.1\r\nHost: x\r\nX: ");
  EXPECT_EQ(head.Read().status, 408);
  EXPECT_TRUE(head.Ends());
  HttpClient body(port());
  body.Send("OPTIONS /v1/status HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhel");
  EXPECT_EQ(body.Read().status, 204);  // no body is needed to answer this
  // Drop by drop, which is what such clients do: the deadline is that of the whole request.
  HttpClient drops(port());
  const auto begun = std::chrono::steady_clock::now();
  drops.Send("GET /healthz HTTP/1.1\r\nHost: x\r\nX: ");
  while (!drops.Fill(base::Deadline::After(10ms)) &&
         std::chrono::steady_clock::now() - begun < 20s) {
    drops.Send("x");
  }
  EXPECT_EQ(drops.Read().status, 408);
}

TEST_F(Posted, WhoNeverFinishesABodyIsToldSo) {
  options_.request_timeout = 200ms;
  HttpClient client(port());
  client.Send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhel");
  EXPECT_EQ(client.Read().status, 408);
}

TEST_F(HttpRobustness, ManySlowClientsKeepNobodyOut) {
  options_.connections_max = 20;
  options_.request_timeout = 300ms;
  std::vector<std::unique_ptr<HttpClient>> slow;
  for (int i = 0; i < 40; ++i) {
    slow.push_back(std::make_unique<HttpClient>(port()));
    slow.back()->Send("GET /healthz HTTP/1.1\r\nHost: ");
  }
  const auto crowded = HttpClient(port()).Ask("GET", "/healthz");
  EXPECT_TRUE(crowded.status == 503 || crowded.status == 0 || crowded.status == 200);
  EXPECT_TRUE(Becomes([&] { return Get("/healthz").status == 200; }));
}

TEST_F(HttpRobustness, IdleConnectionsGiveWayToNewOnes) {
  options_.connections_max = 5;
  std::vector<std::unique_ptr<HttpClient>> idle;
  for (int i = 0; i < 5; ++i) {
    idle.push_back(std::make_unique<HttpClient>(port()));
    EXPECT_EQ(idle.back()->Ask("GET", "/healthz").status, 200);
  }
  ExpectAlive();
}

TEST_F(HttpRobustness, OneConnectionTooManyIsToldSo) {
  options_.connections_max = 3;
  std::vector<std::unique_ptr<EventReader>> readers;
  for (int i = 0; i < 3; ++i) readers.push_back(std::make_unique<EventReader>(port()));
  const auto refused = Get("/healthz");
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(json::parse(refused.body)["sqlstate"], "53300");
}

TEST_F(HttpRobustness, AnIdleConnectionIsClosedInTheEnd) {
  options_.idle_timeout = 100ms;
  HttpClient client(port());
  EXPECT_EQ(client.Ask("GET", "/healthz").status, 200);
  EXPECT_TRUE(client.Ends());
}

TEST_F(HttpRobustness, WithoutTheStoreItAnswersSoAndServesAgainWhenItIsBack) {
  Cluster cluster;
  store_dsn_ = cluster.CreateDatabase("kept");
  store_.emplace(temporal::OpenStore(store_dsn_, base::Deadline::After(30s)));
  cluster.Stop();
  const auto away = Get("/v1/status");
  EXPECT_EQ(away.status, 503);
  EXPECT_EQ(away.headers.at("content-type"), "application/problem+json");
  EXPECT_EQ(json::parse(away.body)["sqlstate"], "08001");
  EXPECT_EQ(Get("/v1/events").status, 503);
  EXPECT_EQ(Get("/readyz").status, 503);
  EXPECT_EQ(Get("/healthz").status, 200);
  EXPECT_EQ(Metric("tidemark_store_up"), 0);

  cluster.Start();
  const auto empty = Get("/v1/status");
  EXPECT_EQ(empty.status, 503);
  EXPECT_THAT(empty.body, HasSubstr("the store has no schema of this version"));
  store_.emplace(temporal::OpenStore(store_dsn_, base::Deadline::After(30s)));
  temporal::Migrate(*store_);
  EXPECT_EQ(Get("/readyz").status, 200);
  EventReader reader(port());
  const auto id = CaptureChange();
  EXPECT_TRUE(reader.Await(1));
  // A crash between two requests is not even noticed.
  cluster.Stop("immediate");
  cluster.Start();
  store_.emplace(temporal::OpenStore(store_dsn_, base::Deadline::After(30s)));
  EXPECT_EQ(GetJson("/v1/bases").size(), 1U);
  CaptureChange();
  EXPECT_TRUE(reader.Await(2));
}

}  // namespace
}  // namespace tidemark::tests
