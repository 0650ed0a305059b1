// Shardings in XLA's and Shardy's forms, and the replica groups of collectives.
#include <optional>

#include "meshard/base/error.h"
#include "meshard/mesh/dict_text.h"
#include "meshard/sharding/op_sharding.h"
#include "meshard/sharding/replica_groups.h"
#include "meshard/sharding/tile_assignment.h"
#include "meshard/sharding/tile_grid.h"
#include "meshard/stablehlo/shardy_text.h"
#include "python/bindings/interpreter/casters.h"
#include "python/bindings/interpreter/values.h"
#include "python/bindings/mesh/layout_casters.h"
#include "python/bindings/mesh/mesh_casters.h"
#include "python/bindings/mesh/mesh_parts.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

using Integers = std::vector<std::int64_t>;

TileKind tile_kind_named(std::string_view name) {
  for (TileKind kind : {TileKind::kReplicated, TileKind::kMaximal, TileKind::kTiled,
                        TileKind::kManual, TileKind::kUnknown, TileKind::kUnreduced})
    if (to_string(kind) == name) return kind;
  throw_invalid({}, "[tile_assignment] no kind ", quoted(name),
                "; the kinds are replicated, maximal, tiled, manual, unknown and unreduced");
}

template <class Value>
Py_hash_t text_hash(const Value& value) {
  return static_cast<Py_hash_t>(std::hash<std::string>()(value.to_string()) >> 1);
}

using IntegerTuple = nb::typed<nb::tuple, std::int64_t, nb::ellipsis>;

IntegerTuple integer_tuple(const Integers& values) {
  nb::list list;
  for (std::int64_t value : values) list.append(value);
  return IntegerTuple(nb::tuple(list));
}

const TileAssignment& tiled(const TileAssignment& tiles, std::string_view what) {
  if (tiles.kind != TileKind::kTiled)
    throw_invalid({}, "[tile_assignment] ", what, " is of a tiled assignment, not of ", tiles);
  return tiles;
}

template <Integers TileAssignment::*field>
IntegerTuple integers_of(const TileAssignment& tiles) {
  return integer_tuple(tiles.*field);
}

void bind_tile_assignment(nb::module_& module) {
  nb::class_<TileAssignment> type(
      module, "TileAssignment",
      R"(How many tiles each dimension has, and which device holds each: XLA's sharding.

    TileAssignment("{devices=[2,2]<=[4]}")    # its text, as HLO prints it
    TileAssignment("{devices=[2,1,4]<=[8] last_tile_dim_replicate}")
    TileAssignment("{replicated}")
    TileAssignment("tiled", dims=(2, 2), devices=(0, 2, 1, 3))

Devices are logical devices, that is positions of a mesh, unless stated otherwise. == compares
the fields; `canonical` forms are equal exactly if the same tile is on each device.

Error: a size below 1; an invalid permutation; a negative or repeated device; both forms or
neither.)");
  bind_value(type);
  type.def(
          "__init__",
          [](TileAssignment* self, const std::string& kind, Integers dims, Integers devices,
             Integers reshape_dims, Integers transpose_perm, bool replicate_on_last_tile_dim,
             const std::vector<std::string>& last_tile_dims) {
            if (kind.find('{') != std::string::npos) {
              new (self) TileAssignment(TileAssignment::parse(kind).value());
              return;
            }
            TileAssignment made{.kind = tile_kind_named(kind),
                                .dims = std::move(dims),
                                .devices = std::move(devices),
                                .reshape_dims = std::move(reshape_dims),
                                .transpose_perm = std::move(transpose_perm),
                                .replicate_on_last_tile_dim = replicate_on_last_tile_dim};
            for (const std::string& each : last_tile_dims)
              made.last_tile_dims.push_back(tile_kind_named(each));
            made.validate().value();
            new (self) TileAssignment(std::move(made));
          },
          nb::arg("kind"), nb::kw_only(), nb::arg("dims") = nb::tuple(),
          nb::arg("devices") = nb::tuple(), nb::arg("reshape_dims") = nb::tuple(),
          nb::arg("transpose_perm") = nb::tuple(), nb::arg("replicate_on_last_tile_dim") = false,
          nb::arg("last_tile_dims") = nb::tuple())
      .def("__hash__", text_hash<TileAssignment>)
      .def("__repr__",
           [](const TileAssignment& tiles) { return cat("TileAssignment('", tiles, "')"); })
      .def_prop_ro(
          "kind", [](const TileAssignment& tiles) { return to_string(tiles.kind); },
          "`replicated`, `maximal`, `tiled`, `manual`, `unknown` or `unreduced`.")
      .def_prop_ro("dims", integers_of<&TileAssignment::dims>,
                   "Tiles of each tensor dimension, then the sizes of the subgroup dimensions.")
      .def_prop_ro("devices", integers_of<&TileAssignment::devices>,
                   "V1: the device of each tile, row-major. Maximal: the one device.")
      .def_prop_ro("reshape_dims", integers_of<&TileAssignment::reshape_dims>,
                   "V2: what the devices 0..n-1 are reshaped to.")
      .def_prop_ro("transpose_perm", integers_of<&TileAssignment::transpose_perm>,
                   "V2: how they are then transposed.")
      .def_ro("replicate_on_last_tile_dim", &TileAssignment::replicate_on_last_tile_dim,
              "True if the last dimension counts replicas.")
      .def_prop_ro(
          "last_tile_dims",
          [](const TileAssignment& tiles) {
            nb::list kinds;
            for (TileKind kind : tiles.last_tile_dims) kinds.append(nb::cast(to_string(kind)));
            return nb::typed<nb::tuple, nb::str, nb::ellipsis>(nb::tuple(kinds));
          },
          "The kinds of the subgroup dimensions.")
      .def_prop_ro("is_iota", &TileAssignment::is_iota, "True for V2.")
      .def_prop_ro(
          "ndim", [](const TileAssignment& tiles) { return tiled(tiles, "ndim").rank(); },
          "The number of tensor dimensions.\n\nError: not tiled.")
      .def(
          "iota_layout",
          [](const TileAssignment& tiles) {
            if (!tiles.is_iota())
              throw_invalid({}, "[tile_assignment] ", tiles, " lists its devices");
            return tiles.iota_layout();
          },
          "The layout that maps a tile number to a device.\n\nError: V1.")
      .def(
          "device_list",
          [](const TileAssignment& tiles) { return tiled(tiles, "device_list").device_list(); },
          "The device of each tile, row-major.\n\nError: not tiled.")
      .def("listed", &TileAssignment::listed, "The same assignment in V1 form.")
      .def("shortest", &TileAssignment::shortest,
           "The shortest equivalent form: without subgroups of size 1, with a merged iota, or a "
           "single kind such as {replicated}.")
      .def("with_sorted_replicas", &TileAssignment::with_sorted_replicas,
           "The same in V1 form, with the devices of each group of replicas ascending.")
      .def("canonical", &TileAssignment::canonical,
           "The shortest form, listed, replicas ascending.")
      .def(
          "with_device_ids",
          [](const TileAssignment& tiles, const Mesh& mesh) {
            for (std::int64_t position :
                 tiles.kind == TileKind::kTiled ? tiles.device_list() : tiles.devices)
              mesh.check_position(position);
            return tiles.with_device_ids(mesh);
          },
          nb::arg("mesh"),
          "Replaces positions of `mesh` by device ids, in V1 form.\n\nError: a device that is not "
          "a position of the mesh.")
      .def(
          "with_positions",
          [](const TileAssignment& tiles, const Mesh& mesh) {
            return tiles.with_positions(mesh).value();
          },
          nb::arg("mesh"),
          "Replaces device ids by positions of `mesh`, in V1 form.\n\nError: a device that is not "
          "in the mesh.");
}

void bind_op_sharding(nb::module_& module) {
  nb::class_<OpSharding> type(
      module, "OpSharding",
      "XLA's OpSharding: the tile assignment of an array, or those of the arrays of a tuple: "
      "`OpSharding(tiles)`, `OpSharding([tiles, tiles])`, or its text.");
  bind_value(type);
  type.def(
          "__init__",
          [](OpSharding* self, const std::string& text) {
            new (self) OpSharding(OpSharding::parse(text).value());
          },
          nb::arg("text"))
      .def(
          "__init__",
          [](OpSharding* self, const TileAssignment& array) { new (self) OpSharding(array); },
          nb::arg("array"))
      .def(
          "__init__",
          [](OpSharding* self, std::vector<TileAssignment> tuple) {
            new (self) OpSharding(std::move(tuple));
          },
          nb::arg("tuple"))
      .def("__hash__", text_hash<OpSharding>)
      .def("__repr__", [](const OpSharding& it) { return cat("OpSharding('", it, "')"); })
      .def_prop_ro("is_tuple", &OpSharding::is_tuple, "True for the sharding of a tuple.")
      .def_prop_ro("elements", &OpSharding::elements,
                   "The assignments of the tuple; for an array, its one assignment.")
      .def_prop_ro(
          "type", [](const OpSharding& it) { return to_string(it.type()); },
          "torch_xla's sharding type: `TILED`, ...")
      .def("canonical", &OpSharding::canonical,
           "The same with each element in canonical form; two values are equivalent exactly if "
           "these are equal.");
}

void bind_conversions(nb::module_& module) {
  module.def(
      "tile_assignment", [](const Sharding& it) { return tile_assignment(it); },
      nb::arg("sharding"),
      "The tile assignment of a sharding, in the short V2 form that XLA prints.");
  module.def(
      "axis_tile_assignment", [](const Sharding& it) { return axis_tile_assignment(it); },
      nb::arg("sharding"),
      "The tile assignment of a sharding, spelled out axis by axis: the V2 form that torch_xla "
      "passes to XLA.");
  module.def(
      "sharding_from_tiles",
      [](const Mesh& mesh, const TileAssignment& tiles, std::size_t ndim) {
        return sharding_from_tiles(mesh, tiles, ndim).value();
      },
      nb::arg("mesh"), nb::arg("tiles"), nb::arg("ndim"),
      "The sharding over `mesh` that has a given tile assignment, for a tensor of `ndim` "
      "dimensions.\n\nError: the assignment has other devices or another rank, is manual or "
      "unknown, or no order of axes and sub-axes of the mesh produces it.");
  module.def(
      "sharding_from_tiles",
      [](const TileAssignment& tiles, std::size_t ndim, std::int64_t num_devices) {
        return sharding_from_tiles(tiles, ndim, num_devices).value();
      },
      nb::arg("tiles"), nb::arg("ndim"), nb::arg("num_devices"),
      "The same with a new mesh, which has an axis `axis_0`, `axis_1`, ... for each dimension of "
      "the assignment. `num_devices` is its size if the assignment lists no devices.");
  module.def(
      "sharding_type", [](const Sharding& sharding) { return to_string(sharding_type(sharding)); },
      nb::arg("sharding"),
      "The type that torch_xla chooses for a mesh and a spec: `REPLICATED`, `MAXIMAL`, `TUPLE`, "
      "`TILED`, `MANUAL`, `PARTIAL` or `UNKNOWN`. It depends on how the spec is written.");
  module.def(
      "sharding_type", [](const TileAssignment& tiles) { return to_string(sharding_type(tiles)); },
      nb::arg("tiles"), "The type of a tile assignment.");
  module.def(
      "sharding_type",
      [](const PartitionSpec& spec, std::int64_t num_devices) {
        return to_string(sharding_type(spec, num_devices));
      },
      nb::arg("spec"), nb::arg("num_devices"),
      "The type of a spec that uses all axes of a mesh of `num_devices` devices.");
  module.def(
      "canonical_type",
      [](const Sharding& sharding) { return to_string(canonical_type(sharding)); },
      nb::arg("sharding"), "The type that depends only on the placement.");
  module.def(
      "tile_array",
      [](const Sharding& sharding) {
        TileArray tiles = tile_array(sharding);
        return std::pair(integer_tuple(tiles.shape), std::move(tiles.device_ids));
      },
      nb::arg("sharding"),
      nb::sig("def tile_array(sharding: Sharding) -> tuple[tuple[int, ...], list[int]]"),
      "The devices of a sharding as an array: its shape, and the device ids, row-major. It has a "
      "dimension for each tensor dimension with axes, then one for each axis that splits no "
      "dimension, in mesh order.");
  module.def(
      "tile_groups",
      [](const Sharding& sharding) {
        TileGroups tiles = tile_groups(sharding);
        return std::pair(integer_tuple(tiles.shape), std::move(tiles.groups));
      },
      nb::arg("sharding"),
      nb::sig("def tile_groups(sharding: Sharding) -> tuple[tuple[int, ...], list[list[int]]]"),
      "The devices that hold each tile: the number of tiles of each dimension, and for each tile, "
      "row-major, the device ids in mesh order.");
}

IotaGroups checked_groups(IotaGroups groups) {
  TileAssignment{.kind = TileKind::kTiled,
                 .dims = {groups.count, groups.group_size},
                 .reshape_dims = groups.reshape_dims,
                 .transpose_perm = groups.transpose_perm}
      .validate()
      .value();
  return groups;
}

void bind_replica_groups(nb::module_& module) {
  nb::class_<IotaGroups> type(
      module, "IotaGroups",
      "Groups of devices in XLA's compact form: the devices 0..n-1 are reshaped, transposed, then "
      "cut into `count` groups of `group_size`. Without `reshape_dims` they stay in "
      "order.\n\nError: "
      "the sizes do not match; an invalid permutation.");
  bind_equality(type);
  bind_copies(type);
  using State = std::tuple<std::int64_t, std::int64_t, Integers, Integers>;
  type.def(
          "__init__",
          [](IotaGroups* self, std::int64_t count, std::int64_t group_size, Integers reshape_dims,
             Integers transpose_perm) {
            if (reshape_dims.empty()) {
              reshape_dims = {IntTuple::flat({count, group_size}).product()};
              transpose_perm = {0};
            }
            new (self) IotaGroups(checked_groups(
                {count, group_size, std::move(reshape_dims), std::move(transpose_perm)}));
          },
          nb::arg("count"), nb::arg("group_size"), nb::arg("reshape_dims") = nb::tuple(),
          nb::arg("transpose_perm") = nb::tuple())
      .def("__getstate__",
           [](const IotaGroups& it) {
             return State(it.count, it.group_size, it.reshape_dims, it.transpose_perm);
           })
      .def("__setstate__",
           [](IotaGroups& self, const State& state) {
             auto [count, group_size, reshape_dims, transpose_perm] = state;
             new (&self)
                 IotaGroups(checked_groups({count, group_size, reshape_dims, transpose_perm}));
           })
      .def("__str__", &IotaGroups::to_string)
      .def("__repr__",
           [](const IotaGroups& it) {
             return cat("IotaGroups(", it.count, ", ", it.group_size, ", ",
                        repr_text(integer_tuple(it.reshape_dims)), ", ",
                        repr_text(integer_tuple(it.transpose_perm)), ")");
           })
      .def("__hash__", text_hash<IotaGroups>)
      .def("__len__", [](const IotaGroups& it) { return it.count; })
      .def_ro("count", &IotaGroups::count, "The number of groups.")
      .def_ro("group_size", &IotaGroups::group_size, "The number of devices of each group.")
      .def_prop_ro(
          "reshape_dims", [](const IotaGroups& it) { return integer_tuple(it.reshape_dims); },
          "What the devices are reshaped to.")
      .def_prop_ro(
          "transpose_perm", [](const IotaGroups& it) { return integer_tuple(it.transpose_perm); },
          "How they are then transposed.")
      .def("listed", &IotaGroups::listed, "The groups as lists of devices.");
  module.def("replica_groups", &replica_groups, nb::arg("mesh"), nb::arg("axes"),
             "The replica groups of a collective over `axes`, in mesh order. Members are positions "
             "of mesh.base.\n\nError: unknown axis; an axis that does not consist of axes or "
             "sub-axes of the base.");
  module.def(
      "axes_of_groups",
      [](const Mesh& mesh, const IotaGroups& groups) { return axes_of_groups(mesh, groups); },
      nb::arg("mesh"), nb::arg("groups"),
      "The axes and sub-axes that the groups run over, in mesh order; None if no axes produce "
      "them. Members are positions of `mesh`.");
  module.def(
      "axes_of_groups",
      [](const Mesh& mesh, const std::vector<Integers>& groups) {
        return axes_of_groups(mesh, groups);
      },
      nb::arg("mesh"), nb::arg("groups"), "For groups as lists.");
}

void bind_texts(nb::module_& module) {
  module.def(
      "shardy_text",
      [](const Sharding& sharding, std::string_view mesh_name) {
        return shardy_text(sharding, mesh_name);
      },
      nb::arg("sharding"), nb::arg("mesh_name") = "mesh",
      "A sharding as Shardy writes it: `#sdy.sharding<@mesh, [{\"data\"}, {}]>`.");
  module.def(
      "shardy_text",
      [](const Mesh& mesh, const std::optional<Mesh>& numbering) {
        return numbering ? shardy_text(mesh, *numbering) : shardy_text(mesh);
      },
      nb::arg("mesh"), nb::arg("numbering").none() = nb::none(),
      "The body of an `sdy.mesh`: `<[\"data\"=2, \"model\"=4]>`; with logical devices numbered by "
      "position in the mesh `numbering`.\n\nError: the two meshes do not have the same devices.");
  module.def(
      "parse_shardy_mesh", [](std::string_view text) { return parse_shardy_mesh(text).value(); },
      nb::arg("text"), "The mesh that Shardy's text describes.");
  module.def(
      "parse_shardy_sharding",
      [](std::string_view text, const Mesh& mesh) {
        return parse_shardy_sharding(text, mesh).value();
      },
      nb::arg("text"), nb::arg("mesh"),
      "The sharding over `mesh` that Shardy's text describes.\n\nError: other syntax, including "
      "priorities; the errors of Sharding.");
  module.def(
      "mesh_dict_text", [](const Mesh& mesh) { return mesh_dict_text(mesh); }, nb::arg("mesh"),
      "The text of a mesh as torch_xla prints it: `{'device_ids': [0, 1], 'mesh_shape': (2,), "
      "'axis_names': ('x',)}`.\n\nError: the mesh has several rows.");
  module.def(
      "parse_mesh_dict", [](std::string_view text) { return parse_mesh_dict(text).value(); },
      nb::arg("text"), "The mesh that torch_xla's text describes.");
}

}  // namespace

void bind_tiles(nb::module_& module) {
  bind_tile_assignment(module);
  bind_op_sharding(module);
  bind_conversions(module);
  bind_replica_groups(module);
  bind_texts(module);
}

}  // namespace meshard::python
