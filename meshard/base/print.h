// Printing: to_string(x) and stream << x for every value type.
#pragma once
#include <concepts>
#include <iosfwd>
#include <string>
#include <string_view>
#include <type_traits>

namespace meshard {

/// The text of a value. A class has a member `to_string()`; enums and aliases have a function of
/// their own. Both are written `to_string(x)`.
template <class T>
requires requires(const T& value) {
  { value.to_string() } -> std::convertible_to<std::string>;
}
std::string to_string(const T& value) { return value.to_string(); }

namespace internal::printing {

void to_string() = delete;  // only argument-dependent lookup finds to_string() here

template <class T>
concept HasText = (std::is_class_v<T> || (std::is_enum_v<T> && !std::is_convertible_v<T, int>)) &&
                  requires(const T& value) {
  { to_string(value) } -> std::convertible_to<std::string_view>;
};

template <class T>
auto text_of(const T& value) {
  return to_string(value);
}
void write(std::ostream& stream, std::string_view text);

}  // namespace internal::printing

/// Prints to_string(value).
///
/// @code
/// std::cout << Mesh({{"data", 2}, {"model", 4}}) << " " << P("data", none) << " " << DType::f32;
/// @endcode
/// prints `mesh<data=2, model=4> P("data", none) f32`.
template <internal::printing::HasText T>
std::ostream& operator<<(std::ostream& stream, const T& value) {
  internal::printing::write(stream, internal::printing::text_of(value));
  return stream;
}

}  // namespace meshard

// Argument-dependent lookup for the types of the folders that have a namespace.
namespace meshard::hlo {
using meshard::operator<<, meshard::to_string;
}
namespace meshard::io {
using meshard::operator<<, meshard::to_string;
}
namespace meshard::pjrt {
using meshard::operator<<, meshard::to_string;
}
namespace meshard::stablehlo {
using meshard::operator<<, meshard::to_string;
}
