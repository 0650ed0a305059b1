// Structures whose tensors correspond to each other by path: parameters and gradients, carries and
// results of a loop body, results and cotangents.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "meshard/base/cat.h"
#include "meshard/graph/structure.h"

namespace meshard::structure {

/// What messages call two structures that must match, in the singular: `{"optim.update",
/// "parameter", "gradient"}` for their tensors; with `as_wholes`, such as `{"vjp", "result",
/// "cotangent", true}`, for the structures.
struct MatchNames {
  std::string_view op, reference, given;
  bool as_wholes = false;
};

namespace internal {

/// Appends the path of each tensor, in order. In structures of another language it also shows what
/// these use to build a node, such as the keys of a class of the user's.
template <class T>
void append_paths(const T& value, const std::string& path, std::vector<std::string>& paths) {
  if constexpr (requires { value.match_path(std::size_t{}); }) {
    for (std::size_t i = 0; i < value.leaves().size(); ++i)
      paths.push_back(cat(path, value.match_path(i)));
  } else if constexpr (TupleLike<T>) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (append_paths(std::get<I>(value), cat(path, "[", I, "]"), paths), ...);
    }
    (std::make_index_sequence<std::tuple_size_v<T>>());
  } else {
    auto append = [&](const auto& leaf, const std::string& place) {
      if constexpr (Leaf<std::remove_cvref_t<decltype(leaf)>>) paths.push_back(place);
    };
    for_each(value, append, path);
  }
}
template <class T>
std::vector<std::string> tensor_paths(const T& value) {
  std::vector<std::string> paths;
  append_paths(value, {}, paths);
  return paths;
}

/// For each path of `reference`, the position in `given` of the tensor with this path.
/// @error invalid argument: the paths are not the same; lists those that are in one only, with
/// their types.
std::vector<std::size_t> matching_order(const std::vector<std::string>& reference,
                                        std::span<const Tensor> reference_tensors,
                                        const std::vector<std::string>& given,
                                        std::span<const Tensor> given_tensors,
                                        const MatchNames& names, SourceLocation where);
/// @error invalid argument: two tensors differ in shape; lists them with their paths.
void check_shapes(const std::vector<std::string>& paths, std::span<const Tensor> reference,
                  std::span<const Tensor> given, const MatchNames& names, SourceLocation where);
bool same_shapes(std::span<const Tensor> reference, std::span<const Tensor> given);
[[noreturn]] void throw_constant_differs(const std::string& difference, const MatchNames& names,
                                         SourceLocation where);

template <class T>
bool same_form(const T& one, const T& other) {
  std::vector<std::uint64_t> form, other_form;
  append_form(one, form);
  append_form(other, other_form);
  return form == other_form;
}

}  // namespace internal

/// The tensors of `given`, in the order of the tensors of `reference` that have the same paths.
/// Where something is (a key, an index, the name of a field) decides, not the order.
/// @error invalid argument: a path is in one structure only; the message lists all of them.
template <class A, class B>
std::vector<Tensor> matched_tensors(const A& reference, const B& given, const MatchNames& names,
                                    SourceLocation where) {
  std::vector<Tensor> found = tensors(given);
  if constexpr (std::is_same_v<A, B>)
    if (internal::same_form(reference, given)) return found;
  std::vector<Tensor> ordered;
  for (std::size_t i :
       internal::matching_order(internal::tensor_paths(reference), tensors(reference),
                                internal::tensor_paths(given), found, names, where))
    ordered.push_back(found[i]);
  return ordered;
}

/// The same, of tensors of the same shapes. @error invalid argument: the shapes of two tensors
/// differ.
template <class A, class B>
std::vector<Tensor> matched_shapes(const A& reference, const B& given, const MatchNames& names,
                                   SourceLocation where) {
  std::vector<Tensor> found = matched_tensors(reference, given, names, where);
  const std::vector<Tensor> wanted = tensors(reference);
  if (!internal::same_shapes(wanted, found))
    internal::check_shapes(internal::tensor_paths(reference), wanted, found, names, where);
  return found;
}

/// What is not a tensor and differs between two structures that have equal forms: the path and both
/// values of a number or a Static, such as `.size is 2 and 3`; empty if nothing differs.
template <class T>
std::string constant_difference(const T& one, const T& other, const std::string& path = {}) {
  if constexpr (requires { one.constant_difference(other); }) {
    const std::string found = one.constant_difference(other);
    return found.empty() ? found : cat(path, found);
  } else if constexpr (Leaf<T> || Flattened<T>) {
    return {};
  } else if constexpr (Number<T>) {
    const bool equal = one == other || (one != one && other != other);  // NaN is itself
    return equal ? std::string() : cat(path, " is ", one, " and ", other);
  } else if constexpr (IsStatic<T>::value) {
    return one == other ? std::string() : cat(path, " is ", one.value, " and ", other.value);
  } else if constexpr (HasFields<T>) {
    std::vector<const void*> fields;
    visit_fields(other, [&](std::string_view, const auto& field) { fields.push_back(&field); });
    std::string found;
    std::size_t next = 0;
    visit_fields(one, [&](std::string_view name, const auto& field) {
      using Field = std::remove_cvref_t<decltype(field)>;
      const auto& match = *static_cast<const Field*>(fields[next++]);
      if (found.empty())
        found = constant_difference(field, match, cat(path, Stacked<T> ? "[:]" : cat(".", name)));
    });
    return found;
  } else if constexpr (Mapping<T>) {
    for (const auto& [key, element] : one)
      if (auto match = other.find(key); match != other.end())
        if (std::string found =
                constant_difference(element, match->second, cat(path, "[\"", key, "\"]"));
            !found.empty())
          return found;
    return {};
  } else if constexpr (Sequence<T>) {
    auto match = other.begin();
    std::size_t i = 0;
    for (const auto& element : one)
      if (std::string found = constant_difference(element, *match++, cat(path, "[", i++, "]"));
          !found.empty())
        return found;
    return {};
  } else if constexpr (TupleLike<T>) {
    std::string found;
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((found.empty() ? void(found = constant_difference(std::get<I>(one), std::get<I>(other),
                                                         cat(path, "[", I, "]")))
                      : void()),
       ...);
    }
    (std::make_index_sequence<std::tuple_size_v<T>>());
    return found;
  } else {
    return one ? constant_difference(*one, *other, path) : std::string();
  }
}

/// What must be the same in two structures besides the paths of their tensors: numbers and Statics,
/// which are not computed. @error invalid argument: one differs; names its path and both values.
template <class T>
void check_constants(const T& reference, const T& given, const MatchNames& names,
                     SourceLocation where) {
  if constexpr (!Leaf<T>) {
    if (!internal::same_form(reference, given)) return;
    const std::string difference = constant_difference(reference, given);
    if (!difference.empty()) internal::throw_constant_differs(difference, names, where);
  }
}

}  // namespace meshard::structure
