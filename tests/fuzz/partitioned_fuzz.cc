// Rewrites a partitioned module from any bytes. What is accepted can be read, and equals itself.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "meshard/partitioned/partition.h"

namespace meshard {
namespace {

void rewrite_bytes(std::string_view bytes) {
  for (int partitions : {4, 8}) {
    Result<RewrittenModule> rewritten =
        rewrite_collectives(bytes, {.partitions = partitions, .ranks = {}});
    if (!rewritten.ok()) continue;
    if (module_fingerprint(rewritten->hlo).value() != rewritten->fingerprint) std::abort();
    if (first_difference(rewritten->hlo, rewritten->hlo).value()) std::abort();
    (void)first_difference(bytes, rewritten->hlo).ok();
  }
}

}  // namespace
}  // namespace meshard

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  meshard::rewrite_bytes({reinterpret_cast<const char*>(data), size});
  return 0;
}
