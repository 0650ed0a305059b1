#include "meshard/ops/composite/uneven_parts.h"

#include <algorithm>
#include <limits>

#include "meshard/graph/annotation.h"
#include "meshard/graph/body.h"
#include "meshard/ops/all.h"
#include "meshard/ops/definition/define.h"

namespace meshard {

extern const OpDef vary_op;
extern const OpDef where_op;
extern const OpDef reshape_op;

namespace {

DType integer_for(std::int64_t size) {
  return size > std::numeric_limits<std::int32_t>::max() ? DType::i64 : kDefaultInteger;
}

// The value that enters the innermost region as `part`; nullptr if `part` does not enter one. Marks
// and padding leave a part what it is, and inside a body, a parameter stands for a part.
const Node* entry_of(Value part) {
  for (;;) {
    const Node& node = *part.node();
    const Attributes* attributes = node.attributes();
    if (attributes && attributes->type() == typeid(FullToShardAttributes)) return &node;
    bool same = &node.op() == &vary_op || node.op().traits.marks_sharding ||
                (&node.op() == &reshape_op && node.operands()[0].type() == part.type());
    const BodyScope* body = internal::recorder().body;
    const Value* outer = body ? body->outside(node) : nullptr;
    if (same)
      part = Value(node.operands()[0]);
    else if (&node.op() == &where_op)
      part = Value(node.operands()[1]);
    else if (outer)
      part = Value(*outer);
    else
      return nullptr;
  }
}

// The number of valid elements of a value along a dimension: of a value that enters no region, all.
Tensor valid_of(const Value& value, std::int64_t dimension, SourceLocation where) {
  std::int64_t size = value.type().shape[dimension];
  const Node* entry = manual_axes(value) ? entry_of(value) : nullptr;
  if (!entry) return full({}, In(size, where), integer_for(size));
  const Sharding& sharding = *entry->attributes_as<FullToShardAttributes>().sharding;
  auto d = static_cast<std::size_t>(dimension);
  Tensor before = valid_of(entry->operands()[0], dimension, where);
  if (sharding.num_tiles(d) == 1) return before;
  Tensor part(Value(const_cast<Node*>(entry)));
  Tensor index = astype(axis_index(In(part, where), sharding.axes(d)), before.dtype());
  return clip(subtract(before, multiply(index, size)), 0, size);
}

bool is_zero(const HostArray& element) {
  return std::all_of(element.bytes(), element.bytes() + element.size_in_bytes(),
                     [](std::byte each) { return each == std::byte{0}; });
}

}  // namespace

HostArray PadValue::in(DType dtype, SourceLocation where) const {
  if (const Scalar* number = std::get_if<Scalar>(&value_))
    return scalar_array(*number, dtype, where);
  ReduceKind kind = std::get<ReduceKind>(value_);
  if (kind == ReduceKind::kSum) return HostArray::zeros({dtype, {}});
  if (kind == ReduceKind::kProd) return scalar_array(Scalar(1), dtype, where);
  if (is_complex(dtype))
    throw_invalid(where, "[manual] the ", enum_name(kind), " of ", dtype,
                  " is not defined, so nothing can be its padding: give a number");
  return kind == ReduceKind::kMin ? highest_of(dtype) : lowest_of(dtype);
}

Tensor valid_size(In part, std::int64_t dimension) {
  SourceScope line(part.where);
  SourceLocation where = effective_source(part.where);
  Tensor operand = operand_tensor("valid_size", part);
  int d = normalize_dimension(dimension, operand.rank(), "valid_size", where);
  if (!manual_axes(operand.value()))
    throw_invalid(where, "[valid_size] ", operand.type(), " made at ", operand.where(),
                  " is a full value: only parts inside a function given to manual() have padding");
  if (!entry_of(operand.value()))
    throw_invalid(where, "[valid_size] ", operand.type(), " made at ", operand.where(),
                  " is not an argument of the manual function, but computed in it: pass the "
                  "argument whose part it is");
  return valid_of(operand.value(), d, where);
}

Tensor internal::enter_with_padding(const Tensor& full, const Sharding& sharding, AxisSet own,
                                    const std::optional<PadValue>& pad, std::string_view op,
                                    SourceLocation where) {
  Tensor part = full_to_shard(In(full, where), sharding, own);
  Dimensions uneven;
  for (std::size_t d = 0; d < sharding.rank(); ++d) {
    auto dimension = static_cast<std::int64_t>(d);
    if (full.shape()[dimension] % sharding.num_tiles(d) == 0) continue;
    if (!pad)
      throw_invalid(where, "[", op, "] dimension ", d, " of ", full.type(), " made at ",
                    full.where(), " is ", full.shape()[dimension], ", which the ",
                    sharding.num_tiles(d), " devices along ", meshard::to_string(sharding.axes(d)),
                    " of ", sharding.mesh(),
                    " do not divide: choose the padding of the last parts with pad (0, or "
                    "ReduceKind::kMax for a maximum, \"max\" in Python), or pass an even size");
    uneven.push_back(dimension);
  }
  if (uneven.empty()) return part;
  HostArray element = pad->in(full.dtype(), where);
  if (is_zero(element)) return part;  // as full_to_shard pads
  SourceScope line(where);
  std::optional<Tensor> valid;
  for (std::int64_t d : uneven) {
    Tensor count = valid_of(part.value(), d, where);
    Tensor inside = less(iota(count.dtype(), part.shape(), d), count);
    valid = valid ? logical_and(*valid, inside) : inside;
  }
  return meshard::where(*valid, part, constant(std::move(element)));
}

}  // namespace meshard
