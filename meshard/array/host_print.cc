// Tested in meshard/array/host_array_test.cc.
// HostArray::to_string.
#include <cmath>

#include "meshard/array/host_array.h"
#include "meshard/base/cat.h"

namespace meshard {
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

}  // namespace meshard
