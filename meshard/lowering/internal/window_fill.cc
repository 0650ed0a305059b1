#include "meshard/lowering/internal/window_fill.h"

#include <algorithm>

#include "meshard/graph/op_def.h"
#include "meshard/ops/constant.h"
#include "meshard/ops/convolution.h"
#include "meshard/ops/cumulative.h"
#include "meshard/ops/definition/attributes.h"
#include "meshard/ops/definition/pad_emission.h"
#include "meshard/ops/movement.h"
#include "meshard/ops/reduce_window.h"

namespace meshard {
namespace {

// Of a pad: equal constants are one value, anything else is its own.
std::string fill_of_pad(const Value& fill) {
  const Node& node = *fill.node();
  bool is_constant = node.attributes() && node.attributes()->type() == typeid(ConstantAttributes);
  if (!is_constant) return cat("value ", node.id(), '.', fill.index());
  const HostArray& value = node.attributes_as<ConstantAttributes>().value;
  bool is_zero = value.same_bits(HostArray::zeros(value.type()));
  return is_zero ? kZeroFill : value.to_string();
}

}  // namespace

std::string window_fill(const Node& node, std::size_t operand) {
  if (operand != 0 || !node.attributes()) return {};
  const std::type_info& type = node.attributes()->type();
  if (type == typeid(PadAttributes)) return fill_of_pad(node.operands()[1]);
  if (type == typeid(ConvolutionAttributes)) return kZeroFill;
  bool reduces = type == typeid(ReduceWindowAttributes) || type == typeid(CumulativeAttributes) ||
                 type == typeid(SelectAndScatterAddAttributes);
  return reduces ? std::string(node.op().name) : std::string();
}

TensorType windowed_type(const Node& node) {
  TensorType type = node.operands()[0].type();
  if (!node.attributes() || node.attributes()->type() != typeid(PadAttributes)) return type;
  const auto& pad = node.attributes_as<PadAttributes>();
  for (int d = 0; d < type.rank(); ++d) {
    auto at = static_cast<std::size_t>(d);
    KeptElements kept = kept_elements(type.shape[d], pad.low[at], pad.high[at],
                                      pad.interior.empty() ? 0 : pad.interior[at]);
    type.shape = type.shape.with(d, std::max<std::int64_t>(kept.stop - kept.start, 0));
  }
  return type;
}

std::size_t WindowFills::group(const TensorType& operand, const std::string& fill) {
  std::vector<std::string>& known = fills_[operand];
  auto found = std::find(known.begin(), known.end(), fill);
  auto group = static_cast<std::size_t>(found - known.begin());
  if (found == known.end()) known.push_back(fill);
  return group;
}

}  // namespace meshard
