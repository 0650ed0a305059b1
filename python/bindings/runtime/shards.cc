// Shards of tensors.
#include "meshard/runtime/shards.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <utility>
#include <vector>

#include "meshard/graph/from_host.h"
#include "meshard/runtime/device_array.h"
#include "meshard/runtime/sharded_tensor.h"
#include "python/bindings/arrays/foreign_arrays.h"
#include "python/bindings/arrays/host_arrays.h"
#include "python/bindings/arrays/tensors.h"
#include "python/bindings/bindings.h"
#include "python/bindings/interpreter/casters.h"
#include "python/bindings/interpreter/lock.h"
#include "python/bindings/interpreter/source_line.h"
#include "python/bindings/interpreter/waiting.h"
#include "python/bindings/mesh/mesh_casters.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

// The slices of a box, as an index of NumPy.
nb::object slices_of(const Box& box) {
  nb::object slices = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(box.size())));
  for (std::size_t d = 0; d < box.size(); ++d)
    PyTuple_SetItem(slices.ptr(), static_cast<Py_ssize_t>(d),
                    nb::slice(box[d].start, box[d].stop).release().ptr());
  return slices;
}

// Of an array of any library, or what NumPy makes one of; numbers get this dtype.
HostArray host_array_of_any(nb::handle object, std::optional<DType> dtype = std::nullopt) {
  if (is_foreign_array(object.ptr())) return tensor_of_foreign(object.ptr()).to_host();
  nb::object asarray = nb::module_::import_("numpy").attr("asanyarray");
  const bool is_typed = !dtype || nb::hasattr(object, "dtype");
  nb::object array = is_typed ? asarray(object) : asarray(object, nb::handle(dtype_object(*dtype)));
  return host_array_of(array, Memory::kShareIfReadOnly);
}

std::vector<HostArray> arrays_of(nb::handle sequence) {
  std::vector<HostArray> arrays;
  for (nb::handle each : sequence) arrays.push_back(host_array_of_any(each));
  return arrays;
}

template <class F>
nb::object data_of(const LocalShard& shard, const F& read) {
  CallerLine line;
  HostArray data = [&] {
    Unlocked unlocked;
    return read(shard, line.where());
  }();
  return numpy_array(data);
}

std::vector<LocalShard> shards_of(const Tensor& x) {
  CallerLine line;
  Unlocked unlocked;
  return local_shards(x, line.where());
}

Tensor from_shards(nb::handle shards, const Mesh& mesh, const PartitionSpec& spec,
                   const std::optional<Shape>& shape) {
  CallerLine line;
  std::vector<HostArray> arrays = arrays_of(shards);
  Unlocked unlocked;
  return ShardedTensor::from_shards(arrays, mesh, spec, shape, line.where()).global();
}

Tensor from_local(const std::vector<Tensor>& locals, const Mesh& mesh, const PartitionSpec& spec,
                  const std::optional<Shape>& shape) {
  CallerLine line;
  Unlocked unlocked;
  return ShardedTensor::from_local(locals, mesh, spec, shape, line.where()).global();
}

// The callback may return anything that numpy.asarray takes.
Tensor from_callback(const Shape& shape, const Sharding& sharding, nb::object make, DType dtype) {
  CallerLine line;
  auto called = [&](const Box& box) {
    Locked locked;
    return host_array_of_any(nb::object(make(slices_of(box))), dtype);
  };
  Unlocked unlocked;
  return ShardedTensor::from_callback({dtype, shape}, sharding, called, line.where()).global();
}

Tensor load_shards(const Tensor& x, nb::handle shards) {
  CallerLine line;
  std::vector<HostArray> arrays = arrays_of(shards);
  Unlocked unlocked;
  ShardedTensor loaded(x, line.where());
  loaded.load_local_shards(arrays, line.where());
  return loaded.global();
}

// A value with bytes of its own, where the bytes of `x` are.
Tensor copied(const Tensor& x) {
  CallerLine line;
  // A traced value has no bytes, and cannot be donated.
  if (x.value()->trace() != 0 && !x.value().storage()) return x;
  wait_for(std::span(&x, 1), line.where());
  Unlocked unlocked;
  std::optional<Sharding> stored = x.stored_sharding();
  // Host memory never changes, so it can be shared.
  if (!stored) return from_host(x.to_host(line.where()), line.where());
  std::vector<HostArray> shards;
  for (const LocalShard& shard : local_shards(x, line.where()))
    shards.push_back(shard.data(line.where()));
  return ShardedTensor::from_shards(shards, stored->mesh(), stored->spec(), x.shape(), line.where())
      .global();
}

}  // namespace

void bind_shards(nb::module_& module) {
  nb::class_<LocalShard>(module, "LocalShard",
                         "One device's part of a tensor. It keeps the tensor alive, and copies "
                         "nothing until its data is read.")
      .def_prop_ro("position", &LocalShard::position, "The device's position in the mesh.")
      .def_prop_ro("device_id", &LocalShard::device_id, "The device's id.")
      .def_prop_ro("replica_id", &LocalShard::replica_id,
                   "The number of earlier positions that hold the same part.")
      .def_prop_ro(
          "index", [](const LocalShard& shard) { return slices_of(shard.box()); },
          "The part of the tensor that it holds, as a tuple of slices: "
          "`x.numpy()[shard.index]`.")
      .def_prop_ro(
          "data",
          [](const LocalShard& shard) {
            return data_of(shard,
                           [](const LocalShard& s, SourceLocation where) { return s.data(where); });
          },
          "Its elements as a NumPy array, copied to the host.")
      .def_prop_ro(
          "padded_data",
          [](const LocalShard& shard) {
            return data_of(shard, [](const LocalShard& s, SourceLocation where) {
              return s.padded_data(where);
            });
          },
          "The same with the padding that it has on the device, whose contents are "
          "unspecified.")
      .def("__repr__", [](const LocalShard& shard) { return shard.to_string(); });
  module.def("local_shards", shards_of, nb::arg("x"));
  module.def("num_copies", &num_copies, nb::arg("x"));
  module.def("from_shards", from_shards, nb::arg("shards"), nb::arg("mesh"), nb::arg("spec"),
             nb::arg("shape").none());
  module.def("from_local", from_local, nb::arg("tensors"), nb::arg("mesh"), nb::arg("spec"),
             nb::arg("shape").none());
  module.def("from_callback", from_callback, nb::arg("shape"), nb::arg("sharding"),
             nb::arg("callback"), nb::arg("dtype"));
  module.def("load_local_shards", load_shards, nb::arg("x"), nb::arg("shards"));
  module.def(
      "held_parts",
      [](const Tensor& x) {
        CallerLine line;
        std::vector<HeldPart> parts = [&] {
          Unlocked unlocked;
          return held_parts(x, line.where());
        }();
        nb::list all;
        for (const HeldPart& part : parts)
          all.append(nb::make_tuple(slices_of(part.box), part.processes));
        return all;
      },
      nb::arg("x"));
  module.def(
      "same_tensor", [](const Tensor& x) { return x; }, nb::arg("x"));
  module.def("copy_tensor", copied, nb::arg("x"));
}

}  // namespace meshard::python
