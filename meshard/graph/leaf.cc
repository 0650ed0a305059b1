#include "meshard/graph/leaf.h"

#include "meshard/graph/explicit_sharding.h"
#include "meshard/graph/record.h"

namespace meshard {
namespace {

struct ParameterAttributes {
  std::optional<Sharding> sharding;
  MESHARD_FIELDS(sharding)
};

Tensor stored_leaf(const OpDef& op, const TensorType& type, StoragePtr storage,
                   SourceLocation where) {
  Node* node = Node::make(op, nullptr, 0, where);
  node->add_output(type, std::move(storage));
  return Tensor(Value::first_of(node));
}

void infer_leaf(const OpCall& call, ResultTypes&) {
  throw InternalError(cat("[", call.op.name, "] leaves are made, not inferred"));
}

// A sharding with explicit axes is part of the value.
void annotate_leaf(const Value& leaf) {
  const Sharding* sharding = leaf_sharding(leaf);
  if (sharding && sharding->mesh().has_explicit_axes())
    leaf.node()->annotate(annotations_of(*sharding, static_cast<std::size_t>(leaf.type().rank())));
}

}  // namespace

constinit const OpDef parameter_op = {
    .name = "parameter",
    .operands = "",
    .doc = "An argument of the traced function.",
    .example = "",
    .infer = infer_leaf,
    .parse_attributes = parse_attributes<ParameterAttributes>,
};

constinit const OpDef array_op = {
    .name = "array",
    .operands = "",
    .doc = "A value that already exists, on the host or on devices.",
    .example = "",
    .infer = infer_leaf,
};

constinit const OpDef moved_array_op = {
    .name = "moved_array",
    .operands = "",
    .doc = "A value that already exists, on devices other than the program's.",
    .example = "",
    .infer = infer_leaf,
};

Tensor make_parameter(TensorType type, std::optional<Sharding> sharding, SourceLocation where) {
  Tensor parameter = record_typed(
      parameter_op, make_attributes(ParameterAttributes{std::move(sharding)}), {}, type, where);
  annotate_leaf(parameter.value());
  return parameter;
}

Tensor make_array(const TensorType& type, StoragePtr storage, SourceLocation where) {
  Tensor array = stored_leaf(array_op, type, std::move(storage), where);
  annotate_leaf(array.value());
  return array;
}

Tensor make_unplaced(const Value& value, SourceLocation where) {
  Tensor leaf = stored_leaf(array_op, value.type(), StoragePtr(value.storage()), where);
  leaf.value()->set_unplaced();
  return leaf;
}

Tensor make_moved(const Value& value, SourceLocation where) {
  return stored_leaf(moved_array_op, value.type(), StoragePtr(value.storage()), where);
}

bool is_unplaced(const Value& value) { return value->is_unplaced() || !leaf_sharding(value); }

const Sharding* leaf_sharding(const Value& value) {
  if (&value->op() == &moved_array_op) return nullptr;
  if (Storage* storage = value.storage()) return storage->sharding();
  if (&value->op() == &parameter_op) {
    const auto& sharding = value->attributes_as<ParameterAttributes>().sharding;
    return sharding ? &*sharding : nullptr;
  }
  return nullptr;
}

void internal::check_element_count(std::size_t count, const Shape& shape, SourceLocation where) {
  if (static_cast<std::int64_t>(count) != shape.size())
    throw_invalid(effective_source(where), "[from_host] ", count, " values for the shape ", shape,
                  ", which has ", shape.size(), " elements");
}

Tensor from_host(HostArray&& array, SourceLocation where) {
  TensorType type = array.type();
  return make_array(type, make_storage<HostStorage>(std::move(array)), effective_source(where));
}

Tensor from_host(const HostArray& array, SourceLocation where) {
  return from_host(HostArray(array), where);
}

}  // namespace meshard
