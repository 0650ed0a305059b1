// The names of the values of enums.
#pragma once
#include <string_view>
#include <type_traits>

namespace meshard {

/// A value of an enum and its name.
template <class E>
struct EnumName {
  E value;
  std::string_view name;
};

/// Specialize for an enum that is printed and parsed by name: `static constexpr EnumName<E>
/// kNames[] = {{E::kA, "a"}, {E::kB, "b"}};`.
template <class E>
struct EnumNames;

template <class E>
concept NamedEnum = std::is_enum_v<E> && requires {  ///< An enum with names.
  EnumNames<E>::kNames;
};

/// The name of an enum value as EnumNames lists it.
template <NamedEnum E>
constexpr std::string_view enum_name(E value) {
  for (const auto& [known, name] : EnumNames<E>::kNames)
    if (known == value) return name;
  return "?";
}

/// The same for printing. An enum whose values do not all print so has a function of its own.
template <NamedEnum E>
constexpr std::string_view to_string(E value) {
  return enum_name(value);
}

}  // namespace meshard
