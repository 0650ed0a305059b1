#include "meshard/sharding/check_even.h"

#include "meshard/base/cat.h"
#include "meshard/base/error.h"

namespace meshard {

std::optional<std::size_t> refused_dimension(const Sharding& sharding, IntView dims) {
  if (sharding.mesh().uneven() == Uneven::kAllow) return std::nullopt;
  for (std::size_t d = 0; d < sharding.rank(); ++d)
    if (dims[d] % sharding.num_tiles(d) != 0) return d;
  return std::nullopt;
}

void check_even(const Sharding& sharding, IntView dims, SourceLocation where) {
  if (std::optional<std::size_t> d = refused_dimension(sharding, dims))
    throw_invalid(where, "[sharding] dimension ", *d, " of shape (", join(dims, ","), "), ",
                  dims[*d], ", is not divisible by the ", sharding.num_tiles(*d), " tiles of ",
                  sharding.spec(), " over ", sharding.mesh(),
                  ", which rejects uneven sizes: pad the dimension, split it over other axes, or "
                  "use a mesh with Uneven::kAllow");
}

}  // namespace meshard
