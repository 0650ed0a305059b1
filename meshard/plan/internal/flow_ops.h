// A module's ops in the form used by ModuleFlow.
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
  kProduct,    ///< dimensions: contracting of both operands, then batch of both
  kTranspose,  ///< dimensions[0]: the operand dimension of each result dimension
  kBroadcast,  ///< dimensions[0]: the result dimension of each operand dimension
  kReduce,     ///< dimensions[0]: the reduced dimensions
  kReshape,
  kConstraint,  ///< text: the sharding
  kCall,        ///< text: the name of the function
  kLoop,        ///< body, trips; the operands initialize its parameters
  kReturn,
  kOther,  ///< judged by shapes: element-wise, resized, or unknown
};

/// One op. Values are numbered within their function.
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
  /// By value; none if it is not a tensor of known shape.
  std::vector<std::optional<TensorType>> types;
};

/// Parses the functions of a module, by name. @error data loss, thrown
std::map<std::string, FlowFunction> read_flow(std::string_view text);

/// Parses `tensor<16x32xf32>`; none for anything else.
std::optional<TensorType> tensor_type(std::string_view text);

}  // namespace meshard::internal
