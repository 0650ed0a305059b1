// What a program needs to compute: tensors, meshes, shardings, ops, jit, gradients and the runtime.
// Takes about 60 % of the compile time of <meshard/meshard.h>, which adds layers, optimizers,
// files, reports and plans.
#pragma once
#include "meshard/autodiff/custom_vjp.h"
#include "meshard/autodiff/grad.h"
#include "meshard/autodiff/jacobian.h"
#include "meshard/autodiff/jvp.h"
#include "meshard/graph/from_host.h"
#include "meshard/graph/structure.h"
#include "meshard/graph/sync.h"
#include "meshard/graph/tensor.h"
#include "meshard/mesh/builders.h"
#include "meshard/mesh/global_mesh.h"
#include "meshard/mesh/mesh.h"
#include "meshard/ops/all.h"
#include "meshard/ops/batching/vmap.h"
#include "meshard/runtime/counters.h"
#include "meshard/runtime/runtime.h"
#include "meshard/runtime/shards.h"
#include "meshard/runtime/transfer.h"
#include "meshard/sharding/partition_spec.h"
#include "meshard/sharding/picture.h"
#include "meshard/sharding/sharding.h"
#include "meshard/trace/jit.h"

namespace meshard::internal {
/// Including this header is what makes recorded tensors computable.
inline const bool kRuntimeInstalled = install_runtime();
}  // namespace meshard::internal
