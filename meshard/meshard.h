// All of meshard's public face.
#pragma once
#include "meshard/autodiff/custom_vjp.h"
#include "meshard/autodiff/grad.h"
#include "meshard/explain/check_sharded.h"
#include "meshard/explain/explain.h"
#include "meshard/graph/evaluator.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/structure.h"
#include "meshard/graph/tensor.h"
#include "meshard/layout/picture.h"
#include "meshard/mesh/concatenate.h"
#include "meshard/mesh/device_groups.h"
#include "meshard/mesh/mesh.h"
#include "meshard/mesh/overlap.h"
#include "meshard/mesh/picture.h"
#include "meshard/mesh/shardy_text.h"
#include "meshard/mesh/submeshes.h"
#include "meshard/ops/all.h"
#include "meshard/runtime/counters.h"
#include "meshard/runtime/runtime.h"
#include "meshard/runtime/sharded_tensor.h"
#include "meshard/runtime/shards.h"
#include "meshard/runtime/transfer.h"
#include "meshard/sharding/op_sharding.h"
#include "meshard/sharding/partition_spec.h"
#include "meshard/sharding/picture.h"
#include "meshard/sharding/sharding.h"
#include "meshard/sharding/sharding_spec.h"
#include "meshard/sharding/sharding_type.h"
#include "meshard/sharding/tile_devices.h"
#include "meshard/trace/jit.h"

namespace meshard::internal {
/// Including this header is what makes recorded tensors computable.
inline const bool kRuntimeInstalled = install_runtime();
}  // namespace meshard::internal
