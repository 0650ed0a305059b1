// Nested structures of tensors: vectors, arrays, tuples, maps, optionals and user structs
// (MESHARD_FIELDS) with tensors as leaves. jit, grad and sync accept and return them.
#pragma once
#include <array>
#include <bit>
#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "meshard/base/cat.h"
#include "meshard/base/fields.h"
#include "meshard/graph/tensor.h"

namespace meshard {

/// An argument that is part of the program, not traced: another value gives another program. Values
/// are compared with `==`, but numbers by their bits and strings by their characters. `T` needs
/// `==`, and must be printable by cat() for messages.
template <class T>
struct Static {
  T value;
  operator const T&() const { return value; }  // NOLINT: stands for its value
  friend bool operator==(const Static&, const Static&) = default;
};
template <class T>
Static(T) -> Static<T>;  // not all compilers deduce it for aggregates

namespace structure {

template <class T>
struct IsStatic : std::false_type {};  ///< True for a Static.
template <class T>
struct IsStatic<Static<T>> : std::true_type {};

template <class T>
concept Leaf = std::same_as<T, Tensor>;  ///< A tensor.
template <class T>
concept Number = std::is_arithmetic_v<T>;  ///< A number.
template <class T>
concept Sequence = requires(T& t) {  ///< A list such as std::vector.
  t.begin();
  t.end();
  t.size();
}
&&!requires { typename T::mapped_type; }
&&!std::is_convertible_v<T, std::string>;
template <class T>
concept Mapping = requires {  ///< A map such as std::map.
  typename T::mapped_type;
};
template <class T>
concept TupleLike = requires {  ///< A pair, tuple or array.
  std::tuple_size<T>::value;
}
&&!Sequence<T>;
/// A struct with one field, whose tensors have the elements of a sequence (the layers of a model)
/// along their first dimension. See nn::Layers.
template <class T>
concept Stacked = HasFields<T> && requires {
  typename T::StackedPart;
};

/// A structure that holds its tensors in one sequence and describes the containers around them
/// itself: values of another language, whose types do not exist in C++.
template <class T>
concept Flattened = requires(T& value, std::vector<std::uint64_t>& form) {
  value.leaves().begin();
  { value.leaf_path(std::size_t{}) } -> std::convertible_to<std::string>;
  value.append_form(form);
};

/// True if T is a structure of tensors. The fields of structs with MESHARD_FIELDS are not examined.
template <class T>
consteval bool is_structure() {
  using Plain = std::remove_cvref_t<T>;
  if constexpr (Leaf<Plain> || Number<Plain> || IsStatic<Plain>::value || HasFields<Plain> ||
                Flattened<Plain>) {
    return true;
  } else if constexpr (Mapping<Plain>) {
    return is_structure<typename Plain::mapped_type>();
  } else if constexpr (Sequence<Plain> || requires(Plain & value) {
                         value.has_value();
                         *value;
                       }) {
    return is_structure<typename Plain::value_type>();
  } else if constexpr (TupleLike<Plain>) {
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return (true && ... && is_structure<std::tuple_element_t<I, Plain>>());
    }
    (std::make_index_sequence<std::tuple_size_v<Plain>>());
  } else {
    return false;
  }
}

/// The number of leading dimensions, of a tensor at this path, that stack the elements of Stacked
/// structs: how often the path contains `[:]`.
std::size_t stacked_dimensions(std::string_view path);
/// The position of the first `[:]` in a path, from `from` on; the size of the path if there is
/// none.
std::size_t find_stacked(std::string_view path, std::size_t from = 0);

/// Calls `visit(leaf, path)` for every Tensor, number and Static of `value`, depth first. `path` is
/// the leaf's name as the user would write it: `.layers[2].w`, or `.layers[:].w` for a tensor that
/// stacks the layers. `visit` gets references, const if `value` is const.
template <class T, class Visitor>
void for_each(T& value, Visitor&& visit, const std::string& path = {}) {
  using Plain = std::remove_cvref_t<T>;
  if constexpr (Leaf<Plain> || Number<Plain> || IsStatic<Plain>::value) {
    visit(value, path);
  } else if constexpr (Flattened<Plain>) {
    std::size_t i = 0;
    for (auto& leaf : value.leaves()) visit(leaf, cat(path, value.leaf_path(i++)));
  } else if constexpr (Stacked<Plain>) {
    visit_fields(value,
                 [&](std::string_view, auto& field) { for_each(field, visit, cat(path, "[:]")); });
  } else if constexpr (HasFields<Plain>) {
    visit_fields(value, [&](std::string_view name, auto& field) {
      for_each(field, visit, cat(path, ".", name));
    });
  } else if constexpr (Mapping<Plain>) {
    for (auto& [key, element] : value) for_each(element, visit, cat(path, "[\"", key, "\"]"));
  } else if constexpr (Sequence<Plain>) {
    std::size_t i = 0;
    for (auto& element : value) for_each(element, visit, cat(path, "[", i++, "]"));
  } else if constexpr (TupleLike<Plain>) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (for_each(std::get<I>(value), visit, cat(path, "[", I, "]")), ...);
    }
    (std::make_index_sequence<std::tuple_size_v<Plain>>());
  } else if constexpr (requires {
                         value.has_value();
                         *value;
                       }) {
    if (value) for_each(*value, visit, path);
  } else {
    static_assert(
        sizeof(T) == 0,
        "jit, grad and sync take tensors, numbers, Static, std containers and structs with "
        "MESHARD_FIELDS");
  }
}

/// The same without paths, so that the hot path of a jitted call builds no strings.
template <class T, class Visitor>
void for_each_leaf(T& value, Visitor&& visit) {
  using Plain = std::remove_cvref_t<T>;
  if constexpr (Leaf<Plain> || Number<Plain> || IsStatic<Plain>::value) {
    visit(value);
  } else if constexpr (Flattened<Plain>) {
    for (auto& leaf : value.leaves()) visit(leaf);
  } else if constexpr (HasFields<Plain>) {
    visit_fields(value, [&](std::string_view, auto& field) { for_each_leaf(field, visit); });
  } else if constexpr (Mapping<Plain>) {
    for (auto& [key, element] : value) for_each_leaf(element, visit);
  } else if constexpr (Sequence<Plain>) {
    for (auto& element : value) for_each_leaf(element, visit);
  } else if constexpr (TupleLike<Plain>) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (for_each_leaf(std::get<I>(value), visit), ...);
    }
    (std::make_index_sequence<std::tuple_size_v<Plain>>());
  } else if constexpr (requires {
                         value.has_value();
                         *value;
                       }) {
    if (value) for_each_leaf(*value, visit);
  } else {
    static_assert(sizeof(T) == 0, "not a structure of tensors");
  }
}

namespace internal {

/// Appends the length of a text, then its bytes.
void append_text(std::string_view text, std::vector<std::uint64_t>& form);

/// Appends a map key; two keys append the same numbers exactly when they are equal.
template <class Key>
void append_map_key(const Key& key, std::vector<std::uint64_t>& form) {
  if constexpr (std::is_enum_v<Key> || std::is_integral_v<Key>) {
    form.push_back(static_cast<std::uint64_t>(key));
  } else if constexpr (std::is_floating_point_v<Key>) {
    static_assert(sizeof(Key) <= 8, "a long double cannot be a key of a map of tensors");
    form.push_back(std::bit_cast<std::uint64_t>(static_cast<double>(key) + 0.0));  // -0.0 is 0.0
  } else if constexpr (std::is_convertible_v<const Key&, std::string_view>) {
    append_text(key, form);
  } else if constexpr (HasFields<Key>) {
    visit_fields(key, [&](std::string_view, const auto& field) { append_map_key(field, form); });
  } else if constexpr (Sequence<Key>) {
    form.push_back(key.size());
    for (const auto& element : key) append_map_key(element, form);
  } else if constexpr (TupleLike<Key>) {
    std::apply([&](const auto&... element) { (append_map_key(element, form), ...); }, key);
  } else {
    static_assert(sizeof(Key) == 0,
                  "a key of a map of tensors must be a number, an enum, a string, or a tuple, "
                  "sequence or struct with MESHARD_FIELDS of these");
  }
}

}  // namespace internal

/// Appends the structure around the leaves: lengths, keys, and which optionals are set. Two values
/// of one C++ type have the same number of leaves at the same paths exactly when these numbers are
/// equal.
template <class T>
void append_form(const T& value, std::vector<std::uint64_t>& form) {
  using Plain = std::remove_cvref_t<T>;
  if constexpr (Leaf<Plain> || Number<Plain> || IsStatic<Plain>::value) {
    return;
  } else if constexpr (Flattened<Plain>) {
    value.append_form(form);
  } else if constexpr (HasFields<Plain>) {
    visit_fields(value, [&](std::string_view, auto& field) { append_form(field, form); });
  } else if constexpr (Mapping<Plain>) {
    form.push_back(value.size());
    for (auto& [key, element] : value) {
      internal::append_map_key(key, form);
      append_form(element, form);
    }
  } else if constexpr (TupleLike<Plain> && !Sequence<Plain>) {
    std::apply([&](const auto&... element) { (append_form(element, form), ...); }, value);
  } else if constexpr (Sequence<Plain>) {
    form.push_back(value.size());
    for (auto& element : value) append_form(element, form);
  } else if constexpr (requires {
                         value.has_value();
                         *value;
                       }) {
    form.push_back(value.has_value());
    if (value) append_form(*value, form);
  }
}

/// The tensors of `value`, in order.
template <class T>
std::vector<Tensor> tensors(const T& value) {
  std::vector<Tensor> out;
  for_each_leaf(value, [&](const auto& leaf) {
    if constexpr (Leaf<std::remove_cvref_t<decltype(leaf)>>) out.push_back(leaf);
  });
  return out;
}

/// Moves `tensors` to the tensors of `value`, in order. @pre as many as value has tensors.
template <class T>
void move_into(T& value, std::span<Tensor> tensors) {
  auto next = tensors.begin();
  for_each_leaf(value, [&](auto& leaf) {
    if constexpr (Leaf<std::remove_cvref_t<decltype(leaf)>>) leaf = std::move(*next++);
  });
}

/// A copy of `value` with its tensors replaced, in order. @pre as many as value has tensors.
template <class T, class Range>
T with_tensors(T value, const Range& replacements) {
  auto next = replacements.begin();
  for_each_leaf(value, [&](auto& leaf) {
    if constexpr (Leaf<std::remove_cvref_t<decltype(leaf)>>) leaf = *next++;
  });
  return value;
}

}  // namespace structure
}  // namespace meshard
