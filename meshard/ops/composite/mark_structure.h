// Marks a structure of tensors, with one spec for all or a structure of specs.
#pragma once
#include <concepts>
#include <map>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "meshard/graph/record.h"
#include "meshard/graph/structure.h"
#include "meshard/ops/composite/mark_sharding.h"

namespace meshard::internal {

// How tensors are marked: the mesh (none if the specs have their own), and the user's source line.
struct Marking {
  const Mesh* mesh;
  SourceLocation where;
};

Tensor marked(const Marking& marking, const Tensor& x, const PartitionSpec& spec,
              const std::string& path);
Tensor marked(const Marking& marking, const Tensor& x, const ShardingSpec& spec,
              const std::string& path);
[[noreturn]] void no_spec_for(const Marking& marking, const std::string& path);
[[noreturn]] void no_tensor_for(const Marking& marking, const std::string& path);
[[noreturn]] void other_count(const Marking& marking, const std::string& path, std::size_t tensors,
                              std::size_t specs);

bool is_one_of(const std::string& name, const std::vector<std::string>& names);

// Marks the tensors of `value` in place.
template <class T, class Specs>
void mark_each(const Marking& marking, T& value, const Specs& specs, const std::string& path);

template <class T, class Spec>
void mark_all(const Marking& marking, T& value, const Spec& spec, const std::string& path) {
  structure::for_each(
      value,
      [&](auto& leaf, const std::string& inner) {
        if constexpr (structure::Leaf<std::remove_cvref_t<decltype(leaf)>>)
          leaf = marked(marking, leaf, spec, inner);
      },
      path);
}

template <class T, class Specs>
void mark_fields(const Marking& marking, T& value, const Specs& specs, const std::string& path) {
  static_assert(structure::Mapping<Specs>,
                "the specs of a struct must be a map from the names of its fields");
  std::vector<std::string> names;
  visit_fields(value, [&](std::string_view name, auto& field) {
    std::string inner = cat(path, ".", name);
    auto spec = specs.find(names.emplace_back(name));
    if (spec != specs.end())
      mark_each(marking, field, spec->second, inner);
    else if (!structure::tensors(field).empty())
      no_spec_for(marking, inner);
  });
  for (const auto& entry : specs)
    if (!is_one_of(entry.first, names)) no_tensor_for(marking, cat(path, ".", entry.first));
}

template <class T, class Specs>
void mark_entries(const Marking& marking, T& value, const Specs& specs, const std::string& path) {
  static_assert(structure::Mapping<Specs>, "the specs of a map must be a map with the same keys");
  for (auto& [key, element] : value) {
    std::string inner = cat(path, "[\"", key, "\"]");
    auto spec = specs.find(key);
    if (spec == specs.end()) no_spec_for(marking, inner);
    mark_each(marking, element, spec->second, inner);
  }
  for (const auto& [key, spec] : specs)
    if (value.find(key) == value.end()) no_tensor_for(marking, cat(path, "[\"", key, "\"]"));
}

template <class T, class Specs>
void mark_each(const Marking& marking, T& value, const Specs& specs, const std::string& path) {
  if constexpr (std::same_as<Specs, PartitionSpec> || std::same_as<Specs, ShardingSpec>) {
    mark_all(marking, value, specs, path);
  } else if constexpr (HasFields<T>) {
    mark_fields(marking, value, specs, path);
  } else if constexpr (structure::Mapping<T>) {
    mark_entries(marking, value, specs, path);
  } else if constexpr (structure::Sequence<T>) {
    static_assert(structure::Sequence<Specs>,
                  "the specs of a sequence must be a sequence of the same length");
    if (value.size() != specs.size()) other_count(marking, path, value.size(), specs.size());
    std::size_t i = 0;
    auto spec = specs.begin();
    for (auto& element : value) mark_each(marking, element, *spec++, cat(path, "[", i++, "]"));
  } else if constexpr (requires {
                         value.has_value();
                         *value;
                       }) {
    if (value) mark_each(marking, *value, specs, path);
  } else {
    static_assert(structure::TupleLike<T>, "a tensor must have exactly one spec");
    static_assert(std::tuple_size<T>::value == std::tuple_size<Specs>::value,
                  "the specs of a tuple or a pair must be a tuple or a pair with the same number "
                  "of elements");
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (mark_each(marking, std::get<I>(value), std::get<I>(specs), cat(path, "[", I, "]")), ...);
    }
    (std::make_index_sequence<std::tuple_size<T>::value>());
  }
}

}  // namespace meshard::internal

namespace meshard {

/// Specs by name.
using NamedSpecs = std::map<std::string, PartitionSpec>;

/// A copy of a structure in which each tensor is marked by mark_sharding. `specs` is one spec for
/// all tensors, or has the structure of `value` down to any depth; a spec applies to all tensors
/// below its position. It can be a map with the same keys (for a struct with MESHARD_FIELDS, the
/// names of its fields that hold tensors), a sequence of the same length, or a tuple. Numbers are
/// unchanged.
///
/// @code
/// Mesh mesh({{"data", 2}, {"model", 2}});
/// std::map<std::string, Tensor> batch{{"image", ones({4, 8})}, {"label", ones({4})}};
/// batch = mark_sharding(batch, mesh, {{"image", P("data", "model")}, {"label", P("data")}});
/// @endcode
/// @error what mark_sharding throws, with the path of the tensor; a tensor without a spec, a spec
/// without a tensor.
template <class T, class Specs = NamedSpecs>
[[nodiscard]] T mark_sharding(
    T value, const Mesh& mesh, const Specs& specs,
    SourceLocation where = SourceLocation::current()) requires(!std::convertible_to<const T&, In>) {
  internal::mark_each({&mesh, effective_source(where)}, value, specs, {});
  return value;
}

/// The same for specs with meshes of their own: one ShardingSpec, or a structure of them. A
/// PartitionSpec refers to the global mesh. @error also: there is no global mesh.
template <class T, class Specs = std::map<std::string, ShardingSpec>>
[[nodiscard]] T mark_sharding(
    T value, const Specs& specs,
    SourceLocation where = SourceLocation::current()) requires(!std::convertible_to<const T&, In> &&
                                                               !std::same_as<Specs, Mesh>) {
  internal::mark_each({nullptr, effective_source(where)}, value, specs, {});
  return value;
}

}  // namespace meshard
