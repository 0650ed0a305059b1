// The comparison of answers that differ only in the order of replicas.
#pragma once
#include <initializer_list>

#include "tools/conformance/suite.h"

namespace meshard::conformance {

/// Passes if the answers are equal, or by the rule mesh-order-replicas.
/// @param texts the fields that are shardings as text; `shards`, if present, has replica numbers
Verdict judge_in_replica_order(const Json& test, const Json& answer,
                               std::initializer_list<const char*> texts);

}  // namespace meshard::conformance
