#include "meshard/topology/closed_directions.h"

#include "meshard/topology/tpu_generation.h"

namespace meshard {

std::optional<Topology::Wrap> closed_directions(std::string_view kind, const IntVector& extent) {
  const TpuGeneration* tpu = tpu_generation_of(kind);
  if (!tpu || tpu->closing_multiple == 0) return std::nullopt;
  Topology::Wrap wrap;
  for (std::int64_t size : extent) wrap.push_back(size % tpu->closing_multiple == 0);
  return wrap;
}

}  // namespace meshard
