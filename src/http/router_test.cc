#include "http/router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http/admission.h"

namespace tidemark::http {
namespace {

using ::testing::HasSubstr;

Page Named(const std::string& name) {
  return PromptHandler([name](const Request&, const PathParameters& parameters) {
    Response response{.body = name};
    for (const auto& [key, value] : parameters) response.headers.emplace_back(key, value);
    return response;
  });
}

class RouterTest : public ::testing::Test {
 protected:
  RouterTest() {
    router_.AddPage("GET", "/", Named("root"));
    router_.AddPage("GET", "/v1/bases", Named("bases"));
    router_.AddPage("GET", "/v1/bases/{basis}", Named("basis"));
    router_.AddPage("POST", "/v1/datasets/{name}/occurrences", Named("occur"), Access::kOpen);
    router_.AddPage("GET", "/v1/datasets/{name}/occurrences", Named("occurred"));
  }
  /// The page's name and its parameters, or the status where there is none.
  std::string Find(std::string_view method, std::string_view path) const {
    const auto found = router_.Find(method, path);
    if (const auto* response = std::get_if<Response>(&found)) {
      std::string text = std::to_string(response->status);
      for (const auto& [name, value] : response->headers) text += " " + name + ": " + value;
      return text;
    }
    const auto& route = std::get<Router::Route>(found);
    const auto response = std::get<PromptHandler>(*route.page)({}, route.parameters);
    std::string text = response.body;
    for (const auto& [name, value] : response.headers) text += " " + name + "=" + value;
    return text;
  }
  Router router_;
};

TEST_F(RouterTest, FindsPagesByMethodAndPath) {
  EXPECT_EQ(Find("GET", "/"), "root");
  EXPECT_EQ(Find("GET", "/v1/bases"), "bases");
  EXPECT_EQ(Find("GET", "/v1/bases/12"), "basis basis=12");
  EXPECT_EQ(Find("POST", "/v1/datasets/crm.customers/occurrences"), "occur name=crm.customers");
  EXPECT_EQ(Find("GET", "/v1/datasets/crm.customers/occurrences"), "occurred name=crm.customers");
}

TEST_F(RouterTest, ASegmentIsDecodedAfterThePathIsCut) {
  EXPECT_EQ(Find("GET", "/v1/bases/a%2Fb%20c"), "basis basis=a/b c");
  EXPECT_EQ(Find("GET", "/v1%2Fbases"), "404");
  EXPECT_EQ(Find("GET", "/v%31/bases"), "bases");
}

TEST_F(RouterTest, HeadIsAnsweredByWhatAnswersGet) {
  EXPECT_EQ(Find("HEAD", "/v1/bases"), "bases");
}

TEST_F(RouterTest, UnknownPathsAreNotFoundAndUnknownMethodsNotAllowed) {
  EXPECT_EQ(Find("GET", "/v1"), "404");
  EXPECT_EQ(Find("GET", "/v1/bases/"), "404");
  EXPECT_EQ(Find("GET", "/v1/bases/1/2"), "404");
  EXPECT_EQ(Find("GET", "//v1/bases"), "404");
  EXPECT_EQ(Find("GET", "/V1/bases"), "404");
  EXPECT_EQ(Find("DELETE", "/nowhere"), "404");
  EXPECT_EQ(Find("DELETE", "/v1/bases"), "405 Allow: GET, HEAD, OPTIONS");
  EXPECT_EQ(Find("get", "/v1/bases"), "405 Allow: GET, HEAD, OPTIONS");
  EXPECT_EQ(Find("PUT", "/v1/datasets/x/occurrences"), "405 Allow: POST, GET, HEAD, OPTIONS");
  EXPECT_EQ(Find("OPTIONS", "/v1/bases"), "204 Allow: GET, HEAD, OPTIONS");
}

TEST_F(RouterTest, WithoutTheTokenNobodyLearnsWhichPagesThereAre) {
  const auto status = [&](const std::string& path, const std::string& authorization,
                          const std::string& method = "GET") {
    Request request{.method = method, .path = path, .query = {}, .headers = {}, .body = ""};
    if (!authorization.empty()) request.headers["authorization"] = authorization;
    const auto admitted = Admit(router_, "s3cret", request, path);
    const auto* response = std::get_if<Response>(&admitted);
    return response == nullptr ? 200 : response->status;
  };
  EXPECT_EQ(status("/v1/bases", ""), 401);
  EXPECT_EQ(status("/nowhere", ""), 401);
  EXPECT_EQ(status("/v1/bases", "Bearer wrong"), 401);
  EXPECT_EQ(status("/v1/bases", "Bearer s3cre"), 401);
  EXPECT_EQ(status("/v1/bases", "Bearer s3crets"), 401);
  EXPECT_EQ(status("/v1/bases", "Basic s3cret"), 401);
  EXPECT_EQ(status("/v1/bases", "s3cret"), 401);
  EXPECT_EQ(status("/v1/bases", "Bearer s3cret"), 200);
  EXPECT_EQ(status("/v1/bases", "bearer   s3cret"), 200);
  EXPECT_EQ(status("/nowhere", "Bearer s3cret"), 404);
  EXPECT_EQ(status("/v1/datasets/x/occurrences", "", "POST"), 200);
  EXPECT_EQ(status("/v1/datasets/x/occurrences", "", "GET"), 401);
}

}  // namespace
}  // namespace tidemark::http
