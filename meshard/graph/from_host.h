// Tensors of host data.
#pragma once
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "meshard/array/host_array.h"
#include "meshard/graph/tensor.h"

namespace meshard {

/// A tensor of host data; nothing is copied to a device until its sharding is known. The first
/// overload takes the array; the second shares its immutable memory.
Tensor from_host(HostArray&& array, SourceLocation where = SourceLocation::current());
Tensor from_host(const HostArray& array, SourceLocation where = SourceLocation::current());

namespace internal {
/// @error invalid argument unless `count` is the number of elements of `shape`.
void check_element_count(std::size_t count, const Shape& shape, SourceLocation where);
}  // namespace internal

/// A tensor with a copy of `values`, row-major. @error invalid argument if the sizes differ.
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
