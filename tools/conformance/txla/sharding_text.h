// Shardings in the words of torch_xla's golden files.
#pragma once
#include <string>

#include "meshard/sharding/sharding.h"

namespace meshard::conformance {

/// The HLO text by which the reference compares shardings: a list of device ids, replicas
/// ascending.
std::string hlo_text(const Sharding& sharding);

/// `TILED`, `PARTIAL`, `REPLICATED`, ...: what is left when only the placement counts.
std::string canonical_type_name(const Sharding& sharding);

}  // namespace meshard::conformance
