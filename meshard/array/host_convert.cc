// Tested in meshard/array/host_array_test.cc.
// HostArray::astype: converts between any two dtypes.
#include <cmath>
#include <limits>

#include "meshard/array/host_array.h"

namespace meshard {
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
