// The structured attributes of StableHLO ops.
#pragma once
#include <cstdint>
#include <string>

#include "meshard/array/shape.h"
#include "meshard/stablehlo/dimension_numbers.h"

namespace meshard::stablehlo {

/// The dimension numbers of a convolution's operands and result. The `*_spatial` lists are in the
/// order of the window dimensions.
struct ConvolutionDimensionNumbers {
  std::int64_t input_batch = 0, input_feature = 1;
  Dimensions input_spatial;
  std::int64_t kernel_output_feature = 0, kernel_input_feature = 1;
  Dimensions kernel_spatial;
  std::int64_t output_batch = 0, output_feature = 1;
  Dimensions output_spatial;
};

/// Appends `#stablehlo.dot<lhs_contracting_dimensions = [1], ...>` or the like. Empty lists are
/// omitted, as by StableHLO's own printer.
void append_attribute(std::string& out, const DotDimensions& numbers);
void append_attribute(std::string& out, const GatherDimensions& numbers);
void append_attribute(std::string& out, const ScatterDimensions& numbers);
/// Appends `#stablehlo.conv<[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]>`.
void append_attribute(std::string& out, const ConvolutionDimensionNumbers& numbers);

}  // namespace meshard::stablehlo
