// The algebra of layouts, and functions of tuples of integers.
#include <optional>

#include "meshard/base/error.h"
#include "meshard/layout/algebra.h"
#include "meshard/layout/int_tuple.h"
#include "meshard/layout/modes.h"
#include "meshard/layout/values.h"
#include "python/bindings/mesh/layout_casters.h"
#include "python/bindings/mesh/mesh_parts.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

using IntegerList = std::vector<std::int64_t>;

const IntTuple& sizes_in(const IntTuple& shape) {
  for (std::int64_t size : shape.leaves())
    if (size < 1) throw_invalid({}, "[layout] a size below 1 in shape ", shape);
  return shape;
}

const IntTuple& without_hole(const IntTuple& tuple) {
  if (has_hole(tuple)) throw_invalid({}, "[layout] the tuple ", tuple, " has a hole");
  return tuple;
}

void bind_coordinates(nb::module_& module) {
  module.def(
      "coordinate_of",
      [](const IntTuple& shape, std::int64_t index) {
        if (index < 0) throw_invalid({}, "[coordinate] the index ", index, " is negative");
        return coordinate_of(sizes_in(shape), index);
      },
      nb::arg("shape"), nb::arg("index"),
      "The coordinate of an index in a shape, with the nesting of the shape. Indices at or above "
      "the shape's product continue along the first mode.");
  module.def(
      "coordinate_of",
      [](const IntTuple& shape, const IntTuple& stride, const IntTuple& index) {
        for (std::int64_t each : index.leaves())
          if (each < 0) throw_invalid({}, "[coordinate] a negative index in ", index);
        return coordinate_of(sizes_in(shape), stride, index);
      },
      nb::arg("shape"), nb::arg("stride"), nb::arg("index"),
      "The coordinate at which the layout shape:stride has the value `index`: (index / stride) "
      "modulo size for each integer. If `index` is a tuple, each element applies to one mode."
      "\n\nError: the nestings do not match; a stride below 1.");
  module.def(
      "index_of",
      [](const IntTuple& shape, const IntTuple& coordinate) {
        return index_of(shape, without_hole(coordinate));
      },
      nb::arg("shape"), nb::arg("coordinate"),
      "The index of a coordinate in a shape. An element may be the index of a whole nested mode."
      "\n\nError: the coordinate does not match the shape's nesting.");
  module.def(
      "value_of",
      [](const IntTuple& coordinate, const IntTuple& shape, const IntTuple& stride) {
        return value_of(coordinate, sizes_in(shape), stride);
      },
      nb::arg("coordinate").none(), nb::arg("shape"), nb::arg("stride"),
      "The value of the layout shape:stride at a coordinate. An element may be the index of a "
      "whole nested mode; None counts as 0.\n\nError: the coordinate or the stride does not match "
      "the shape's nesting.");
  module.def(
      "convert_coordinate",
      [](const IntTuple& coordinate, const IntTuple& destination, nb::handle source) {
        std::optional<IntTuple> from;
        if (!source.is_none() && !load_int_tuple(source.ptr(), from.emplace()))
          throw_not_int_tuple(source);
        return convert_coordinate(without_hole(coordinate), sizes_in(destination), from);
      },
      nb::arg("coordinate"), nb::arg("destination"), nb::arg("source").none() = nb::none(),
      "Converts a coordinate to the nesting of the shape `destination`. An integer is an index. A "
      "tuple is converted to an index, if the destination is an integer, by `source`, the shape "
      "that the tuple belongs to.\n\nError: the nestings do not match; an index that is not below "
      "the destination's size; a tuple for an integer destination without a source.");
}

void bind_tuples(nb::module_& module) {
  module.def(
      "product", [](const IntTuple& tuple) { return without_hole(tuple).product(); },
      nb::arg("tuple"), "The product of all integers; 1 for ().");
  module.def(
      "inner_product",
      [](const IntTuple& a, const IntTuple& b) {
        return inner_product(without_hole(a), without_hole(b));
      },
      nb::arg("a"), nb::arg("b"),
      "The sum of the products of corresponding integers.\n\nError: a and b differ in nesting.");
  module.def(
      "elementwise_product",
      [](const IntTuple& a, const IntTuple& b) {
        return elementwise_product(without_hole(a), without_hole(b));
      },
      nb::arg("a"), nb::arg("b"),
      "The products of corresponding integers, nested like `a`. Where `a` has an integer and `b` a "
      "tuple, the tuple counts as its product.\n\nError: b does not match a's nesting.");
  module.def(
      "largest", [](const IntTuple& tuple) { return largest(without_hole(tuple)); },
      nb::arg("tuple"), "The largest integer; 0 for ().");
  module.def(
      "signs", [](const IntTuple& tuple) { return signs(without_hole(tuple)); }, nb::arg("tuple"),
      "The sign (-1, 0 or 1) of each integer, nested like `tuple`.");
  module.def(
      "shape_divide",
      [](const IntTuple& a, const IntTuple& b) {
        return shape_divide(sizes_in(a), sizes_in(b)).value();
      },
      nb::arg("a"), nb::arg("b"),
      "Shape `a` divided by `b`, rounded up: the number of groups of `b` indices. A tuple b "
      "divides integer by integer. An integer b divides the integers of a from left to right: "
      "(3, 4) by 6 is (1, 2).\n\nError: two corresponding integers where neither divides the "
      "other; b does not match a's nesting.");
  module.def(
      "compact_stride",
      [](const IntTuple& shape, const IntTuple& start) {
        return compact_stride(sizes_in(shape), without_hole(start));
      },
      nb::arg("shape"), nb::arg("start") = 1,
      "The strides of the compact row-major layout of a shape; the last stride is `start`. If "
      "`start` is a tuple, each element applies to one mode.\n\nError: start does not match "
      "shape's nesting.");
}

// A function of a layout, by mode if a profile is given.
template <class Whole, class ByMode>
void bind_by_mode(nb::module_& module, const char* name, Whole whole, ByMode by_mode,
                  const char* doc) {
  module.def(
      name,
      [whole, by_mode](const Layout& layout, nb::handle profile) {
        if (profile.is_none()) return whole(layout);
        IntTuple loaded;
        if (!load_int_tuple(profile.ptr(), loaded)) throw_not_int_tuple(profile);
        return by_mode(layout, loaded);
      },
      nb::arg("layout"), nb::arg("profile").none() = nb::none(), doc);
}

template <Result<Layout> (*function)(const Layout&, const Tiler&)>
Layout tiled_value(const Layout& a, const Tiler& b) {
  return function(a, b).value();
}

void bind_tilings(nb::module_& module) {
  module.def("composition", tiled_value<composition>, nb::arg("a"), nb::arg("b").none(),
             R"(The composition of `a` after `b`: the function i -> a(b(i)), nested like b.

`b` may be a tiler: None leaves `a`; an integer n is n:1; a tuple has a tiler for each of a's
first modes.

Error: the composition is not a layout (the message names the mode, and the sizes or strides
that would work); a negative stride in b; a tuple with more elements than a has modes.)");
  module.def("logical_divide", tiled_value<logical_divide>, nb::arg("a"), nb::arg("b").none(),
             R"(Divides `a` into the tiles that `b` describes: `a` after (b, complement(b, a.size)).

Mode 0 steps within a tile, mode 1 from tile to tile. With a tuple, each of a's first modes is
divided by its element.

Error: errors of complement and composition; a tuple with more elements than a has modes.)");
  module.def("zipped_divide", tiled_value<zipped_divide>, nb::arg("a"), nb::arg("b").none(),
             "logical_divide with the tiles collected in mode 0 and the rest in mode 1: ((tile, "
             "tile, ...), (rest, rest, ..., other modes)).\n\nError: as logical_divide.");
  module.def("tiled_divide", tiled_value<tiled_divide>, nb::arg("a"), nb::arg("b").none(),
             "zipped_divide with its result (first, (second, third, ...)) as (first, second, "
             "third, ...).\n\nError: as logical_divide.");
  module.def("logical_product", tiled_value<logical_product>, nb::arg("a"), nb::arg("b").none(),
             R"(Repeats `a` at the positions of `b`: (a, complement(a, a.size * b.cosize) after b).

Mode 0 steps within one copy of `a`, mode 1 from copy to copy. With a tuple, each of a's first
modes is multiplied by its element.

Error: an integer, which has no meaning here; errors of complement and composition; a tuple with
more elements than a has modes.)");
  module.def("zipped_product", tiled_value<zipped_product>, nb::arg("a"), nb::arg("b").none(),
             "logical_product with the modes of `a` collected in mode 0 and the copies in mode 1: "
             "((mode, mode, ...), (copies, copies, ..., other modes)).\n\nError: as "
             "logical_product.");
  module.def("tiled_product", tiled_value<tiled_product>, nb::arg("a"), nb::arg("b").none(),
             "zipped_product with its result (first, (second, third, ...)) as (first, second, "
             "third, ...).\n\nError: as logical_product.");
}

void bind_shapes(nb::module_& module) {
  bind_by_mode(
      module, "coalesce", [](const Layout& layout) { return coalesce(layout); },
      [](const Layout& layout, const IntTuple& profile) {
        return coalesce(layout, profile).value();
      },
      "The same function with as few modes as possible. Layouts of equal size are the same "
      "function exactly if they coalesce to the same layout. With a profile: mode by mode.\n\n"
      "Error: the profile has more elements than the layout has modes.");
  bind_by_mode(
      module, "filter", [](const Layout& layout) { return filter(layout); },
      [](const Layout& layout, const IntTuple& profile) { return filter(layout, profile).value(); },
      "The coalesced layout of the modes whose size is not 1 and whose stride is not 0. With a "
      "profile: mode by mode.\n\nError: the profile has more elements than the layout has modes.");
  module.def(
      "flatten", [](const Layout& layout) { return flatten(layout); }, nb::arg("layout"),
      "The same function with one mode for each integer of the shape.");
  module.def(
      "flatten", [](const IntTuple& tuple) { return flatten(tuple); }, nb::arg("tuple"),
      "The tuple of all integers, left to right.");
  module.def(
      "concatenate", [](const std::vector<Layout>& layouts) { return concatenate(layouts); },
      nb::arg("layouts"),
      "The layout whose mode k is layouts[k].\n\nError: size or cosize do not fit 64 bits.");
  module.def(
      "permute",
      [](const Layout& layout, const IntegerList& order) { return permute(layout, order); },
      nb::arg("layout"), nb::arg("order"),
      "The layout whose mode k is mode order[k].\n\nError: `order` does not hold each of 0 to "
      "rank-1 once.");
  module.def(
      "split",
      [](const Layout& layout, const IntegerList& sizes) { return split(layout, sizes).value(); },
      nb::arg("layout"), nb::arg("sizes"),
      "The same function with one mode for each of `sizes`, outermost first.\n\nError: a size is "
      "below 1; the product is not layout.size; the boundary between two sizes cuts a mode "
      "unevenly.");
  module.def(
      "slice",
      [](const Layout& layout, const IntTuple& coordinate) { return slice(layout, coordinate); },
      nb::arg("layout"), nb::arg("coordinate").none(),
      "The layout of the modes where the coordinate is None.\n\nError: the coordinate does not "
      "match the shape's nesting.");
  module.def(
      "slice",
      [](const IntTuple& tuple, const IntTuple& coordinate) { return slice(tuple, coordinate); },
      nb::arg("tuple"), nb::arg("coordinate").none(),
      "The elements of a tuple where the coordinate is None.");
  module.def(
      "slice_and_offset",
      [](const Layout& layout, const IntTuple& coordinate) {
        OffsetLayout sliced = slice_and_offset(layout, coordinate);
        return std::pair(std::move(sliced.layout), sliced.offset);
      },
      nb::arg("layout"), nb::arg("coordinate").none(),
      "The slice, and the value of the fixed part of the coordinate as its offset.");
}

}  // namespace

void bind_layout_algebra(nb::module_& module) {
  bind_shapes(module);
  bind_tilings(module);
  bind_coordinates(module);
  bind_tuples(module);
  module.def(
      "complement",
      [](const Layout& layout, std::int64_t cotarget) {
        return complement(layout, cotarget).value();
      },
      nb::arg("layout"), nb::arg("cotarget"),
      "The coalesced layout of the offsets at which copies of `layout` fill 0 to cotarget-1. Modes "
      "of stride 0 are ignored.\n\nError: modes interlock; a negative stride; cotarget below 1.");
  module.def(
      "left_inverse", [](const Layout& layout) { return left_inverse(layout).value(); },
      nb::arg("layout"),
      "The coalesced layout that maps the values of `layout` to their indices, as far as "
      "its modes nest.\n\nError: a mode that is wholly within the reach of the next smaller "
      "stride; a negative stride.");
  module.def(
      "right_inverse", [](const Layout& layout) { return right_inverse(layout); },
      nb::arg("layout"),
      "The coalesced layout of the indices at which `layout` has the values 0, 1, ...");
  module.def(
      "from_values",
      [](const IntegerList& values) {
        if (values.empty()) throw_invalid({}, "[layout] from_values needs at least one value");
        return from_values(values);
      },
      nb::arg("values"),
      "The coalesced layout L with L(i) = values[i] - values[0] for all i, or None.");
  module.def(
      "is_injective", [](const Layout& layout) { return is_injective(layout); }, nb::arg("layout"),
      "True if no two indices have the same value.");
  module.def(
      "is_orthogonal", [](const Layout& layout) { return is_orthogonal(layout); },
      nb::arg("layout"),
      "True if each mode counts whole blocks of the modes with smaller strides.");
  module.def(
      "are_disjoint",
      [](const Layout& a, const Layout& b, std::int64_t offset) {
        return are_disjoint(a, b, offset);
      },
      nb::arg("a"), nb::arg("b"), nb::arg("offset") = 0,
      "True if no value of `a` equals a value of `b` plus `offset`.");
  module.def(
      "same_function", [](const Layout& a, const Layout& b) { return same_function(a, b); },
      nb::arg("a"), nb::arg("b"), "True if a and b have equal sizes and equal values.");
}

}  // namespace meshard::python
