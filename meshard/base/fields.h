// MESHARD_FIELDS: lists the fields of a struct once. Printing, hashing, comparison, parsing,
// flattening and checkpoint names are derived from the list.
#pragma once
#include <concepts>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

namespace meshard {

namespace internal {

struct AnyVisitor {
  template <class Field>
  void operator()(std::string_view, Field&&) const {}
};

/// Converts to any member type of Aggregate, to count the members of an aggregate. Does not convert
/// to Aggregate itself or to its base classes: brace elision then gives each of their members an
/// initializer of its own.
template <class Aggregate>
struct AnyMember {
  template <class T>
  requires(!std::is_base_of_v<T, Aggregate>) operator T() const {
    throw 0;  // never called, but containers' constructors instantiate it
  }
};

template <class T, std::size_t... I>
constexpr bool takes_initializers(std::index_sequence<I...>) {
  return requires { T{(static_cast<void>(I), AnyMember<T>())...}; }
  || requires { T{{}, (static_cast<void>(I), AnyMember<T>())...}; };
}

/// The number of initializers that a member takes: for an array, one for each element.
template <class Member>
constexpr std::size_t initializers_of() {
  using Plain = std::remove_reference_t<Member>;
  if constexpr (std::is_array_v<Plain>)
    return std::extent_v<Plain> * initializers_of<std::remove_extent_t<Plain>>();
  else
    return 1;
}

/// The total size of the fields in MESHARD_FIELDS, in initializers and in bytes.
struct NamedFields {
  std::size_t initializers = 0;
  /// The size of each field is rounded up to the alignment of the struct.
  std::size_t bytes = 0;

  template <class T, class Member>
  constexpr NamedFields with() const {
    using Plain = std::remove_reference_t<Member>;
    constexpr std::size_t kUnit = alignof(T);
    constexpr std::size_t kSize = std::is_reference_v<Member> ? sizeof(void*) : sizeof(Plain);
    return {initializers + initializers_of<Plain>(), bytes + (kSize + kUnit - 1) / kUnit * kUnit};
  }
};

/// False if T definitely has a member that is missing from its MESHARD_FIELDS. Aggregates are
/// checked by counting members. Other classes are checked by size, so a missing member that fits
/// into padding is not detected.
template <class T>
constexpr bool names_all_members() {
  constexpr NamedFields kNamed = T::template meshard_named_fields<T>();
  if constexpr (std::is_empty_v<T>) {
    return true;
  } else if constexpr (std::is_aggregate_v<T>) {
    return !takes_initializers<T>(std::make_index_sequence<kNamed.initializers + 1>());
  } else {
    constexpr std::size_t kUnit = alignof(T);
    constexpr std::size_t kTable =
        std::is_polymorphic_v<T> ? (sizeof(void*) + kUnit - 1) / kUnit * kUnit : 0;
    return sizeof(T) <= kNamed.bytes + kTable;
  }
}

}  // namespace internal

/// True for structs with MESHARD_FIELDS.
template <class T>
concept HasFields = requires(T& value) {
  std::remove_cvref_t<T>::meshard_visit_fields(value, internal::AnyVisitor{});
};

/// Calls `visit(name, field)` for each field of `value`, in the order of MESHARD_FIELDS. Fails to
/// compile if the struct has a member that MESHARD_FIELDS does not list.
template <HasFields T, class Visitor>
constexpr void visit_fields(T& value, Visitor&& visit) {
  static_assert(internal::names_all_members<std::remove_cvref_t<T>>(),
                "a member of this struct, or of a base class, is missing in its MESHARD_FIELDS: "
                "list every member there (make a constant that all instances share static)");
  std::remove_cvref_t<T>::meshard_visit_fields(value, visit);
}

}  // namespace meshard

#define MESHARD_PARENTHESES ()
#define MESHARD_EXPAND(...) \
  MESHARD_EXPAND3(MESHARD_EXPAND3(MESHARD_EXPAND3(MESHARD_EXPAND3(__VA_ARGS__))))
#define MESHARD_EXPAND3(...) \
  MESHARD_EXPAND2(MESHARD_EXPAND2(MESHARD_EXPAND2(MESHARD_EXPAND2(__VA_ARGS__))))
#define MESHARD_EXPAND2(...) \
  MESHARD_EXPAND1(MESHARD_EXPAND1(MESHARD_EXPAND1(MESHARD_EXPAND1(__VA_ARGS__))))
#define MESHARD_EXPAND1(...) __VA_ARGS__
#define MESHARD_VISIT_EACH(field, ...)       \
  meshard_visit(#field, meshard_self.field); \
  __VA_OPT__(MESHARD_VISIT_AGAIN MESHARD_PARENTHESES(__VA_ARGS__))
#define MESHARD_VISIT_AGAIN() MESHARD_VISIT_EACH
#define MESHARD_COUNT_EACH(field, ...)                                        \
  .template with<MeshardSelf, decltype(std::declval<MeshardSelf&>().field)>() \
      __VA_OPT__(MESHARD_COUNT_AGAIN MESHARD_PARENTHESES(__VA_ARGS__))
#define MESHARD_COUNT_AGAIN() MESHARD_COUNT_EACH

/// Inside a struct: lists all its fields, at most 80. A missing field is a compile error where the
/// fields are used. `struct Layer { Tensor w, b; MESHARD_FIELDS(w, b) };`
#define MESHARD_FIELDS(...)                                                                     \
  template <class MeshardSelf, class MeshardVisitor>                                            \
  static constexpr void meshard_visit_fields([[maybe_unused]] MeshardSelf& meshard_self,        \
                                             [[maybe_unused]] MeshardVisitor&& meshard_visit) { \
    __VA_OPT__(MESHARD_EXPAND(MESHARD_VISIT_EACH(__VA_ARGS__)))                                 \
  }                                                                                             \
  template <class MeshardSelf>                                                                  \
  static constexpr ::meshard::internal::NamedFields meshard_named_fields() {                    \
    return ::meshard::internal::NamedFields()                                                   \
        __VA_OPT__(MESHARD_EXPAND(MESHARD_COUNT_EACH(__VA_ARGS__)));                            \
  }
