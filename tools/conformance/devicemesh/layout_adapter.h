// What the layout files need and meshard does not provide: Python's indexing, the normal form of an
// axis, and ranks as nested lists. These are only translations; meshard/layout does the rest.
#pragma once
#include <span>
#include <vector>

#include "tools/conformance/devicemesh/layout_json.h"

namespace meshard::conformance {

/// Element `index` of `count`, counted from the end if negative.
/// @error out of range, as Python's IndexError
std::size_t python_index(std::int64_t index, std::size_t count);

/// Replaces a Python slice `list[start:end]` with `with`.
std::vector<Layout> splice(std::span<const Layout> list, std::int64_t start, std::int64_t end,
                           std::span<const Layout> with);

/// The top-level modes; an integer layout has itself as its only mode.
std::vector<Layout> modes_of(const Layout& layout);

/// An axis in normal form: flat and coalesced; `():()` for one element.
Layout axis_of(const Layout& layout);
std::vector<Layout> axes_of(const Json& json);
Json json_of_axes(std::span<const Layout> axes);

/// All axes as one layout, in normal form.
Layout merged(std::span<const Layout> axes);

/// Whether the strides of an axis never increase from left to right.
bool is_sorted(const Layout& axis);

/// Replaces entry k of `modes` with `modes[k]` composed with the compact layout of `sizes`, which
/// adds one mode for each size.
std::vector<Layout> unflatten(std::span<const Layout> modes, std::size_t k, const IntTuple& sizes);

/// The layouts of a tensor of ranks: the complement within `world` (its rows), followed by `dims`.
std::vector<Layout> with_rows(std::span<const Layout> dims, std::int64_t world);

/// Row by row: the values of `layout` at each offset of its complement.
Json global_ranks(const Layout& layout, std::int64_t world);

/// `{shape, data}` of `rank_map` indexed by `dims`, with a leading dimension of rows.
Json remap(std::span<const Layout> dims, const std::vector<std::int64_t>& rank_map);

}  // namespace meshard::conformance
