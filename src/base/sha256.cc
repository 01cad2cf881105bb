#include "base/sha256.h"

#include <openssl/evp.h>

#include "base/error.h"

namespace tidemark::base {

namespace {

void Check(int done) {
  if (done != 1) throw Error(kInternalError, "SHA-256 failed");
}

}  // namespace

void Sha256::Free::operator()(EVP_MD_CTX* context) const noexcept { EVP_MD_CTX_free(context); }
void Sha256::Free::operator()(EVP_MD* algorithm) const noexcept { EVP_MD_free(algorithm); }

Sha256::Sha256()
    : algorithm_(EVP_MD_fetch(nullptr, "SHA256", nullptr)), context_(EVP_MD_CTX_new()) {
  if (!algorithm_ || !context_) throw Error(kInternalError, "there is no SHA-256");
  Begin();
}
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;
Sha256::~Sha256() = default;

void Sha256::Begin() { Check(EVP_DigestInit_ex2(context_.get(), algorithm_.get(), nullptr)); }

void Sha256::Add(std::string_view bytes) {
  Check(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()));
}

Hash Sha256::Finish() {
  Hash hash;
  Check(EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(hash.data()), nullptr));
  Begin();
  return hash;
}

std::string Hex(const Hash& hash) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const char byte : hash) {
    const auto value = static_cast<unsigned char>(byte);
    hex += kDigits[value >> 4];
    hex += kDigits[value & 15];
  }
  return hex;
}

}  // namespace tidemark::base
