#include "meshard/lowering/internal/only_padding.h"

#include <algorithm>

#include "meshard/ops/definition/attributes.h"
#include "meshard/ops/definition/op_table.h"
#include "meshard/ops/definition/pad_emission.h"
#include "meshard/ops/movement.h"
#include "meshard/ops/slicing.h"

namespace meshard {

namespace {

struct Range {
  std::int64_t begin, end;
};

// The range of dimension `d` of its operand that a slice, or a pad with negative edges, keeps.
Range kept_range(const Node& node, std::size_t d) {
  if (&node.op() == &slice_op) {
    const auto& kept = node.attributes_as<SliceAttributes>();
    return {kept.start[d], kept.stop[d]};
  }
  const auto& cut = node.attributes_as<PadAttributes>();
  std::int64_t size = node.operands()[0].type().shape[static_cast<int>(d)];
  KeptElements kept =
      kept_elements(size, cut.low[d], cut.high[d], cut.interior.empty() ? 0 : cut.interior[d]);
  return {kept.start, kept.stop};
}

// The range of dimension `d` of the result that holds the operand's elements.
Range padded_range(const Node& node, std::size_t d) {
  const auto& added = node.attributes_as<PadAttributes>();
  std::int64_t step = 1 + (added.interior.empty() ? 0 : added.interior[d]);
  std::int64_t size = node.operands()[0].type().shape[static_cast<int>(d)];
  return {added.low[d], added.low[d] + (size - 1) * step + 1};
}

}  // namespace

bool keeps_only_padding(const Node& node) {
  if (&node.op() != &slice_op && &node.op() != &pad_op) return false;
  const Value& operand = node.operands()[0];
  const Node& padded = *operand.node();
  // A computed value is an argument of the program, and its node no longer has operands.
  if (&padded.op() != &pad_op || operand.storage()) return false;
  for (int d = 0; d < node.type().rank(); ++d) {
    Range kept = kept_range(node, static_cast<std::size_t>(d));
    Range elements = padded_range(padded, static_cast<std::size_t>(d));
    if (kept.end <= elements.begin || elements.end <= kept.begin) return true;
  }
  return false;
}

}  // namespace meshard
