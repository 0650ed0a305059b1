// Tested in meshard/ops/reduction_test.cc.
#include "meshard/ops/dimension_list.h"

#include <algorithm>

#include "meshard/base/error.h"

namespace meshard {

Dimensions DimensionList::resolve(int rank, std::string_view place, SourceLocation where) const {
  Dimensions resolved;
  if (!listed_) {
    for (int d = 0; d < rank; ++d) resolved.push_back(d);
    return resolved;
  }
  for (std::int64_t d : *listed_) resolved.push_back(normalize_dimension(d, rank, place, where));
  std::sort(resolved.begin(), resolved.end());
  if (auto twice = std::adjacent_find(resolved.begin(), resolved.end()); twice != resolved.end())
    throw_invalid(where, "[", place, "] dimension ", *twice, " is named twice (rank ", rank, ")");
  return resolved;
}

}  // namespace meshard
