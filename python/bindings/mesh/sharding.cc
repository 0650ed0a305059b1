// Partition specs and shardings.
#include "meshard/sharding/sharding.h"

#include <optional>

#include "meshard/base/error.h"
#include "meshard/sharding/sharding_spec.h"
#include "meshard/stablehlo/shardy_text.h"
#include "python/bindings/arrays/tensors.h"
#include "python/bindings/bindings.h"
#include "python/bindings/interpreter/casters.h"
#include "python/bindings/interpreter/values.h"
#include "python/bindings/mesh/mesh_casters.h"
#include "python/bindings/mesh/mesh_parts.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

using ShardingClass = nb::class_<Sharding>;

constexpr SourceLocation kNoWhere;  // errors get the line of Python (guarded.cc)

std::string sharding_code(const Sharding& sharding) {
  std::string code = cat("Sharding(", mesh_code(sharding.mesh()), ", ", spec_code(sharding.spec()));
  if (!sharding.replicated_axes().empty())
    code += ", replicated=" + axes_code(sharding.replicated_axes());
  if (!sharding.unreduced_axes().empty())
    code += ", unreduced=" + axes_code(sharding.unreduced_axes());
  if (sharding.unreduced_kind() != UnreducedKind::kSum)
    code += cat(", unreduced_kind='", enum_name(sharding.unreduced_kind()), "'");
  return code + ")";
}

UnreducedKind checked_kind(std::string_view text) {
  std::optional<UnreducedKind> kind = unreduced_kind(text);
  if (!kind)
    throw_invalid({}, "[sharding] unreduced_kind is \"sum\", \"max\" or \"min\"; got \"", text,
                  "\"");
  return *kind;
}

using BoxTuple = nb::typed<nb::tuple, nb::slice, nb::ellipsis>;

// Slices that index an array.
BoxTuple box_object(std::span<const DimensionSlice> box) {
  nb::list slices;
  for (const DimensionSlice& each : box)
    slices.append(nb::slice(nb::int_(each.start), nb::int_(each.stop), nb::none()));
  return BoxTuple(nb::tuple(slices));
}

nb::typed<nb::list, BoxTuple> table_object(const SliceTable& table) {
  nb::list boxes;
  for (std::size_t i = 0; i < table.size(); ++i) boxes.append(box_object(table[i]));
  return nb::typed<nb::list, BoxTuple>(boxes);
}

void check_position_in(const Sharding& sharding, std::int64_t position) {
  sharding.mesh().check_position(position);
}

std::size_t dimension_in(const Sharding& sharding, std::int64_t dimension) {
  const auto rank = static_cast<std::int64_t>(sharding.rank());
  if (dimension < -rank || dimension >= rank)
    throw Error(ErrorCode::kOutOfRange,
                cat("[sharding] no dimension ", dimension, " in ", sharding));
  return static_cast<std::size_t>(dimension < 0 ? dimension + rank : dimension);
}

std::int64_t checked_position_of(const Sharding& sharding, const Dimensions& tile,
                                 std::int64_t replica) {
  bool is_inside =
      tile.size() >= sharding.rank() && replica >= 0 && replica < sharding.num_replicas();
  for (std::size_t d = 0; is_inside && d < sharding.rank(); ++d)
    is_inside = tile[d] >= 0 && tile[d] < sharding.num_tiles(d);
  if (!is_inside)
    throw Error(ErrorCode::kOutOfRange, cat("[sharding] no replica ", replica, " of tile ",
                                            IntTuple::flat(tile), " in ", sharding));
  return sharding.position_of(tile, replica);
}

void bind_spec(nb::module_& module) {
  nb::class_<UnconstrainedType> open(module, "Unconstrained", "The type of UNCONSTRAINED.");
  bind_copies(open);
  open.def("__repr__", [](const UnconstrainedType&) { return "UNCONSTRAINED"; })
      .def("__reduce__", [](const UnconstrainedType&) { return "UNCONSTRAINED"; });
  module.attr("UNCONSTRAINED") = unconstrained_object();

  nb::class_<PartitionSpec> type(
      module, "PartitionSpec",
      R"(Which mesh axes split which dimension of a tensor, first dimension first.

    P("data", None)              # "data" splits dimension 0; dimension 1 is not split
    P(("x", "y"), UNCONSTRAINED) # "x" and "y" split dimension 0, "x" the more significant;
                                 # the compiler may split dimension 1
    P(0, None)                   # the first axis of the mesh
    P(("x", UNCONSTRAINED))      # "x" and what the compiler adds

It may be shorter than the tensor's rank: the remaining dimensions are not split. `P` is short
for PartitionSpec. P("x") and P("x", None) differ, and so do P(0) and P("x").

    >>> spec = ms.P(("data", "model"), None)
    >>> spec.axes(0), len(spec), spec[1]
    (('data', 'model'), 2, None)

Error: a dimension that is none of these; UNCONSTRAINED that is not the last of its tuple.)");
  bind_value(type);
  bind_items(
      type, [](const PartitionSpec& spec, std::size_t i) { return dimension_object(spec[i]); },
      "What splits a dimension: None, an axis, a tuple of axes, or UNCONSTRAINED.");
  type.def("__init__",
           [](PartitionSpec* self, const nb::args& dimensions) {
             PartitionSpec spec;
             if (!load_spec(dimensions.ptr(), spec)) throw_not_spec(dimensions);
             new (self) PartitionSpec(std::move(spec));
           })
      .def("__hash__", python_hash<PartitionSpec>)
      .def("__repr__", spec_code)
      .def(
          "axes",
          [](const PartitionSpec& spec, std::size_t dimension) {
            return dimension < spec.size() ? spec[dimension].axes() : AxisList();
          },
          nb::arg("dimension"), "The axes that split a dimension, as a tuple.")
      .def(
          "is_open",
          [](const PartitionSpec& spec, std::size_t dimension) {
            return dimension < spec.size() && spec[dimension].is_open();
          },
          nb::arg("dimension"), "True if the compiler may split the dimension further.");
  type.attr("UNCONSTRAINED") = unconstrained_object();
}

void bind_sharding_construction(ShardingClass& type) {
  type.def(
          "__init__",
          [](Sharding* self, const Mesh& mesh, const PartitionSpec& spec,
             std::optional<std::size_t> ndim, const AxisList& replicated, const AxisList& unreduced,
             std::string_view unreduced_kind) {
            Sharding made =
                ndim ? Sharding(mesh, spec, *ndim, kNoWhere) : Sharding(mesh, spec, kNoWhere);
            if (!replicated.empty()) made = made.with_replicated(replicated, kNoWhere);
            const UnreducedKind kind = checked_kind(unreduced_kind);
            if (unreduced.empty() && kind != UnreducedKind::kSum)
              throw_invalid({}, "[sharding] unreduced_kind=\"", unreduced_kind,
                            "\" says how unreduced axes are reduced, and unreduced=() has none");
            if (!unreduced.empty()) made = made.with_unreduced(unreduced, kind, kNoWhere);
            new (self) Sharding(std::move(made));
          },
          nb::sig("def __init__(self, mesh: Mesh, spec: PartitionSpec | tuple | list, "
                  "ndim: int | None = None, *, "
                  "replicated: str | int | AxisRef | collections.abc.Sequence[str | int | AxisRef] "
                  "= (), "
                  "unreduced: str | int | AxisRef | collections.abc.Sequence[str | int | AxisRef] "
                  "= (), "
                  "unreduced_kind: str = 'sum') -> None"),
          nb::arg("mesh"), nb::arg("spec"), nb::arg("ndim").none() = nb::none(), nb::kw_only(),
          nb::arg("replicated") = nb::tuple(), nb::arg("unreduced") = nb::tuple(),
          nb::arg("unreduced_kind") = "sum")
      .def(
          "__init__",
          [](Sharding* self, nb::handle sharding) {
            if (!nb::hasattr(sharding, "mesh") || !nb::hasattr(sharding, "spec"))
              throw_invalid({},
                            "[sharding] Sharding takes a mesh and a spec, or JAX's "
                            "NamedSharding; got ",
                            repr_text(sharding));
            nb::object given = sharding.attr("spec");
            PartitionSpec spec;
            AxisList unreduced;
            UnreducedKind kind;
            if (!is_spec_of_jax(given.ptr()) ||
                !load_spec_of_jax(given.ptr(), spec, unreduced, kind))
              throw_not_spec(given);
            Sharding made(mesh_of(sharding.attr("mesh"), nb::none(), nb::none(), {}), spec,
                          kNoWhere);
            new (self)
                Sharding(unreduced.empty() ? made : made.with_unreduced(unreduced, kind, kNoWhere));
          },
          nb::arg("sharding"))
      .def_static("replicated", &Sharding::replicated, nb::arg("mesh"), nb::arg("ndim"),
                  "The sharding with the whole tensor on every device of the mesh.")
      .def(
          "with_replicated",
          [](const Sharding& sharding, const AxisList& axes) {
            return sharding.with_replicated(axes, kNoWhere);
          },
          nb::arg("axes"),
          "The same with these axes explicitly replicated: the compiler must not use them for open "
          "dimensions.")
      .def(
          "with_unreduced",
          [](const Sharding& sharding, const AxisList& axes, std::string_view kind) {
            return sharding.with_unreduced(axes, checked_kind(kind), kNoWhere);
          },
          nb::arg("axes"), nb::arg("kind") = "sum",
          "The same with these axes unreduced: the value is the sum of the shards along them, or, "
          "with the kind `max` or `min`, their maximum or minimum.")
      .def(
          "with_ndim",
          [](const Sharding& sharding, std::size_t ndim) {
            return sharding.with_rank(ndim, kNoWhere);
          },
          nb::arg("ndim"),
          "The same with closed, unsplit dimensions appended.\n\nError: fewer dimensions than "
          "now.");
}

void bind_sharding_fields(ShardingClass& type) {
  type.def_prop_ro("mesh", &Sharding::mesh,
                   "The mesh: for axes of a derived mesh, its base, or a new root.")
      .def_prop_ro("spec", &Sharding::spec, "The partition spec, with an entry per dimension.")
      .def_prop_ro("ndim", &Sharding::rank, "The number of dimensions described.")
      .def(
          "axes",
          [](const Sharding& sharding, std::int64_t dimension) {
            return sharding.axes(dimension_in(sharding, dimension));
          },
          nb::arg("dimension"), "The axes that split a dimension, as a tuple.")
      .def(
          "is_open",
          [](const Sharding& sharding, std::int64_t dimension) {
            return sharding.is_open(dimension_in(sharding, dimension));
          },
          nb::arg("dimension"), "True if the compiler may split the dimension further.")
      .def_prop_ro("replicated_axes", &Sharding::replicated_axes,
                   "The explicitly replicated axes, in mesh order.")
      .def_prop_ro("unreduced_axes", &Sharding::unreduced_axes,
                   "The unreduced axes, over which the shards are not combined yet, in mesh order.")
      .def_prop_ro(
          "unreduced_kind",
          [](const Sharding& sharding) { return enum_name(sharding.unreduced_kind()); },
          "How the shards along the unreduced axes make the value: `sum`, `max` or `min`.")
      .def_prop_ro("unused_axes", &Sharding::unused_axes,
                   "The axes that split no dimension, in mesh order: replicated or unreduced.")
      .def_prop_ro("is_fully_replicated", &Sharding::is_fully_replicated,
                   "True if every device holds the whole tensor.")
      .def(
          "num_tiles",
          [](const Sharding& sharding, std::optional<std::size_t> dimension) {
            return dimension ? sharding.num_tiles(*dimension) : sharding.num_tiles();
          },
          nb::arg("dimension").none() = nb::none(),
          "The number of tiles of a dimension (1 beyond `ndim`), or of the tensor.")
      .def_prop_ro("num_replicas", &Sharding::num_replicas,
                   "The number of devices that hold each tile.");
}

void bind_parts(ShardingClass& type) {
  type.def(
          "tile_index",
          [](const Sharding& sharding, std::size_t dimension, std::int64_t position) {
            check_position_in(sharding, position);
            return sharding.tile_index(dimension, position);
          },
          nb::arg("dimension"), nb::arg("position"),
          "The index of the tile of a dimension that a position of the mesh holds.")
      .def(
          "shard_shape",
          [](const Sharding& sharding, const Dimensions& shape) {
            return sharding.shard_shape(shape);
          },
          nb::arg("shape"),
          "The shape of one shard: the size divided by the tiles, rounded up, in each dimension."
          "\n\nError: fewer dimensions than `ndim`; a negative size.")
      .def(
          "padded_shape",
          [](const Sharding& sharding, const Dimensions& shape) {
            return sharding.padded_shape(shape);
          },
          nb::arg("shape"),
          "The shape after padding to even sizes: shard size times tiles in each dimension.")
      .def(
          "is_even",
          [](const Sharding& sharding, const Dimensions& shape) { return sharding.is_even(shape); },
          nb::arg("shape"), "True if no dimension needs padding.")
      .def(
          "slice",
          [](const Sharding& sharding, const Dimensions& shape, std::int64_t position) {
            Box box = sharding.slice(shape, position);
            return box_object({box.data(), box.size()});
          },
          nb::arg("shape"), nb::arg("position"),
          nb::sig("def slice(self, shape: int | collections.abc.Sequence[int], position: int) -> "
                  "tuple[typing.Any, ...]"),
          "The part of a tensor that a position of the mesh holds, as slices that index an array. "
          "One of the last shards can be empty.")
      .def(
          "slices",
          [](const Sharding& sharding, const Dimensions& shape) {
            return table_object(sharding.slices(shape));
          },
          nb::arg("shape"),
          nb::sig("def slices(self, shape: int | collections.abc.Sequence[int]) -> "
                  "list[tuple[typing.Any, ...]]"),
          "`slice` of every position, in mesh order.")
      .def(
          "distinct_slices",
          [](const Sharding& sharding, const Dimensions& shape) {
            return table_object(sharding.distinct_slices(shape));
          },
          nb::arg("shape"),
          nb::sig("def distinct_slices(self, shape: int | collections.abc.Sequence[int]) -> "
                  "list[tuple[typing.Any, ...]]"),
          "The distinct slices in ascending (row-major) order. Empty tiles of one dimension count "
          "as one.")
      .def(
          "replica_id",
          [](const Sharding& sharding, std::int64_t position,
             const std::optional<Dimensions>& shape) {
            check_position_in(sharding, position);
            return shape ? sharding.replica_id(*shape, position) : sharding.replica_id(position);
          },
          nb::arg("position"), nb::arg("shape").none() = nb::none(),
          "The number of earlier positions that hold the same tile; with a shape, the same slice, "
          "which differs where slices are empty.")
      .def("position_of", checked_position_of, nb::arg("tile"), nb::arg("replica") = 0,
           "The position that holds a replica of a tile, which is given by its index in each "
           "dimension.")
      .def("is_equivalent_to", &Sharding::is_equivalent_to, nb::arg("other"), nb::arg("ndim"),
           "True if the two are interchangeable in a program, for tensors of `ndim` dimensions: "
           "the same devices in the same order, with the same part on each, and the same unreduced "
           "axes.\n\nError: either describes more dimensions.")
      .def("same_placement", &Sharding::same_placement, nb::arg("other"), nb::arg("ndim"),
           "True if each device holds the same part, so that no data has to move. The order of the "
           "devices does not matter.\n\nError: either describes more dimensions.");
}

// The shape of a tensor, or the shape itself.
Dimensions shape_given(nb::handle object) {
  if (const Tensor* tensor = tensor_in(object.ptr())) {
    const Shape shape = tensor->shape();
    return shape.sizes();
  }
  Dimensions shape;
  if (!load_dimensions(object.ptr(), shape))
    throw_invalid({}, "[sharding spec] expected a shape or a tensor; got ", repr_text(object));
  return shape;
}

void bind_sharding_spec(nb::module_& module) {
  nb::class_<ShardingSpec> type(
      module, "ShardingSpec",
      "A mesh and a partition spec for tensors that do not exist yet, such as the batches of a "
      "data loader. In a minibatch, dimension 0 is the batch, which is split evenly over all "
      "devices of the mesh.");
  bind_value(type);
  type.def(
          "__init__",
          [](ShardingSpec* self, const Mesh& mesh, const PartitionSpec& spec, bool minibatch) {
            new (self) ShardingSpec(minibatch ? ShardingSpec::minibatch(mesh, spec, kNoWhere)
                                              : ShardingSpec(mesh, spec, kNoWhere));
          },
          nb::sig("def __init__(self, mesh: Mesh, spec: PartitionSpec | tuple | list, *, "
                  "minibatch: bool = False) -> None"),
          nb::arg("mesh"), nb::arg("spec"), nb::kw_only(), nb::arg("minibatch") = false)
      .def("__hash__",
           [](const ShardingSpec& spec) {
             return static_cast<Py_hash_t>(std::hash<std::string>()(spec.to_string()) >> 1);
           })
      .def("__repr__",
           [](const ShardingSpec& spec) {
             return cat("ShardingSpec(", mesh_code(spec.mesh()), ", ", spec_code(spec.spec()),
                        spec.is_minibatch() ? ", minibatch=True)" : ")");
           })
      .def_prop_ro("mesh", &ShardingSpec::mesh, "The mesh.")
      .def_prop_ro("spec", &ShardingSpec::spec, "The partition spec.")
      .def_prop_ro("is_minibatch", &ShardingSpec::is_minibatch,
                   "True if dimension 0 is split evenly over all devices.")
      .def(
          "can_apply",
          [](const ShardingSpec& spec, nb::handle shape) {
            return spec.find_sharding(shape_given(shape)).has_value();
          },
          nb::arg("shape"), "True if `sharding` succeeds for this shape or tensor.")
      .def(
          "sharding",
          [](const ShardingSpec& spec, nb::handle shape) {
            return spec.sharding(shape_given(shape), kNoWhere);
          },
          nb::arg("shape"),
          "The sharding of a tensor of this shape, or of this tensor.\n\nError: more dimensions in "
          "the spec than in the tensor; a minibatch whose rows do not divide evenly; an uneven "
          "dimension on a mesh that rejects uneven sizes.")
      .def(
          "find_sharding",
          [](const ShardingSpec& spec, nb::handle shape) {
            return spec.find_sharding(shape_given(shape));
          },
          nb::arg("shape"), "The same, but None instead of an error.");
}

}  // namespace

void bind_sharding(nb::module_& module) {
  bind_spec(module);
  ShardingClass type(module, "Sharding",
                     R"(How one tensor is distributed over a mesh: an immutable value.

    Sharding(mesh, P("data", None))             # dimension 0 is split along "data"
    Sharding(mesh, P("data"), ndim=3)           # of three dimensions
    Sharding(mesh, P(), 2, unreduced=("model",)) # the value is the sum of the shards along "model"
    Sharding(jax.sharding.NamedSharding(...))   # JAX's

A dimension that is split into n tiles has shards of its size divided by n, rounded up; the last
ones may be shorter or empty.

    >>> mesh = ms.Mesh({"data": 2, "model": 4})
    >>> sharding = ms.Sharding(mesh, ms.P("data", None))
    >>> sharding
    Sharding(Mesh({'data': 2, 'model': 4}), P('data', None))
    >>> sharding.num_replicas, sharding.is_fully_replicated
    (4, False)

Error: an axis that the mesh does not have, or that is used twice; a sub-axis that does not
divide its axis; a spec longer than `ndim`.)");
  bind_value(type);
  bind_sharding_construction(type);
  bind_sharding_fields(type);
  bind_parts(type);
  type.def("__hash__", python_hash<Sharding>).def("__repr__", sharding_code);
  bind_sharding_spec(module);
  bind_placements(module);
  bind_tiles(module);
}

}  // namespace meshard::python
