// Shared by the steps of a scenario: the meshes and tensors that they made, by name.
#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "meshard/graph/tensor.h"
#include "meshard/mesh/mesh.h"
#include "meshard/sharding/sharding.h"

namespace meshard::conformance {

using Json = nlohmann::json;

struct Scope {
  std::map<std::string, Mesh> meshes = {};
  std::map<std::string, Tensor> tensors = {};

  /// @error not found: the step that should have made it failed.
  Tensor& named(const std::string& name);
  /// The tensor that the step applies to. @error as named
  Tensor& tensor(const Json& step) { return named(step.at("t")); }
  const Mesh& mesh(const Json& step) const { return meshes.at(step.at("mesh")); }
  /// The sharding with the step's fields `mesh` and `spec`. @error as Sharding.
  Sharding sharding(const Json& step) const;
};

/// A step calls something that the runner does not support.
struct UnknownStep {};

/// Runs a step. Returns the fields of its result.
/// @error any error of meshard; UnknownStep
using Step = Json (*)(Scope& scope, const Json& step);
using Steps = std::map<std::string, Step>;

/// mesh, host, full, arange, send_sharded
const Steps& steps_that_make();
/// mark, mark_with_gradients, annotate, clear, spec_apply, manual_on, manual_off
const Steps& steps_that_annotate();
/// compute, inplace, copy_, load_shards
const Steps& steps_that_change();
/// sync, read, shards
const Steps& steps_that_read();

}  // namespace meshard::conformance
