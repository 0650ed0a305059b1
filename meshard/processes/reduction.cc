#include "meshard/processes/reduction.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <type_traits>

#include "meshard/base/cat.h"

namespace meshard {

Result<Reduction> parse_reduction(std::string_view text) {
  for (const auto& [op, name] : EnumNames<Reduction>::kNames)
    if (name == text) return op;
  return Error(ErrorCode::kInvalidArgument, cat("[processes] invalid reduction \"", text,
                                                "\": use sum, product, min, max, and, or, xor"));
}

Result<void> check_reduction(Reduction op, DType type) {
  bool known = static_cast<int>(op) < kReductionCount && static_cast<int>(type) < kDTypeCount;
  bool ordered = op == Reduction::kMin || op == Reduction::kMax;
  bool bits = op >= Reduction::kAnd;
  if (known && !(ordered && is_complex(type)) && !(bits && is_inexact(type))) return {};
  if (!known)
    return Error(ErrorCode::kInvalidArgument, cat("[processes] no reduction ", static_cast<int>(op),
                                                  " of element type ", static_cast<int>(type)));
  return Error(
      ErrorCode::kInvalidArgument,
      cat("[processes] elements of type ", type, " have no reduction ", to_string(op), ": ",
          ordered ? "complex numbers have no order"
                  : "only integers and bool are combined bit by bit"));
}

namespace {

/// The type in which elements of type T are combined.
template <class T>
struct WideType {
  using type = T;
};
template <class T>
requires requires { typename T::bits_type; }
struct WideType<T> {
  using type = float;
};

float wide(Half value) {
  // Shifted into place, the number is too small by the difference of the exponents' biases.
  std::uint32_t magnitude = value.bits() & 0x7FFFu;
  float result = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  if (magnitude >= 0x7C00u) result = std::bit_cast<float>((magnitude << 13) | 0x7F800000u);
  return value.bits() & 0x8000u ? -result : result;
}
float wide(BFloat16 value) { return std::bit_cast<float>(std::uint32_t{value.bits()} << 16); }

template <class T>
requires requires { typename T::bits_type; }
float wide(T value) {
  static const std::array<float, 256> kTable = [] {
    std::array<float, 256> table{};
    for (unsigned code = 0; code < 256; ++code)
      table[code] = static_cast<float>(T::from_bits(static_cast<std::uint8_t>(code)));
    return table;
  }();
  return kTable[value.bits()];
}
template <class T>
T wide(T value) {
  return value;
}

template <class T>
T narrow(typename WideType<T>::type value) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    if (value != value) return T(value);
    return T::from_bits(static_cast<std::uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16));
  } else {
    return static_cast<T>(value);
  }
}

template <class T>
T minimum_of(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (a != a || b != b) return a != a ? a : b;
    if (a == b) return std::signbit(a) ? a : b;
  }
  return a < b ? a : b;
}
template <class T>
T maximum_of(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (a != a || b != b) return a != a ? a : b;
    if (a == b) return std::signbit(a) ? b : a;
  }
  return a > b ? a : b;
}

/// Integers wrap around in unsigned arithmetic; overflow of signed integers is undefined. At least
/// 32 bits wide, because narrower operands would be promoted to int.
template <class T>
auto to_wrapping(T value) {
  using Wrapping = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  return Wrapping{static_cast<std::make_unsigned_t<T>>(value)};
}

template <Reduction kOp, class T>
T combine_two(T a, T b) {
  if constexpr (std::is_same_v<T, bool>) {
    if constexpr (kOp == Reduction::kSum || kOp == Reduction::kMax || kOp == Reduction::kOr)
      return a || b;
    if constexpr (kOp == Reduction::kXor) return a != b;
    return a && b;
  } else if constexpr (kOp == Reduction::kMin) {
    return minimum_of(a, b);
  } else if constexpr (kOp == Reduction::kMax) {
    return maximum_of(a, b);
  } else if constexpr (std::is_integral_v<T>) {
    auto x = to_wrapping(a), y = to_wrapping(b);
    if constexpr (kOp == Reduction::kSum) return static_cast<T>(x + y);
    if constexpr (kOp == Reduction::kProduct) return static_cast<T>(x * y);
    if constexpr (kOp == Reduction::kAnd) return static_cast<T>(x & y);
    if constexpr (kOp == Reduction::kOr) return static_cast<T>(x | y);
    return static_cast<T>(x ^ y);
  } else if constexpr (std::is_floating_point_v<T>) {
    if constexpr (kOp == Reduction::kSum) return a + b;
    return a * b;
  } else {
    if constexpr (kOp == Reduction::kSum) return T(a.real + b.real, a.imag + b.imag);
    return T(a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real);
  }
}

/// `Out` is T or the type in which elements of type T are combined.
template <Reduction kOp, class T, class Out>
void combine_typed(std::span<const void* const> blocks, Out* out, std::size_t count) {
  using Wide = typename WideType<T>::type;
  constexpr std::size_t kTile = 2048 / sizeof(Wide);
  std::array<Wide, kTile> sums;
  for (std::size_t begin = 0; begin < count; begin += kTile) {
    std::size_t size = std::min(kTile, count - begin);
    const T* first = static_cast<const T*>(blocks[0]) + begin;
    for (std::size_t i = 0; i < size; ++i) sums[i] = wide(first[i]);
    for (const void* block : blocks.subspan(1)) {
      const T* next = static_cast<const T*>(block) + begin;
      for (std::size_t i = 0; i < size; ++i)
        sums[i] = combine_two<kOp, Wide>(sums[i], wide(next[i]));
    }
    for (std::size_t i = 0; i < size; ++i) out[begin + i] = narrow<Out>(sums[i]);
  }
}

/// True if combine_two has the operation; T is the type in which elements are combined.
template <Reduction kOp, class T>
constexpr bool kCombines = std::is_integral_v<T> ||
                           (kOp < Reduction::kAnd &&
                            (std::is_floating_point_v<T> || kOp < Reduction::kMin));

template <Reduction kOp>
void combine_by(DType type, std::span<const void* const> blocks, void* out, std::size_t count,
                bool stays_wide) {
  visit_dtype(type, [&]<class T>() {
    using Wide = typename WideType<T>::type;
    if constexpr (kCombines<kOp, Wide>) {
      if (stays_wide)
        combine_typed<kOp, T>(blocks, static_cast<Wide*>(out), count);
      else
        combine_typed<kOp, T>(blocks, static_cast<T*>(out), count);
    }
  });
}

void combine(Reduction op, DType type, std::span<const void* const> blocks, void* out,
             std::size_t count, bool stays_wide) {
  auto by = [&]<Reduction kOp>() { combine_by<kOp>(type, blocks, out, count, stays_wide); };
  switch (op) {
    case Reduction::kSum: return by.operator()<Reduction::kSum>();
    case Reduction::kProduct: return by.operator()<Reduction::kProduct>();
    case Reduction::kMin: return by.operator()<Reduction::kMin>();
    case Reduction::kMax: return by.operator()<Reduction::kMax>();
    case Reduction::kAnd: return by.operator()<Reduction::kAnd>();
    case Reduction::kOr: return by.operator()<Reduction::kOr>();
    case Reduction::kXor: break;
  }
  by.operator()<Reduction::kXor>();
}

}  // namespace

void combine_blocks(Reduction op, DType type, std::span<const void* const> blocks, void* out,
                    std::size_t count) {
  combine(op, type, blocks, out, count, false);
}

void combine_blocks_wide(Reduction op, DType type, std::span<const void* const> blocks, void* out,
                         std::size_t count) {
  combine(op, type, blocks, out, count, true);
}

void round_wide(DType type, const void* wide, void* out, std::size_t count) {
  visit_dtype(type, [&]<class T>() {
    const auto* from = static_cast<const typename WideType<T>::type*>(wide);
    for (std::size_t i = 0; i < count; ++i) static_cast<T*>(out)[i] = narrow<T>(from[i]);
  });
}

}  // namespace meshard
