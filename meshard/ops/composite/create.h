// Tensors created from a description. They are computed where they are used: nothing is transferred
// to a device, and every device computes only its own part.
#pragma once
#include <cstdint>
#include <optional>

#include "meshard/graph/tensor.h"

namespace meshard {

/// A tensor with all elements 0, 1 or `value`. The default dtype of full is the dtype of the number
/// (i32, f32 or bool); `value` may also be a tensor of rank 0.
/// @error invalid argument: a value of another rank; a complex value for a real dtype
Tensor zeros(Shape shape, DType dtype = kDefaultFloat,
             SourceLocation where = SourceLocation::current());
Tensor ones(Shape shape, DType dtype = kDefaultFloat,
            SourceLocation where = SourceLocation::current());
Tensor full(Shape shape, In value, std::optional<DType> dtype = std::nullopt);

/// The same with the shape of `x` and, by default, its dtype.
Tensor zeros_like(In x, std::optional<DType> dtype = std::nullopt);
Tensor ones_like(In x, std::optional<DType> dtype = std::nullopt);
Tensor full_like(In x, In value, std::optional<DType> dtype = std::nullopt);

/// start, start + step, ... below stop (above it if step is negative). All are C++ numbers. The
/// default dtype is i32 if all have integer types, otherwise f32.
/// @error invalid argument if one is a tensor, or step is 0.
Tensor arange(In start, In stop, In step = 1, std::optional<DType> dtype = std::nullopt);
/// 0, 1, ... below stop.
Tensor arange(In stop);

/// `num` evenly spaced numbers from start to stop. stop is included unless endpoint is false.
/// @error invalid argument if num is negative or the dtype is not a float.
Tensor linspace(double start, double stop, std::int64_t num, DType dtype = kDefaultFloat,
                bool endpoint = true, SourceLocation where = SourceLocation::current());

/// Ones on diagonal k, zeros elsewhere; diagonal 1 is just above the main one. Square by default.
Tensor eye(std::int64_t rows, std::optional<std::int64_t> columns = std::nullopt,
           std::int64_t k = 0, DType dtype = kDefaultFloat,
           SourceLocation where = SourceLocation::current());
/// Ones on diagonal k and below, zeros above.
Tensor tri(std::int64_t rows, std::optional<std::int64_t> columns = std::nullopt,
           std::int64_t k = 0, DType dtype = kDefaultFloat,
           SourceLocation where = SourceLocation::current());
/// The elements of each matrix on diagonal k and below (tril), or on it and above (triu). Other
/// elements are zero. The matrices are the last two dimensions.
/// @error invalid argument if the rank is below 2.
Tensor tril(In x, std::int64_t k = 0);
Tensor triu(In x, std::int64_t k = 0);

}  // namespace meshard
