// Which page answers a request: method and path patterns to handlers, and what nobody answers as
// problems (404, 405). Filled once, before the server starts; read by any thread afterwards.
//
//   http::Router router;
//   // {name} is one segment, decoded
//   router.Add("POST", "/v1/datasets/{name}/occurrences", handler);
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "http/message.h"
#include "pg/connection.h"

namespace tidemark::http {

/// What the `{names}` of a pattern stand for in this request, percent-decoded.
using PathParameters = std::map<std::string, std::string>;

/// Answers a request with the store at hand. Runs on a worker thread, several at a time; the
/// connection is this call's alone, outside any transaction, and is rolled back if left in one.
/// What it throws becomes a problem (problem.h). While the store is away it is not called: the
/// server answers 503.
using Handler =
    std::function<Response(const Request&, const PathParameters&, pg::Connection& store)>;

/// As Handler, but called with nullptr while the store is away.
using StoreOptionalHandler =
    std::function<Response(const Request&, const PathParameters&, pg::Connection* store)>;

/// Answers at once, on the server's own thread: must not wait for anything.
using PromptHandler = std::function<Response(const Request&, const PathParameters&)>;

/// Answered by the server itself with an endless stream of events (event_stream.h).
struct EventStream {};

using Page = std::variant<Handler, StoreOptionalHandler, PromptHandler, EventStream>;

/// Who may ask for a page where the server has a bearer token.
enum class Access {
  kToken,  // who shows the token
  kOpen,   // anybody: the page needs no protection, or verifies the request itself (signatures)
};

class Router {
 public:
  void Add(std::string_view method, std::string_view pattern, Handler handler,
           Access access = Access::kToken);
  /// Adds any kind of page. One pattern may be added once for each method. GET answers HEAD, too.
  void AddPage(std::string_view method, std::string_view pattern, Page page,
               Access access = Access::kToken);

  struct Route {
    const Page* page;
    PathParameters parameters;
    Access access;
  };
  /// `raw_path` is the target's path as it was sent, not decoded. A Response, when there is no such
  /// page (404), or not for this method (405 with Allow; 204 with Allow for OPTIONS).
  std::variant<Route, Response> Find(std::string_view method, std::string_view raw_path) const;

 private:
  struct Entry {
    std::string method;
    std::vector<std::string> segments;  // "{name}" stands for any
    Page page;
    Access access;
  };
  std::vector<Entry> entries_;
};

}  // namespace tidemark::http
