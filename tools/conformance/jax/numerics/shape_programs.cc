// Reshaping, slicing, joining and creating arrays.
#include "meshard/meshard.h"
#include "tools/conformance/jax/numerics/programs.h"

namespace meshard::conformance {
namespace {

// Reads `[0:5:2, 1:4]`, a NumPy index.
std::optional<std::vector<IndexItem>> items_of(std::string_view what) {
  std::size_t begin = what.find('['), end = what.find(']', begin);
  if (begin == std::string_view::npos || end == std::string_view::npos) return std::nullopt;
  std::vector<IndexItem> items;
  std::string_view rest = what.substr(begin + 1, end - begin - 1);
  while (!rest.empty()) {
    std::size_t comma = std::min(rest.find(','), rest.size());
    std::string_view part = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    std::vector<RangeBound> bounds;
    std::size_t colons = 0;
    for (std::size_t at = 0; at <= part.size();) {
      std::size_t colon = std::min(part.find(':', at), part.size());
      std::vector<std::int64_t> number = integers_in(part.substr(at, colon - at));
      bounds.push_back(number.empty() ? RangeBound(none) : RangeBound(number[0]));
      colons += colon < part.size();
      at = colon + 1;
    }
    if (colons == 0 && mentions(part, "...")) {
      items.emplace_back(ellipsis);
    } else if (colons == 0) {
      if (!bounds[0].value) return std::nullopt;
      items.emplace_back(*bounds[0].value);
    } else {
      std::int64_t stride = bounds.size() > 2 && bounds[2].value ? *bounds[2].value : 1;
      items.emplace_back(range(bounds[0], bounds[1], stride));
    }
  }
  return items;
}

// Reads `reverse both`, `reverse axis 1`.
Program reversal(const std::string& what) {
  std::vector<std::int64_t> axes = integers_in(what);
  return single([axes](Inputs x) {
    return axes.empty() ? flip(x[0])
                        : flip(x[0], DimensionList(Dimensions(axes.begin(), axes.end())));
  });
}

std::optional<Program> made(const std::string& id, const std::string& what, const Json& test) {
  std::vector<std::int64_t> numbers = integers_in(what);
  if (id.starts_with("iota")) {
    std::int64_t dimension = integer_behind(what, "dim", 0);
    return single([dimension, dtype = result_dtype(test), shape = result_shape(test)](Inputs) {
      return iota(dtype, shape, dimension);
    });
  }
  if (id.starts_with("eye"))
    return single([dtype = result_dtype(test), shape = result_shape(test)](Inputs) {
      return eye(shape[0], shape[1], 0, dtype);
    });
  if (id.starts_with("one_hot")) {
    Shape shape = result_shape(test);
    return single([classes = shape[shape.rank() - 1], dtype = result_dtype(test)](Inputs x) {
      return one_hot(x[0], classes, dtype);
    });
  }
  return std::nullopt;
}

// Uses the recorded shape of the result: reshape, squeeze and expand_dims have the same values.
std::optional<Program> rearranged(const std::string& id, const std::string& what,
                                  const Json& test) {
  for (const char* family : {"reshape", "squeeze", "expand_dims", "ravel", "flatten"})
    if (id.starts_with(family))
      return single([to = result_shape(test)](Inputs x) { return reshape(x[0], to); });
  if (id.starts_with("broadcast")) {
    std::int64_t dimension = integer_behind(what, "dim", -1);
    return single([dimension, to = result_shape(test)](Inputs x) {
      return dimension < 0 ? broadcast_to(x[0], to) : broadcast_in_dim(x[0], to, {dimension});
    });
  }
  if (id.starts_with("transpose")) {
    std::vector<std::int64_t> order = integers_in(what);
    return single([order](Inputs x) {
      std::int64_t rank = x[0].rank();
      // Reads `perm 2,0,1`, possibly after other numbers; without it, reverses all dimensions.
      Dimensions dims;
      auto given = static_cast<std::int64_t>(order.size());
      for (std::int64_t d = 0; d < rank; ++d)
        dims.push_back(given < rank ? rank - 1 - d
                                    : order[static_cast<std::size_t>(given - rank + d)]);
      return permute_dims(x[0], dims);
    });
  }
  if (id.starts_with("swapaxes") || id.starts_with("moveaxis")) {
    std::vector<std::int64_t> axes = integers_in(what);
    if (axes.size() < 2) return std::nullopt;
    return single([axes, swap = id.starts_with("swap")](Inputs x) {
      return swap ? swapaxes(x[0], axes[0], axes[1]) : moveaxis(x[0], axes[0], axes[1]);
    });
  }
  return std::nullopt;
}

}  // namespace

std::optional<Program> shape_program(const Json& test) {
  const std::string id = test.at("id"), what = test.at("what");
  std::int64_t axis = integer_behind(what, "axis", 0);
  std::vector<std::int64_t> numbers = integers_in(what);
  if (auto found = rearranged(id, what, test)) return found;
  if (auto found = made(id, what, test)) return found;
  if (id.starts_with("concat"))
    return single([axis](Inputs x) { return concat({x.begin(), x.end()}, axis); });
  if (id.starts_with("stack"))
    return single([axis](Inputs x) { return stack({x.begin(), x.end()}, axis); });
  if (id.starts_with("split"))
    return [axis, parts = static_cast<std::int64_t>(test.at("outputs").size())](Inputs x) {
      return split(x[0], parts, axis);
    };
  if (id.starts_with("slice"))
    if (auto items = items_of(what))
      return single([items](Inputs x) { return index(x[0], *items); });
  if (id.starts_with("rev") || id.starts_with("flip")) return reversal(what);
  if (id.starts_with("tile") && !numbers.empty())
    return single(
        [numbers](Inputs x) { return tile(x[0], Dimensions(numbers.begin(), numbers.end())); });
  if (id.starts_with("repeat") && !numbers.empty())
    return single([numbers, axis](Inputs x) { return repeat(x[0], numbers[0], axis); });
  if (id.starts_with("roll") && !numbers.empty())
    return single([numbers, axis](Inputs x) { return roll(x[0], numbers[0], axis); });
  if (id.starts_with("diag"))
    return single(
        [offset = integer_behind(what, "offset", 0)](Inputs x) { return diagonal(x[0], offset); });
  if (id == "tril_triu" && numbers.size() == 2)
    return [numbers](Inputs x) { return Tensors{tril(x[0], numbers[0]), triu(x[0], numbers[1])}; };
  return std::nullopt;
}

}  // namespace meshard::conformance
