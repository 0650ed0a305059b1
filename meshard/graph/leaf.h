// The nodes without operands: parameters of a trace, and values that exist already.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "meshard/graph/op_def.h"
#include "meshard/graph/tensor.h"

namespace meshard {

/// The op of a trace's arguments. Not in the op list: it has no StableHLO form of its own.
extern const OpDef parameter_op;
/// The op of values that were not recorded: host data, results of a compiled program.
extern const OpDef array_op;
/// The op of stored values whose annotation was cleared.
extern const OpDef unannotated_array_op;

/// A fresh parameter of the trace that this thread records; `sharding` is what its argument has.
Tensor make_parameter(TensorType type, std::optional<Sharding> sharding, SourceLocation where);

/// A tensor for a value that exists already.
Tensor make_array(TensorType type, StoragePtr storage, SourceLocation where);

/// A tensor for the stored value of `value` without its annotation: the bytes stay where they are,
/// and programs still see how they lie.
/// @pre `value` has storage.
Tensor make_unannotated(const Value& value, SourceLocation where);
/// True for what make_unannotated gave.
bool is_unannotated(const Value& value);

/// The sharding that is part of a leaf: a parameter's, or that of a stored array. nullptr: none
/// said.
const Sharding* leaf_sharding(const Value& value);

/// A tensor of host data; nothing moves to a device until its sharding is known. The moving form
/// takes the array; the other shares its immutable block.
Tensor from_host(HostArray&& array, SourceLocation where = SourceLocation::current());
Tensor from_host(const HostArray& array, SourceLocation where = SourceLocation::current());

namespace internal {
/// @error invalid argument unless `count` is the number of elements of `shape`.
void check_element_count(std::size_t count, const Shape& shape, SourceLocation where);
}  // namespace internal

/// A tensor of a copy of `values`, row-major. @error invalid argument if the sizes differ.
template <class T>
Tensor from_host(std::span<const T> values, Shape shape,
                 SourceLocation where = SourceLocation::current()) {
  internal::check_element_count(values.size(), shape, where);
  return from_host(HostArray::copy_of(values, std::move(shape)), where);
}
template <class T>
Tensor from_host(const std::vector<T>& values, Shape shape,
                 SourceLocation where = SourceLocation::current()) {
  internal::check_element_count(values.size(), shape, where);
  return from_host(HostArray::copy_of(std::span<const T>(values), std::move(shape)), where);
}
/// Takes the vector's memory.
template <class T>
Tensor from_host(std::vector<T>&& values, Shape shape,
                 SourceLocation where = SourceLocation::current()) {
  internal::check_element_count(values.size(), shape, where);
  return from_host(HostArray::from_vector(std::move(values), std::move(shape)), where);
}

}  // namespace meshard
