// SHA-256 of bytes that come in pieces, as often as needed with one object. One thread.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;
struct evp_md_st;

namespace tidemark::base {

using Hash = std::array<char, 32>;

class Sha256 {
 public:
  Sha256();
  Sha256(Sha256&&) noexcept;
  ~Sha256();
  Sha256& operator=(Sha256&&) noexcept;

  void Add(std::string_view bytes);
  /// The hash of what was added since the last call.
  Hash Finish();

 private:
  void Begin();
  struct Free {
    void operator()(evp_md_ctx_st* context) const noexcept;
    void operator()(evp_md_st* algorithm) const noexcept;
  };
  std::unique_ptr<evp_md_st, Free> algorithm_;
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

inline std::string_view View(const Hash& hash) { return {hash.data(), hash.size()}; }
std::string Hex(const Hash& hash);

}  // namespace tidemark::base
