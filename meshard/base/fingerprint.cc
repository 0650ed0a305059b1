#include "meshard/base/fingerprint.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace meshard {

std::string Fingerprint::to_string() const {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out(32, '0');
  for (int i = 0; i < 16; ++i) {
    out[static_cast<std::size_t>(15 - i)] = digits[(high >> (4 * i)) & 15];
    out[static_cast<std::size_t>(31 - i)] = digits[(low >> (4 * i)) & 15];
  }
  return out;
}

Fingerprint fingerprint(std::string_view bytes) {
  XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

}  // namespace meshard
