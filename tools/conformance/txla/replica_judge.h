// The comparison of answers that differ in the order of replicas only.
#pragma once
#include <initializer_list>

#include "tools/conformance/suite.h"

namespace meshard::conformance {

/// Equal as recorded, or by the rule mesh-order-replicas.
/// @param texts the fields that are shardings as text; `shards`, if there, are numbered replicas
Verdict judge_in_replica_order(const Json& test, const Json& answer,
                               std::initializer_list<const char*> texts);

}  // namespace meshard::conformance
