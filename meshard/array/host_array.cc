#include "meshard/array/host_array.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <new>

#include "meshard/array/number.h"
#include "meshard/base/cat.h"
#include "meshard/base/error.h"

namespace meshard {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

[[noreturn]] void no_memory(std::size_t bytes) {
  throw Error(ErrorCode::kResourceExhausted,
              cat("[host_array] cannot allocate ", bytes, " bytes of host memory"));
}

/// Maps at least `bytes`, aligned to a huge page; pages are zero-filled on first access.
std::byte* map_huge(std::size_t bytes, std::size_t& mapped) {
  if (bytes > std::numeric_limits<std::size_t>::max() / 2) no_memory(bytes);
  mapped = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  std::size_t reserved = mapped + kHugePage;
  void* start = mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) no_memory(bytes);
  auto address = reinterpret_cast<std::uintptr_t>(start);
  std::size_t before = (kHugePage - address % kHugePage) % kHugePage;
  auto* data = static_cast<std::byte*>(start) + before;
  if (before != 0) munmap(start, before);
  if (kHugePage != before) munmap(data + mapped, kHugePage - before);
  (void)madvise(data, mapped, MADV_HUGEPAGE);  // a hint: kernels without huge pages reject it
  return data;
}

}  // namespace

HostBlock HostBlock::allocate(std::size_t bytes) {
  auto control = std::make_unique<Control>();
  control->bytes = bytes;
  if (bytes >= kHugeBlockBytes) {
    control->data = map_huge(bytes, control->mapped);
  } else {
    // Rounded up to whole cache lines, so that two blocks never share one. Aligned by hand, because
    // the allocator's aligned allocations fragment the heap when thousands of small blocks come and
    // go.
    std::size_t rounded = (bytes + kHostAlignment - 1) / kHostAlignment * kHostAlignment;
    control->allocation = ::operator new(rounded + kHostAlignment, std::nothrow);
    if (control->allocation == nullptr) no_memory(bytes);
    auto address = reinterpret_cast<std::uintptr_t>(control->allocation);
    control->data = static_cast<std::byte*>(control->allocation) +
                    (kHostAlignment - address % kHostAlignment) % kHostAlignment;
  }
  return HostBlock(control.release());
}

HostBlock HostBlock::allocate_zeroed(std::size_t bytes) {
  HostBlock block = allocate(bytes);
  if (block.control_->mapped == 0) std::memset(block.data(), 0, bytes);
  return block;
}

HostBlock HostBlock::adopt(void* data, std::size_t bytes, std::function<void()> release,
                           bool borrowed) {
  auto control = std::make_unique<Control>();
  control->data = static_cast<std::byte*>(data);
  control->bytes = bytes;
  control->release = std::move(release);
  control->borrowed = borrowed;
  return HostBlock(control.release());
}

void HostBlock::destroy() noexcept {
  if (control_->mapped != 0) munmap(control_->data, control_->mapped);
  ::operator delete(control_->allocation);
  if (control_->release) control_->release();
  delete control_;
}

namespace {

// True if `dtype` holds the integer or bool that is the only element of an array.
bool holds_integer(const HostArray& from, DType dtype) {
  const HostArray as_signed = from.astype(DType::i64), as_unsigned = from.astype(DType::u64);
  const std::int64_t value = as_signed.data<std::int64_t>()[0];
  const IntegerLimits limits = integer_limits(dtype);
  if (is_signed_integer(from.dtype()) && value < 0) return value >= limits.min;
  return as_unsigned.data<std::uint64_t>()[0] <= limits.max;
}

// True if `dtype` holds the number; a float may be rounded to it.
bool holds_number(double value, DType dtype) {
  if (dtype == DType::f64 || is_complex(dtype)) return true;
  if (is_integer(dtype)) {
    // The lower limit and the upper limit plus one are powers of two or zero, so exact as doubles.
    const IntegerLimits limits = integer_limits(dtype);
    const double end = std::ldexp(1.0, static_cast<int>(std::bit_width(limits.max)));
    return std::trunc(value) == value && value >= static_cast<double>(limits.min) && value < end;
  }
  const HostArray rounded = HostArray::scalar(value).astype(dtype).astype(DType::f64);
  return !std::isfinite(value) || std::isfinite(rounded.data<double>()[0]);
}

// The same for the only element of an array; for bool, anything but 0 is true.
bool holds_element(const HostArray& from, DType dtype) {
  if (dtype == DType::bool_) return true;
  if (is_complex(from.dtype())) {
    if (is_complex(dtype)) return true;
    const HostArray wide = from.astype(DType::c128);
    const auto value = wide.data<Complex128>()[0];
    return value.imag == 0 && holds_number(value.real, dtype);
  }
  if (is_floating(from.dtype())) {
    const HostArray wide = from.astype(DType::f64);
    return holds_number(wide.data<double>()[0], dtype);
  }
  return !is_integer(dtype) || holds_integer(from, dtype);
}

}  // namespace

HostArray::HostArray(TensorType type, HostBlock block)
    : type_(std::move(type)), size_(type_.size()), block_(std::move(block)) {}

void HostArray::check_count(std::int64_t count, DType dtype, const Shape& shape) {
  if (count != shape.size())
    throw Error(ErrorCode::kInvalidArgument,
                cat("[host_array] ", count, " values of ", meshard::to_string(dtype),
                    " for the shape ", shape, ", which has ", shape.size(), " elements"));
}

HostArray HostArray::uninitialized(TensorType type) {
  HostBlock block = HostBlock::allocate(static_cast<std::size_t>(type.bytes()));
  return HostArray(std::move(type), std::move(block));
}

HostArray HostArray::zeros(TensorType type) {
  if (type.dtype == DType::f8e8m0fnu)  // f8e8m0fnu has no zero: fill with NaN
    return full(std::move(type), std::numeric_limits<double>::quiet_NaN());
  HostBlock block = HostBlock::allocate_zeroed(static_cast<std::size_t>(type.bytes()));
  return HostArray(std::move(type), std::move(block));
}

HostArray HostArray::full(TensorType type, double value, SourceLocation where) {
  HostArray one = scalar_array(Scalar(value), type.dtype, where);
  return visit_dtype(type.dtype,
                     [&]<class T>() { return full<T>(std::move(type.shape), one.data<T>()[0]); });
}

HostArray HostArray::copy_of(TensorType type, const void* data) {
  HostArray array = uninitialized(std::move(type));
  if (array.size_ != 0)
    std::memcpy(array.mutable_bytes(), data, static_cast<std::size_t>(array.size_in_bytes()));
  return array;
}

HostArray HostArray::borrow(TensorType type, const void* data, std::function<void()> release) {
  auto bytes = static_cast<std::size_t>(type.bytes());
  return HostArray(std::move(type), HostBlock::adopt(const_cast<void*>(data), bytes,
                                                     std::move(release), /*borrowed=*/true));
}

HostArray HostArray::adopt(TensorType type, void* data, std::function<void()> release) {
  auto bytes = static_cast<std::size_t>(type.bytes());
  return HostArray(std::move(type),
                   HostBlock::adopt(data, bytes, std::move(release), /*borrowed=*/false));
}

std::size_t HostArray::alignment() const {
  auto address = reinterpret_cast<std::uintptr_t>(bytes());
  return address == 0 ? 4096 : std::min<std::size_t>(4096, address & (~address + 1));
}

std::byte* HostArray::mutable_bytes(SourceLocation where) {
  if (ownership() != Ownership::kPrivate)
    throw Error(ErrorCode::kFailedPrecondition,
                cat("[host_array] cannot write to ", type_.to_string(), ": its memory is ",
                    ownership() == Ownership::kBorrowed ? "borrowed" : "shared by several handles"),
                where);
  return block_.data();
}

void HostArray::wrong_dtype(DType asked, SourceLocation where) const {
  throw_invalid(where, "[host_array] elements requested as ", meshard::to_string(asked),
                ", but the array is ", type_, "; use astype");
}

HostArray HostArray::single_as(DType dtype, SourceLocation where) const {
  if (size_ != 1)
    throw_invalid(where, "[host_array] item() requires an array with exactly one element, not ",
                  type_);
  if (dtype != type_.dtype && !holds_element(*this, dtype))
    throw Error(ErrorCode::kOutOfRange,
                cat("[host_array] item() cannot read ", reshaped(Shape{}), " as ", dtype,
                    ", which does not hold it: read it as ", type_.dtype,
                    ", or convert the array with astype first"),
                where);
  return astype(dtype);
}

std::int64_t HostArray::offset_of(std::span<const std::int64_t> indices,
                                  SourceLocation where) const {
  if (indices.size() != static_cast<std::size_t>(rank()))
    throw_invalid(where, "[host_array] ", indices.size(), " indices for an array of ", rank(),
                  " dimensions: ", type_);
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    std::int64_t size = shape().sizes()[i];
    std::int64_t index = indices[i] < 0 ? indices[i] + size : indices[i];
    if (index < 0 || index >= size)
      throw Error(ErrorCode::kOutOfRange,
                  cat("[host_array] index ", indices[i], " of dimension ", i, " is outside ",
                      type_.to_string()),
                  where);
    offset = offset * size + index;
  }
  return offset;
}

HostArray HostArray::reshaped(Shape new_shape, SourceLocation where) const {
  if (new_shape.size() != size_)
    throw_invalid(where, "[host_array] cannot reshape ", type_, " (", size_, " elements) to ",
                  new_shape, " (", new_shape.size(), ")");
  return HostArray({type_.dtype, std::move(new_shape)}, block_);
}

HostArray HostArray::slice(const Box& box, SourceLocation where) const {
  check_box(box, shape(), "host_array", where);
  HostArray result = uninitialized({type_.dtype, box_shape(box)});
  plan_gather(bytes(), shape(), box, meshard::size_in_bytes(type_.dtype), result.mutable_bytes())
      .run();
  return result;
}

bool HostArray::equals(const HostArray& other) const {
  if (type_ != other.type_) return false;
  return visit_dtype(type_.dtype, [&]<class T>() {
    if constexpr (std::is_integral_v<T>) return same_bits(other);
    std::span<const T> a = data<T>(), b = other.data<T>();
    return std::equal(a.begin(), a.end(), b.begin());
  });
}

bool HostArray::same_bits(const HostArray& other) const {
  return type_ == other.type_ &&
         (size_ == 0 ||
          std::memcmp(bytes(), other.bytes(), static_cast<std::size_t>(size_in_bytes())) == 0);
}

namespace {

constexpr std::int64_t kElideAbove = 1000;
constexpr std::int64_t kEdge = 3;

template <class T>
void append_element(std::string& out, T value) {
  if constexpr (requires { value.imag; }) {
    append_element(out, value.real);
    if (std::isnan(value.imag) || !std::signbit(value.imag)) out.push_back('+');
    append_element(out, value.imag);
    out.push_back('j');
  } else if constexpr (std::is_integral_v<T>) {
    append(out, value);
  } else {
    // A small float prints the shortest text that parses to the same float, not its exact digits.
    auto number = static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(value);
    if (std::isnan(number))
      append(out, "nan");  // without the sign, which has no meaning for a NaN
    else
      append(out, number);
  }
}

template <class T>
void print(std::string& out, const T*& next, std::span<const std::int64_t> sizes, bool elide) {
  if (sizes.empty()) return append_element(out, *next++);
  std::int64_t stride = 1;
  for (std::int64_t size : sizes.subspan(1)) stride *= size;
  out.push_back('[');
  for (std::int64_t i = 0; i < sizes[0]; ++i) {
    if (i != 0) out.append(", ");
    if (elide && i == kEdge && sizes[0] > 2 * kEdge) {
      out.append("..., ");
      next += (sizes[0] - 2 * kEdge) * stride;
      i = sizes[0] - kEdge;
    }
    print(out, next, sizes.subspan(1), elide);
  }
  out.push_back(']');
}

}  // namespace

std::string HostArray::to_string() const {
  std::string out;
  visit_dtype(type_.dtype, [&]<class T>() {
    const T* next = reinterpret_cast<const T*>(bytes());
    print(out, next, shape().sizes(), size_ > kElideAbove);
  });
  return cat(out, " ", type_);
}

namespace {

template <class T>
concept Small = requires(T value) {
  value.bits();
};

template <class T>
concept Parts = requires(T value) {
  value.imag;
};

/// Converts an integer to a double that rounds to every small float exactly as the integer would.
/// Bits that do not fit a double are folded into its last bit (round to odd).
template <class T>
double widen(T value) {
  if constexpr (sizeof(T) < 8) {
    return static_cast<double>(value);
  } else {
    bool negative = value < T{0};
    auto magnitude = static_cast<std::uint64_t>(value);
    if (negative) magnitude = ~magnitude + 1;
    constexpr std::uint64_t kLost = (std::uint64_t{1} << 11) - 1;
    if (magnitude >> 53)
      magnitude = (magnitude & ~kLost) | (magnitude & kLost ? kLost + 1 : std::uint64_t{0});
    auto wide = static_cast<double>(magnitude);
    return negative ? -wide : wide;
  }
}

template <class To>
To clamp_to_integer(double value) {
  using Limits = std::numeric_limits<To>;
  if (std::isnan(value)) return 0;
  // The lower limit and the upper limit plus one are powers of two or zero, so exact as doubles.
  if (value <= static_cast<double>(Limits::min())) return Limits::min();
  double end = std::ldexp(1.0, Limits::digits);
  return value >= end ? Limits::max() : static_cast<To>(value);
}

template <class To, class From>
To convert(From value) {
  if constexpr (Parts<From> && Parts<To>) {
    return To(static_cast<decltype(To::real)>(value.real),
              static_cast<decltype(To::imag)>(value.imag));
  } else if constexpr (Parts<To>) {
    return To(convert<decltype(To::real)>(value));
  } else if constexpr (Parts<From> && std::is_same_v<To, bool>) {
    return value.real != 0 || value.imag != 0;
  } else if constexpr (Parts<From>) {
    return convert<To>(value.real);
  } else if constexpr (std::is_same_v<To, bool>) {
    if constexpr (Small<From>)
      return static_cast<double>(value) != 0;
    else
      return value != From{0};
  } else if constexpr (Small<From>) {
    return convert<To>(static_cast<double>(value));
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    return clamp_to_integer<To>(static_cast<double>(value));
  } else if constexpr (Small<To> && std::is_integral_v<From>) {
    return To(widen(value));
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace

HostArray HostArray::astype(DType dtype) const {
  if (dtype == type_.dtype) return *this;
  HostArray result = uninitialized({dtype, type_.shape});
  visit_dtype(type_.dtype, [&]<class From>() {
    std::span<const From> source = data<From>();
    visit_dtype(dtype, [&]<class To>() {
      To* destination = result.mutable_data<To>().data();
      for (std::size_t i = 0; i < source.size(); ++i) destination[i] = convert<To>(source[i]);
    });
  });
  return result;
}

}  // namespace meshard
