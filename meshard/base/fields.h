// MESHARD_FIELDS: a struct says its fields once; printing, hashing, comparing, parsing, flattening
// and checkpoint names derive from it.
#pragma once
#include <string_view>
#include <type_traits>

namespace meshard {

namespace internal {
struct AnyVisitor {
  template <class Field>
  void operator()(std::string_view, Field&&) const {}
};
}  // namespace internal

/// True for structs with MESHARD_FIELDS.
template <class T>
concept HasFields = requires(T& value) {
  std::remove_cvref_t<T>::meshard_visit_fields(value, internal::AnyVisitor{});
};

/// Calls `visit(name, field)` for each field of `value`, in the order MESHARD_FIELDS names them.
template <HasFields T, class Visitor>
constexpr void visit_fields(T& value, Visitor&& visit) {
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

/// Inside a struct: lists its fields (up to 80). `struct Layer { Tensor w, b; MESHARD_FIELDS(w, b)
/// };`
#define MESHARD_FIELDS(...)                                                                     \
  template <class MeshardSelf, class MeshardVisitor>                                            \
  static constexpr void meshard_visit_fields([[maybe_unused]] MeshardSelf& meshard_self,        \
                                             [[maybe_unused]] MeshardVisitor&& meshard_visit) { \
    __VA_OPT__(MESHARD_EXPAND(MESHARD_VISIT_EACH(__VA_ARGS__)))                                 \
  }
