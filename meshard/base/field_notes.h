// What is special about fields of a struct that is written to files or sent to other processes.
#pragma once
#include <string_view>
#include <type_traits>

#include "meshard/base/fields.h"

namespace meshard {

/// A value: fields of a struct that are written or read in a special way. Each text
/// has names of fields, with a space between. A struct with MESHARD_FIELDS may have them as its
/// `static constexpr FieldNotes kFieldNotes`.
struct FieldNotes {
  /// Fields that were added after files were written. Reading a file without them leaves them at
  /// their default.
  std::string_view later = {};
  /// Fields that are neither written nor read.
  std::string_view local = {};
  /// Structs whose fields are written as fields of the enclosing struct.
  std::string_view inlined = {};
  /// Integers that may be negative.
  std::string_view negative = {};
};

/// The notes of a struct; empty ones if it has none.
template <class T>
constexpr FieldNotes field_notes() {
  if constexpr (requires { T::kFieldNotes; })
    return T::kFieldNotes;
  else
    return {};
}

/// True if `name` is one of the names in a text, which have a space between.
constexpr bool lists_name(std::string_view names, std::string_view name) {
  while (!names.empty()) {
    std::string_view first = names.substr(0, names.find(' '));
    if (first == name) return true;
    names.remove_prefix(first.size() < names.size() ? first.size() + 1 : first.size());
  }
  return false;
}

/// The name of a field in a file, which is a function's name without its parentheses.
constexpr std::string_view written_name(std::string_view field) {
  return field.ends_with("()") ? field.substr(0, field.size() - 2) : field;
}

/// True for a function in MESHARD_WRITTEN_FIELDS.
constexpr bool is_derived(std::string_view field) { return field.ends_with(')'); }

}  // namespace meshard

#define MESHARD_COUNT_EACH_STORED(field, ...)                                                     \
  if (!::meshard::is_derived(#field))                                                             \
    meshard_named =                                                                               \
        meshard_named.template with<MeshardSelf, decltype(std::declval<MeshardSelf&>().field)>(); \
  __VA_OPT__(MESHARD_COUNT_STORED_AGAIN MESHARD_PARENTHESES(__VA_ARGS__))
#define MESHARD_COUNT_STORED_AGAIN() MESHARD_COUNT_EACH_STORED
#define MESHARD_VISIT_EACH_WRITTEN(field, ...)                                  \
  if constexpr (std::is_const_v<MeshardSelf> || !::meshard::is_derived(#field)) \
    meshard_visit(#field, meshard_self.field);                                  \
  __VA_OPT__(MESHARD_VISIT_WRITTEN_AGAIN MESHARD_PARENTHESES(__VA_ARGS__))
#define MESHARD_VISIT_WRITTEN_AGAIN() MESHARD_VISIT_EACH_WRITTEN

/// MESHARD_FIELDS of a struct that is written with values that are derived from its fields. These
/// are listed as calls of its functions, `total()`. visit_fields() visits them only if the struct
/// is constant: they are written to files, and never read.
#define MESHARD_WRITTEN_FIELDS(...)                                            \
  template <class MeshardSelf, class MeshardVisitor>                           \
  static constexpr void meshard_visit_fields(MeshardSelf& meshard_self,        \
                                             MeshardVisitor&& meshard_visit) { \
    MESHARD_EXPAND(MESHARD_VISIT_EACH_WRITTEN(__VA_ARGS__))                    \
  }                                                                            \
  template <class MeshardSelf>                                                 \
  static constexpr ::meshard::internal::NamedFields meshard_named_fields() {   \
    ::meshard::internal::NamedFields meshard_named;                            \
    MESHARD_EXPAND(MESHARD_COUNT_EACH_STORED(__VA_ARGS__))                     \
    return meshard_named;                                                      \
  }
