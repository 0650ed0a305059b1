// Tensor: the handle that users hold.
#pragma once
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "meshard/array/host_array.h"
#include "meshard/array/number.h"
#include "meshard/base/source_location.h"
#include "meshard/graph/node.h"

namespace meshard {

/// A handle on a recorded or computed value. Cheap to copy; a copy never changes, in-place
/// operators rebind their own handle. An op call on tensors only records; reading a value computes
/// what it needs, once. May be used from several threads; one handle must not be rebound by two at
/// the same time.
class Tensor {
 public:
  /// No value; every use is an error that says so.
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
  std::int64_t rank(SourceLocation where = SourceLocation::current()) const {
    return static_cast<std::int64_t>(shape(where).rank());
  }
  /// Number of elements.
  std::int64_t size(SourceLocation where = SourceLocation::current()) const {
    return shape(where).size();
  }
  /// The extent of a dimension; negative counts from the end.
  /// @error invalid argument if out of range.
  std::int64_t dim(std::int64_t dimension, SourceLocation where = SourceLocation::current()) const;

  /// The whole value in host memory, computed first if need be; nothing is compiled to gather
  /// shards.
  /// @error whatever computing it meets; failed precondition for a value of a trace, a local value
  /// inside manual axes, or donated.
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
  /// The annotation: what mark_sharding said, what follows from the operands over explicit axes, or
  /// what the compiler chose for a value computed from annotated ones. Empty for a value that is
  /// not computed and has neither, for one that nobody placed (made of unplaced values alone) or
  /// whose annotation was cleared, and for a local value inside manual axes.
  std::optional<Sharding> sharding() const;
  /// How its bytes lie on devices now, annotated or not; empty while it is on the host, only
  /// recorded, or on one device without a mesh.
  std::optional<Sharding> stored_sharding() const;
  /// Where the bytes are now: `host`, `recorded`, `devices 0..7 of cpu`; of a local value
  /// `manual over {"x"} of mesh<x=2>`.
  std::string placement() const;
  /// The line that made it.
  SourceLocation where() const { return value_ ? value_->where() : SourceLocation{}; }

  /// Type and value, computing it; `f32[8,4] (traced)` inside a trace.
  std::string to_string() const;

  const Value& value() const { return value_; }

 private:
  [[noreturn]] static void fail_undefined(SourceLocation where);
  Value value_;
};

/// Prints to_string().
std::ostream& operator<<(std::ostream& stream, const Tensor& tensor);

/// An argument of an op: a tensor or a C++ number, and the caller's line. Made implicitly; lives
/// only as long as the call.
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
