// Shardings in the form of torch_xla's golden files.
#pragma once
#include <string>

#include "meshard/sharding/sharding.h"

namespace meshard::conformance {

/// The HLO text by which the reference compares shardings: a list of device ids, with ascending
/// replicas.
std::string hlo_text(const Sharding& sharding);

/// The canonical type, which depends only on the placement: `TILED`, `PARTIAL`, `REPLICATED`, ...
std::string canonical_type_name(const Sharding& sharding);

}  // namespace meshard::conformance
