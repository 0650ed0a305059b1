// All submeshes of a mesh along some axes.
#pragma once
#include <cstdint>
#include <string_view>

#include "meshard/mesh/mesh.h"

namespace meshard {

/// A view: the submeshes along some axes, one for each index along the remaining axes. They are
/// numbered like DeviceGroups. Each is made when it is accessed.
///
/// ```
/// for (const Mesh& stage : mesh.submeshes({"data", "model"})) run(stage);
/// ```
class Submeshes {
 public:
  class Iterator {
   public:
    using value_type = Mesh;
    using difference_type = std::ptrdiff_t;
    using reference = Mesh;
    using pointer = void;
    using iterator_category = std::input_iterator_tag;
    Iterator() = default;
    Iterator(const Submeshes* all, std::int64_t at) : all_(all), at_(at) {}
    Mesh operator*() const { return (*all_)[at_]; }
    Iterator& operator++() { return ++at_, *this; }
    Iterator operator++(int) { return Iterator(all_, at_++); }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    const Submeshes* all_ = nullptr;
    std::int64_t at_ = 0;
  };

  std::int64_t size() const { return rows_.size(); }
  /// @error i is not in 0..size()-1.
  Mesh operator[](std::int64_t i) const;
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size()}; }

 private:
  friend class Mesh;
  Submeshes(Mesh mesh, Mesh::Axes axes, Digits rows, SourceLocation where)
      : mesh_(std::move(mesh)), axes_(std::move(axes)), rows_(std::move(rows)), where_(where) {}

  Mesh mesh_;
  Mesh::Axes axes_;
  Digits rows_;
  SourceLocation where_;
};

// Compares the sets of devices of two meshes.

enum class Overlap { kNone, kSome, kFirstInSecond, kSecondInFirst, kSame };  ///< How sets overlap.

/// How the sets of devices of two meshes overlap, whatever their axes and roots. Decided by
/// arithmetic if the ids are strided; a rank map that lists its ids costs one pass.
Overlap overlap(const Mesh& first, const Mesh& second);

/// `none`, `some`, `first in second`, `second in first`, `same`.
std::string_view to_string(Overlap overlap);

}  // namespace meshard
