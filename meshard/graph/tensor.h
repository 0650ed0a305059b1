// Tensor: the handle through which users access values.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "meshard/array/host_array.h"
#include "meshard/array/number.h"
#include "meshard/base/source_location.h"
#include "meshard/graph/node.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

class IndexItems;
class NewShape;

/// A handle on a recorded or computed value. Cheap to copy; a copy never changes, since in-place
/// operators rebind only their own handle. An op call on tensors only records; reading a value
/// computes what it needs, once. May be used from several threads, but two threads must not rebind
/// one handle at the same time.
class [[nodiscard]] Tensor {
 public:
  /// A tensor without a value; every use of it throws an error.
  Tensor() = default;
  explicit Tensor(Value value) : value_(std::move(value)) {}
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) noexcept = default;
  Tensor& operator=(const Tensor&) & = default;
  Tensor& operator=(Tensor&&) & noexcept = default;
  ~Tensor() = default;

  bool defined() const { return static_cast<bool>(value_); }
  /// @error invalid argument if undefined.
  const TensorType& type(SourceLocation where = SourceLocation::current()) const {
    if (!value_) [[unlikely]]
      fail_undefined(where);
    return value_.type();
  }
  DType dtype(SourceLocation where = SourceLocation::current()) const { return type(where).dtype; }
  const Shape& shape(SourceLocation where = SourceLocation::current()) const {
    return type(where).shape;
  }
  /// Number of dimensions.
  int rank(SourceLocation where = SourceLocation::current()) const { return shape(where).rank(); }
  /// Number of elements.
  std::int64_t size(SourceLocation where = SourceLocation::current()) const {
    return shape(where).size();
  }
  /// The size of a dimension; a negative index counts from the end.
  /// @error invalid argument if out of range.
  std::int64_t dim(std::int64_t dimension, SourceLocation where = SourceLocation::current()) const;

  /// A part of the value, as in NumPy: `x[0]`, `x[-1]`, `x[range(1, 4)]`, `x[{whole, -1}]`; see
  /// ops/composite/index.h, which defines it.
  /// @error as index(), with the caller's line.
  Tensor operator[](const IndexItems& items) const;

  /// reshape(x, {4, -1}): `x.reshape({4, -1})`; ops/reshape.h defines it.
  /// @error as reshape(), with the caller's line.
  Tensor reshape(const NewShape& shape, SourceLocation where = SourceLocation::current()) const;
  /// permute_dims(x): all dimensions in reverse order; the transposed matrix of a matrix.
  Tensor T(SourceLocation where = SourceLocation::current()) const;
  /// astype(x, dtype).
  Tensor astype(DType dtype, SourceLocation where = SourceLocation::current()) const;

  /// Copies the whole value to host memory and computes it first if needed. Shards of one process
  /// are gathered without a program.
  /// @error errors of the computation; failed precondition for a traced value, a local value inside
  /// manual axes, or a donated value.
  HostArray to_host(SourceLocation where = SourceLocation::current()) const;
  /// The only element of a tensor of size 1, converted to T. @error if it has more.
  template <class T>
  T item(SourceLocation where = SourceLocation::current()) const {
    return to_host(where).template item<T>(where);
  }
  /// All elements in row-major order.
  template <class T>
  std::vector<T> to_vector(SourceLocation where = SourceLocation::current()) const {
    return to_host(where).template to_vector<T>(where);
  }
  /// The annotation: the sharding that the program specified or the compiler chose. It comes from
  /// mark_sharding, from the operands over explicit axes, or from the compiler for a value computed
  /// from annotated ones. Empty for a recorded value without a mark and without explicit axes,
  /// for an unplaced value (computed only from unplaced values), for a value whose annotation was
  /// cleared, and for a local value inside manual axes.
  std::optional<Sharding> sharding() const;
  /// How its bytes are laid out on devices now, with or without an annotation. Empty while the
  /// value is on the host, only recorded, or on one device without a mesh.
  std::optional<Sharding> stored_sharding() const;
  /// Where the bytes are now: `host`, `recorded`, `devices 0..7 of cpu`; for a local value `manual
  /// over {"x"} of mesh<x=2>`.
  std::string placement() const;
  /// The source line that made it.
  SourceLocation where() const { return value_ ? value_->where() : SourceLocation{}; }

  /// The type and value, which is computed if needed; `f32[8,4] (traced)` inside a trace.
  std::string to_string() const;

  const Value& value() const { return value_; }

 private:
  [[noreturn]] static void fail_undefined(SourceLocation where);
  Value value_;
};

/// An argument of an op: a tensor or a C++ number, and the caller's line. Created implicitly; valid
/// only during the call.
struct In {
  In(const Tensor& argument, SourceLocation place = SourceLocation::current())  // NOLINT: implicit
      : tensor(&argument), where(place) {}
  template <class T>
  requires std::is_arithmetic_v<T> In(
      T number, SourceLocation place = SourceLocation::current())  // NOLINT: implicit
      : scalar(number), where(place) {}

  /// nullptr for a number.
  const Tensor* tensor = nullptr;
  Scalar scalar;
  SourceLocation where;
};

}  // namespace meshard
