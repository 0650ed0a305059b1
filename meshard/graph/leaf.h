// Nodes without operands: parameters of a trace, and values that already exist.
#pragma once
#include <optional>

#include "meshard/graph/from_host.h"
#include "meshard/graph/op_def.h"
#include "meshard/graph/storage.h"
#include "meshard/graph/tensor.h"

namespace meshard {

/// The op of a trace's arguments. Not in the op list, because it has no StableHLO form of its own.
extern const OpDef parameter_op;
/// The op of values that were not recorded: host data, results of compiled programs.
extern const OpDef array_op;

/// The op of stored values that a program takes from devices other than its own.
extern const OpDef moved_array_op;

/// A new parameter of the trace that this thread records; `sharding` is its argument's.
Tensor make_parameter(TensorType type, std::optional<Sharding> sharding, SourceLocation where);

/// A tensor for a value that already exists.
Tensor make_array(const TensorType& type, StoragePtr storage, SourceLocation where);

/// An unplaced tensor with the stored value of `value`. The bytes stay where they are, and programs
/// still use their stored sharding.
/// @pre `value` has storage.
Tensor make_unplaced(const Value& value, SourceLocation where);

/// A leaf for the stored value of `value` in a program on other devices. The program chooses its
/// sharding there, and the value is copied to them.
/// @pre `value` has storage.
Tensor make_moved(const Value& value, SourceLocation where);

/// True for a stored value that the program did not place on devices: host data, results of
/// programs without placed values, and values whose annotation was cleared. It belongs to no set of
/// devices and follows the operands that it is used with, wherever its bytes are now.
/// @pre `value` has storage, or is a parameter that represents such a value.
bool is_unplaced(const Value& value);

/// The type and sharding of a stored array on devices; nullptr if the value is none, or if the
/// program chooses its sharding (make_moved).
inline const ShardedType* stored_type(const Value& value) {
  const Storage* storage = value.storage();
  return storage && &value->op() != &moved_array_op ? storage->sharded_type() : nullptr;
}

/// The sharding of a leaf: that of a parameter or of a stored array. nullptr if it has none.
const Sharding* leaf_sharding(const Value& value);

}  // namespace meshard
