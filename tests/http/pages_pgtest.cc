// The pages of the http server, with a real store and real captures behind it.
#include <unistd.h>

#include <fstream>

#include "gateway/test_certificate.h"
#include "tests/http/http_fixture.h"

namespace tidemark::tests {
namespace {

using capture::MemberOutcome;
using ::testing::HasSubstr;
using ::testing::Not;

class HttpPages : public HttpFixture {};

TEST_F(HttpPages, StatusBasesAndEvidenceAreWhatTheCommandsShow) {
  Captured({Snapshot("items"), Snapshot("more")});
  const auto status = GetJson("/v1/status");
  EXPECT_EQ(status["datasets"][0]["declared"], "public.items");
  EXPECT_EQ(status["last_basis"]["number"], 1);
  CaptureChange();
  const auto bases = GetJson("/v1/bases?limit=1");
  ASSERT_EQ(bases.size(), 1U);
  EXPECT_EQ(bases[0]["basis"], 2);
  EXPECT_EQ(GetJson("/v1/bases").size(), 2U);
  const auto evidence = GetJson("/v1/bases/1");
  ASSERT_EQ(evidence["members"].size(), 2U);
  EXPECT_EQ(evidence["members"][0]["dataset"], "public.items");
  EXPECT_EQ(evidence["members"][0]["puts"], 10);
}

TEST_F(HttpPages, WhatIsAskedWronglyIsAProblemWithItsReason) {
  for (const char* target : {"/v1/bases?limit=0", "/v1/bases?limit=1001", "/v1/bases?limit=x",
                             "/v1/bases?limit=", "/v1/bases?limit=-1", "/v1/bases/x",
                             "/v1/bases/-1", "/v1/bases/0", "/v1/bases/99999999999999999999",
                             "/v1/events?last_event_id=x", "/v1/events?dataset=", "/%zz",
                             "/v1/status?x=%00"}) {
    const auto answer = Get(target);
    EXPECT_EQ(answer.status, 400) << target << answer.body;
    EXPECT_EQ(answer.headers.at("content-type"), "application/problem+json");
    const auto problem = json::parse(answer.body);
    EXPECT_EQ(problem["status"], 400);
    EXPECT_EQ(problem["sqlstate"].get<std::string>().substr(0, 2), "22") << answer.body;
  }
  EXPECT_EQ(Get("/v1/bases/7").status, 404);
  EXPECT_EQ(Get("/v2").status, 404);
  const auto refused = HttpClient(port()).Ask("DELETE", "/v1/status");
  EXPECT_EQ(refused.status, 405);
  EXPECT_EQ(refused.headers.at("allow"), "GET, HEAD, OPTIONS");
}

TEST_F(HttpPages, HeadSaysHowLongTheAnswerWouldBeAndSendsNone) {
  HttpClient client(port());
  const auto head = client.Ask("HEAD", "/healthz");
  EXPECT_EQ(head.status, 200);
  const auto whole = client.Ask("GET", "/healthz");  // on the same connection
  EXPECT_EQ(head.headers.at("content-length"), std::to_string(whole.body.size()));
  EXPECT_EQ(whole.headers.at("cache-control"), "no-store");
  EXPECT_EQ(client.Ask("HEAD", "/v1/events").headers.at("content-type"), "text/event-stream");
}

TEST_F(HttpPages, TheTokenIsAskedForEverywhereButWhereNothingIsTold) {
  options_.token = "s3cret";
  for (const char* target : {"/v1/status", "/v1/bases", "/v1/bases/1", "/metrics", "/v1/events",
                             "/nowhere"}) {
    const auto answer = Get(target);
    EXPECT_EQ(answer.status, 401) << target;
    EXPECT_THAT(answer.headers.at("www-authenticate"), HasSubstr("Bearer"));
    EXPECT_EQ(Get(target, "Authorization: Bearer s3crex\r\n").status, 401) << target;
  }
  EXPECT_EQ(Get("/healthz").status, 200);
  EXPECT_EQ(Get("/readyz").status, 200);
  EXPECT_EQ(Get("/v1/status", "Authorization: Bearer s3cret\r\n").status, 200);
}

TEST_F(HttpPages, MetricsCountCapturesRowsAndFailuresAndNeverGoBack) {
  EXPECT_EQ(Metric("tidemark_store_up"), 1);
  EXPECT_EQ(Metric("tidemark_last_basis"), 0);
  Captured({Snapshot("items")});
  CaptureChange();
  Captured({Snapshot("items")});  // unchanged
  const std::string items = "{dataset=\"public.items\"}";
  const std::string rows = "{dataset=\"public.items\",journal=\"public.items\"}";
  EXPECT_EQ(Metric("tidemark_captures_total" + items), 3);
  EXPECT_EQ(Metric("tidemark_dataset_puts_total" + rows), 11);
  EXPECT_EQ(Metric("tidemark_dataset_deletions_total" + rows), 0);
  EXPECT_EQ(Metric("tidemark_dataset_rows" + rows), 10);
  EXPECT_EQ(Metric("tidemark_capture_failures_total" + items), 0);
  EXPECT_GT(Metric("tidemark_capture_seconds_total" + items), 0);
  EXPECT_GT(Metric("tidemark_capture_basis_age_seconds" + items), 0);
  EXPECT_EQ(Metric("tidemark_last_basis"), 3);

  source_->Execute("ALTER TABLE items RENAME TO gone");
  Refused({Snapshot("items")});
  EXPECT_EQ(Metric("tidemark_capture_failures_total" + items), 1);
  EXPECT_EQ(Metric("tidemark_capture_failing" + items), 1);
  source_->Execute("ALTER TABLE gone RENAME TO items");
  source_->Execute("DELETE FROM items WHERE id > 8");
  Captured({Snapshot("items")});
  EXPECT_EQ(Metric("tidemark_capture_failing" + items), 0);
  EXPECT_EQ(Metric("tidemark_capture_failures_total" + items), 1);
  EXPECT_EQ(Metric("tidemark_dataset_deletions_total" + rows), 2);
  // Evidence that has been pruned still counts.
  store_->Execute("DELETE FROM tidemark.basis_member WHERE basis < 4");
  EXPECT_EQ(Metric("tidemark_dataset_puts_total" + rows), 11);
  EXPECT_EQ(Metric("tidemark_captures_total" + items), 4);
}

TEST_F(HttpPages, AFirstCaptureThatFailsIsCountedToo) {
  source_->Execute("CREATE TABLE twice (id int); INSERT INTO twice VALUES (1), (1)");
  Refused({Snapshot("twice")});
  Refused({Snapshot("twice")});
  EXPECT_EQ(Metric("tidemark_capture_failures_total{dataset=\"public.twice\"}"), 2);
}

/// Runs a script of Python's own http client.
std::string Python(const std::string& script, const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {"python3", "-c", script};
  command.insert(command.end(), arguments.begin(), arguments.end());
  std::string output;
  EXPECT_EQ(Run(command, &output), 0) << output;
  return output;
}

TEST_F(HttpPages, AnotherImplementationOfHttpReadsEveryPage) {
  Captured({Snapshot("items")});
  const auto output = Python(R"py(
import http.client, json, sys
c = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]), timeout=30)
for path in ['/healthz', '/readyz', '/v1/status', '/v1/bases', '/v1/bases/1', '/metrics',
             '/nowhere']:
    c.request('GET', path)
    r = c.getresponse()
    body = r.read().decode()
    if 'json' in r.headers['Content-Type']: json.loads(body)
    print(path, r.status, r.headers['Content-Type'])
c.request('GET', '/v1/events?last_event_id=0-0')
r = c.getresponse()
line = r.readline()
while not line.startswith(b'data:'): line = r.readline()
print(json.loads(line[5:])['dataset'])
)py",
                             {std::to_string(port())});
  EXPECT_EQ(output,
            "/healthz 200 application/json\n/readyz 200 application/json\n"
            "/v1/status 200 application/json\n/v1/bases 200 application/json\n"
            "/v1/bases/1 200 application/json\n"
            "/metrics 200 text/plain; version=0.0.4; charset=utf-8\n"
            "/nowhere 404 application/problem+json\npublic.items\n");
}

TEST_F(HttpPages, WithTlsNobodyIsServedInTheClearAndANewCertificateCounts) {
  TemporaryFolder folder;
  const auto old_files = gateway::MakeCertificate(folder.path(), "old");
  const auto new_files = gateway::MakeCertificate(folder.path(), "new");
  const auto copy = [&](const gateway::TlsFiles& files) {
    std::filesystem::copy_file(files.certificate_file, folder.path() / "used.crt",
                               std::filesystem::copy_options::overwrite_existing);
    std::filesystem::copy_file(files.key_file, folder.path() / "used.key",
                               std::filesystem::copy_options::overwrite_existing);
  };
  copy(old_files);
  options_.tls = {{.certificate_file = folder.path() / "used.crt",
                   .key_file = folder.path() / "used.key"}};
  Captured({Snapshot("items")});
  // Prints the first event, read over TLS, or that the certificate is another one.
  const std::string script = R"py(
import http.client, json, ssl, sys
context = ssl.create_default_context(cafile=sys.argv[2])
context.check_hostname = False
c = http.client.HTTPSConnection('127.0.0.1', int(sys.argv[1]), timeout=30, context=context)
try:
    c.request('GET', '/v1/status')
except ssl.SSLCertVerificationError:
    print('another certificate')
    sys.exit()
print(len(json.loads(c.getresponse().read())['datasets']))
c.request('GET', '/v1/events?last_event_id=0-0')
r = c.getresponse()
line = r.readline()
while not line.startswith(b'data:'): line = r.readline()
print(json.loads(line[5:])['dataset'])
)py";
  const auto ask = [&](const gateway::TlsFiles& files) {
    return Python(script, {std::to_string(port()), files.certificate_file});
  };
  EXPECT_EQ(ask(old_files), "1\npublic.items\n");
  EXPECT_EQ(ask(new_files), "another certificate\n");
  copy(new_files);
  server().ReloadTls();
  EXPECT_EQ(ask(new_files), "1\npublic.items\n");
  // One that cannot be used changes nothing.
  std::ofstream(folder.path() / "used.key") << "no key";
  EXPECT_THROW(server().ReloadTls(), base::Error);
  EXPECT_EQ(ask(new_files), "1\npublic.items\n");

  HttpClient clear(port());
  clear.Send("GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(clear.Ends());
  EXPECT_THAT(clear.buffer(), Not(HasSubstr("HTTP/1.1 200")));
}

}  // namespace
}  // namespace tidemark::tests
