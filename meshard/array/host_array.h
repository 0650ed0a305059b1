// N-dimensional arrays in host memory.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "meshard/array/shape.h"
#include "meshard/array/slice.h"

namespace meshard {

// Blocks of host memory: who owns the bytes of a host array, and how they are freed.

/// The alignment of every allocated block, so that a CPU plugin can use it in place.
inline constexpr std::size_t kHostAlignment = 64;
/// Blocks of at least this many bytes are mapped separately, with a request for huge pages.
inline constexpr std::size_t kHugeBlockBytes = std::size_t{4} << 20;

/// Who may write to the bytes of a host array.
enum class Ownership : std::uint8_t {
  kPrivate,   ///< one handle: may be written, moved, donated in place
  kShared,    ///< several handles: immutable
  kBorrowed,  ///< the caller's memory: immutable, and alive until released
};

/// A handle on reference-counted bytes, which copies share. Safe to copy and drop from several
/// threads.
class HostBlock {
 public:
  HostBlock() = default;
  /// Allocates uninitialized bytes, aligned to kHostAlignment. A large block is mapped separately
  /// and advised to use huge pages. This affects only the block, not the process's allocator or
  /// huge-page policy.
  /// @error resource exhausted if there is no memory.
  static HostBlock allocate(std::size_t bytes);
  /// Same, with all bytes zero. Pages of a large block are not touched.
  static HostBlock allocate_zeroed(std::size_t bytes);
  /// Wraps memory that was allocated elsewhere. `release` is called once, on the thread that drops
  /// the last handle. It may be empty and must not throw.
  static HostBlock adopt(void* data, std::size_t bytes, std::function<void()> release,
                         bool borrowed);

  HostBlock(const HostBlock& other) noexcept : control_(other.control_) {
    if (control_) control_->handles.fetch_add(1, std::memory_order_relaxed);
  }
  HostBlock(HostBlock&& other) noexcept : control_(std::exchange(other.control_, nullptr)) {}
  HostBlock& operator=(HostBlock other) noexcept {
    std::swap(control_, other.control_);
    return *this;
  }
  ~HostBlock() {
    if (control_ && control_->handles.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy();
  }

  std::byte* data() const { return control_ ? control_->data : nullptr; }
  std::size_t bytes() const { return control_ ? control_->bytes : 0; }
  /// Who may write the bytes. A result of kPrivate holds until this handle is copied.
  Ownership ownership() const {
    if (!control_) return Ownership::kPrivate;
    if (control_->borrowed) return Ownership::kBorrowed;
    return control_->handles.load(std::memory_order_acquire) == 1 ? Ownership::kPrivate
                                                                  : Ownership::kShared;
  }

 private:
  struct Control {
    std::atomic<std::int64_t> handles{1};
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    std::size_t mapped = 0;      // bytes to unmap; 0 if the block was not mapped
    void* allocation = nullptr;  // from operator new; null if allocated otherwise
    bool borrowed = false;
    std::function<void()> release;
  };
  explicit HostBlock(Control* control) : control_(control) {}
  void destroy() noexcept;

  Control* control_ = nullptr;
};

/// A handle on an immutable, dense, row-major array in host memory. Copies share the bytes. Bools
/// are one byte, 0 or 1.
///
/// An array can be written through mutable_data() while it has only one handle, which is how it is
/// filled. Once shared, it no longer changes.
///
///     HostArray a = HostArray::from_vector<float>({1, 2, 3, 4}, {2, 2});
///     a.at<float>({1, 0});  // 3
///     a.ownership();        // kPrivate; kShared after `HostArray b = a;`
class HostArray {
 public:
  /// An array `f32[0]` that allocates no memory.
  HostArray() : type_{DType::f32, Shape{0}} {}

  /// Takes ownership of the vector's memory without a copy (bool is copied). The array has the
  /// alignment of the vector's memory.
  /// @error invalid argument if the number of values differs from the size of the shape.
  template <Element T>
  static HostArray from_vector(std::vector<T> values, Shape shape) {
    check_count(static_cast<std::int64_t>(values.size()), dtype_of<T>(), shape);
    if constexpr (std::is_same_v<T, bool>) {
      HostArray array = uninitialized({DType::bool_, std::move(shape)});
      std::byte* data = array.mutable_bytes();
      for (std::size_t i = 0; i < values.size(); ++i)
        data[i] = std::byte{static_cast<unsigned char>(values[i] ? 1 : 0)};
      return array;
    } else {
      auto kept = std::make_shared<std::vector<T>>(std::move(values));
      void* data = kept->data();
      std::size_t bytes = kept->size() * sizeof(T);
      return HostArray({dtype_of<T>(), std::move(shape)},
                       HostBlock::adopt(
                           data, bytes, [kept = std::move(kept)]() mutable { kept.reset(); },
                           /*borrowed=*/false));
    }
  }
  /// Takes ownership of a vector as a one-dimensional array.
  template <Element T>
  static HostArray from_vector(std::vector<T> values) {
    auto count = static_cast<std::int64_t>(values.size());
    return from_vector<T>(std::move(values), Shape{count});
  }
  /// Copies the values into newly allocated memory.
  /// @error invalid argument if the number of values differs from the size of the shape.
  template <Element T>
  static HostArray copy_of(std::span<const T> values, Shape shape) {
    check_count(static_cast<std::int64_t>(values.size()), dtype_of<T>(), shape);
    return copy_of({dtype_of<T>(), std::move(shape)}, values.data());
  }
  /// Copies type.bytes() bytes from `data`.
  static HostArray copy_of(TensorType type, const void* data);
  /// Uses the caller's memory in place. It must hold type.bytes() bytes and stay alive and
  /// unchanged until `release` is called. `release` is called once, on the thread that drops the
  /// last handle; it may be empty.
  static HostArray borrow(TensorType type, const void* data, std::function<void()> release);
  /// Takes ownership of memory; `release` frees it.
  static HostArray adopt(TensorType type, void* data, std::function<void()> release);
  /// A one-element array of rank 0.
  template <Element T>
  static HostArray scalar(T value) {
    return full<T>(Shape{}, value);
  }

  /// Uninitialized memory, which the caller fills through mutable_data().
  static HostArray uninitialized(TensorType type);
  static HostArray zeros(TensorType type);
  template <Element T>
  static HostArray full(Shape shape, T value) {
    HostArray array = uninitialized({dtype_of<T>(), std::move(shape)});
    std::span<T> data = array.mutable_data<T>();
    for (T& element : data) element = value;
    return array;
  }
  /// An array whose elements are all `value`, converted to the dtype of `type`.
  /// @error invalid argument if the dtype cannot hold it; see scalar_array().
  static HostArray full(TensorType type, double value,
                        SourceLocation where = SourceLocation::current());

  const TensorType& type() const { return type_; }
  DType dtype() const { return type_.dtype; }
  const Shape& shape() const { return type_.shape; }
  int rank() const { return type_.rank(); }
  /// The number of elements.
  std::int64_t size() const { return size_; }
  std::int64_t size_in_bytes() const {
    return size_ * static_cast<std::int64_t>(meshard::size_in_bytes(type_.dtype));
  }
  Ownership ownership() const { return block_.ownership(); }
  /// The largest power of two, up to 4096, that divides the address of the data.
  std::size_t alignment() const;

  const std::byte* bytes() const { return block_.data(); }
  /// The elements in row-major order.
  /// @error invalid argument if T is not the dtype's C++ type.
  template <Element T>
  std::span<const T> data(SourceLocation where = SourceLocation::current()) const {
    check_dtype(dtype_of<T>(), where);
    return {reinterpret_cast<const T*>(bytes()), static_cast<std::size_t>(size_)};
  }
  /// The bytes or elements, for writing.
  /// @error failed precondition if the block has other handles or is borrowed.
  std::byte* mutable_bytes(SourceLocation where = SourceLocation::current());
  template <Element T>
  std::span<T> mutable_data(SourceLocation where = SourceLocation::current()) {
    check_dtype(dtype_of<T>(), where);
    return {reinterpret_cast<T*>(mutable_bytes(where)), static_cast<std::size_t>(size_)};
  }

  /// The element at these indices; negative indices count from the end.
  /// @error invalid argument (dtype, number of indices), out of range.
  template <Element T>
  T at(std::initializer_list<std::int64_t> indices,
       SourceLocation where = SourceLocation::current()) const {
    return data<T>(
        where)[static_cast<std::size_t>(offset_of({indices.begin(), indices.size()}, where))];
  }
  /// The only element as a T that holds it: a float is rounded to a narrower one, and for bool
  /// anything but 0 is true.
  /// @error invalid argument if there is not exactly one element; out of range, with the value, if
  /// T cannot hold it: an integer outside of T, a number with a fraction or NaN as an integer, a
  /// finite number beyond the largest float, a complex number as a real one.
  template <Element T>
  T item(SourceLocation where = SourceLocation::current()) const {
    HostArray converted = single_as(dtype_of<T>(), where);
    T value;
    std::memcpy(&value, converted.bytes(), sizeof(T));
    return value;
  }
  /// A copy of the elements as a vector. @error as data().
  template <Element T>
  std::vector<T> to_vector(SourceLocation where = SourceLocation::current()) const {
    std::span<const T> values = data<T>(where);
    return {values.begin(), values.end()};
  }

  /// The same elements with another shape, sharing the memory.
  /// @error invalid argument if the number of elements differs.
  HostArray reshaped(Shape shape, SourceLocation where = SourceLocation::current()) const;
  /// A copy of the elements in a box. @error as check_box.
  HostArray slice(const Box& box, SourceLocation where = SourceLocation::current()) const;
  /// A converted copy of the elements; shares the memory if the dtype is unchanged.
  ///
  /// To bool: true unless zero (NaN is true). Float to integer: truncated toward zero and clamped
  /// to the type's range, NaN becomes 0 (as in XLA). Integer to a narrower integer: wraps around.
  /// To a float: rounded to nearest even. Complex to real: the real part is converted (to bool:
  /// true unless both parts are zero).
  HostArray astype(DType dtype) const;

  /// The values as nested lists, followed by the type: `[[1, 2], [3, 4]] i32[2,2]`. Arrays of more
  /// than 1,000 elements print only the first and last three of each dimension.
  std::string to_string() const;

  /// Same type and equal values: NaN differs from itself, and +0 equals -0.
  friend bool operator==(const HostArray& a, const HostArray& b) { return a.equals(b); }
  /// True if the types and all bytes are equal.
  bool same_bits(const HostArray& other) const;

 private:
  HostArray(TensorType type, HostBlock block);
  static void check_count(std::int64_t count, DType dtype, const Shape& shape);
  void check_dtype(DType asked, SourceLocation where) const {
    if (asked != type_.dtype) [[unlikely]]
      wrong_dtype(asked, where);
  }
  [[noreturn]] void wrong_dtype(DType asked, SourceLocation where) const;
  HostArray single_as(DType dtype, SourceLocation where) const;
  std::int64_t offset_of(std::span<const std::int64_t> indices, SourceLocation where) const;
  bool equals(const HostArray& other) const;

  TensorType type_;
  std::int64_t size_ = 0;
  HostBlock block_;
};

}  // namespace meshard
