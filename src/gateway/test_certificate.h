// For tests: certificates of their own making, in PEM files of a temporary folder.
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>

#include "gateway/options.h"

namespace tidemark::gateway {

/// Writes NAME.crt, which is of `name` and signs itself, and NAME.key into `folder`. A `passphrase`
/// protects the key.
inline TlsFiles MakeCertificate(const std::filesystem::path& folder,
                                const std::string& name, const char* passphrase = nullptr) {
  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const std::unique_ptr<X509, void (*)(X509*)> certificate(X509_new(), X509_free);
  X509_set_version(certificate.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 24 * 3600);
  X509_set_pubkey(certificate.get(), key.get());
  X509_NAME* subject = X509_get_subject_name(certificate.get());
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(certificate.get(), subject);
  X509_sign(certificate.get(), key.get(), EVP_sha256());

  const TlsFiles files{.certificate_file = (folder / (name + ".crt")).string(),
                                .key_file = (folder / (name + ".key")).string()};
  const auto write = [](const std::string& file, auto&& pem) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> out(std::fopen(file.c_str(), "w"),
                                                              std::fclose);
    if (!out || pem(out.get()) != 1) throw std::runtime_error("could not write " + file);
    std::filesystem::permissions(file, std::filesystem::perms::owner_read |
                                           std::filesystem::perms::owner_write);
  };
  write(files.certificate_file,
        [&](std::FILE* out) { return PEM_write_X509(out, certificate.get()); });
  write(files.key_file, [&](std::FILE* out) {
    return PEM_write_PrivateKey(out, key.get(), passphrase ? EVP_aes_256_cbc() : nullptr, nullptr,
                                0, nullptr, const_cast<char*>(passphrase));
  });
  return files;
}

}  // namespace tidemark::gateway
