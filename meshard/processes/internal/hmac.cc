#include "meshard/processes/internal/hmac.h"

#include <sys/random.h>

#include <cerrno>
#include <cstring>

#include "meshard/base/cat.h"
#include "meshard/base/sha256.h"

namespace meshard::internal {
namespace {

constexpr std::size_t kHashBlock = 64;

std::string sha256_bytes(std::string_view first, std::string_view second) {
  Sha256 hash;
  hash.add(first);
  hash.add(second);
  return hash.bytes();
}

}  // namespace

std::string hmac_sha256(std::string_view key, std::string_view message) {
  std::string inner(key.size() > kHashBlock ? sha256_bytes(key, "") : std::string(key));
  inner.resize(kHashBlock, '\0');
  std::string outer = inner;
  for (char& byte : inner) byte = static_cast<char>(byte ^ 0x36);
  for (char& byte : outer) byte = static_cast<char>(byte ^ 0x5c);
  return sha256_bytes(outer, sha256_bytes(inner, message));
}

bool equal_codes(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  int difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference |= a[i] ^ b[i];
  return difference == 0;
}

Result<std::string> random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  for (std::size_t done = 0; done < count;) {
    ssize_t got = ::getrandom(bytes.data() + done, count - done, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return Error(ErrorCode::kUnavailable,
                   cat("[processes] no random numbers: ", std::strerror(errno)));
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

}  // namespace meshard::internal
