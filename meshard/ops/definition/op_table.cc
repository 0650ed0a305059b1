#include "meshard/ops/definition/op_table.h"

namespace meshard {

std::span<const OpDef* const> all_ops() {
  static constexpr const OpDef* kOps[] = {
#define MESHARD_OP(name) &name##_op,
#include "meshard/ops/op_list.inc"
#undef MESHARD_OP
  };
  return kOps;
}

const OpDef* find_op(std::string_view name) {
  for (const OpDef* op : all_ops())
    if (op->name == name) return op;
  return nullptr;
}

}  // namespace meshard
