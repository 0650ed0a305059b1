// A module's ops in the form that ModuleFlow follows.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/array/shape.h"

namespace meshard::internal {

enum class FlowKind {
  kProduct,    ///< dimensions: contracting of both, then batch of both
  kTranspose,  ///< dimensions[0]: where each result dimension comes from
  kBroadcast,  ///< dimensions[0]: where each operand dimension goes to
  kReduce,     ///< dimensions[0]: those summed over
  kReshape,
  kConstraint,  ///< text: the sharding
  kCall,        ///< text: the function
  kLoop,        ///< body, trips; its parameters are the operands
  kReturn,
  kOther,  ///< by the shapes: element-wise, resized, or unknown
};

/// One op. Values are numbers within their function.
struct FlowOp {
  FlowKind kind = FlowKind::kOther;
  std::vector<int> operands, results;
  std::vector<std::vector<std::int64_t>> dimensions;
  std::string text;
  std::vector<int> parameters;  // of a loop's body
  std::vector<FlowOp> body;
  std::int64_t trips = 1;
};

struct FlowFunction {
  std::vector<int> parameters;
  std::vector<FlowOp> ops;
  /// By value; none for what is no tensor of known sizes.
  std::vector<std::optional<TensorType>> types;
};

/// The functions by name. @error data loss, thrown
std::map<std::string, FlowFunction> read_flow(std::string_view text);

/// `tensor<16x32xf32>`; none for anything else.
std::optional<TensorType> tensor_type(std::string_view text);

}  // namespace meshard::internal
