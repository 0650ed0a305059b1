// Checkpoints, weights, safetensors and npy files.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "meshard/base/near_names.h"
#include "meshard/graph/evaluator.h"
#include "meshard/graph/from_host.h"
#include "meshard/io/checkpoint.h"
#include "meshard/io/load_rule.h"
#include "meshard/io/npy.h"
#include "meshard/io/publish.h"
#include "meshard/io/save.h"
#include "meshard/io/weights.h"
#include "python/bindings/arrays/host_arrays.h"
#include "python/bindings/arrays/tensors.h"
#include "python/bindings/bindings.h"
#include "python/bindings/interpreter/casters.h"
#include "python/bindings/interpreter/lock.h"
#include "python/bindings/interpreter/source_line.h"
#include "python/bindings/interpreter/waiting.h"
#include "python/bindings/mesh/mesh_casters.h"
#include "python/bindings/transforms/pytree.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

using Metadata = std::map<std::string, std::string>;
using Names = std::vector<std::string>;

// The sizes of the first dimensions of a tensor, along which it stacks layers.
std::span<const std::int64_t> stacked_sizes(const std::string& path, const Shape& shape) {
  return std::span(shape.sizes()).first(structure::stacked_dimensions(path));
}

// The tensors of a structure under the names for these paths, in order.
std::vector<io::internal::NamedTensors> named(const Names& paths, const PyTree& tree) {
  std::vector<io::internal::NamedTensors> all;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const Tensor& tensor = tree.leaves()[i];
    std::span<const std::int64_t> sizes = stacked_sizes(paths[i], tensor.shape());
    all.push_back({io::checkpoint_names(paths[i], sizes), tensor, sizes.size()});
  }
  return all;
}

void save(const std::string& path, const Names& paths, nb::handle values, const Metadata& metadata,
          bool this_process_only) {
  CallerLine line;
  PyTree tree = PyTree::of(values);
  auto tensors = std::make_shared<std::vector<io::internal::NamedTensors>>(named(paths, tree));
  {
    Unlocked unlocked;
    compute(tree.leaves(), line.where());
  }
  run_waiting([=, where = line.where()] {
    io::internal::save_in_order(path, *tensors, metadata, {this_process_only}, where).value();
  });
}

io::Saving save_async(const std::string& path, const Names& paths, nb::handle values,
                      const Metadata& metadata, bool this_process_only) {
  CallerLine line;
  PyTree tree = PyTree::of(values);
  Unlocked unlocked;
  return io::internal::save_in_order_async(path, named(paths, tree), metadata, {this_process_only},
                                           line.where());
}

struct WeightsHandle {
  std::shared_ptr<const io::Weights> weights;
};

WeightsHandle open_weights(const std::string& path) {
  Unlocked unlocked;
  return {std::make_shared<const io::Weights>(io::Weights::open(path).value())};
}

Tensor tensor_of(const WeightsHandle& handle, const std::string& name,
                 const std::optional<Sharding>& sharding) {
  CallerLine line;
  Unlocked unlocked;
  return (sharding ? handle.weights->placed(name, *sharding, line.where())
                   : handle.weights->tensor(name, line.where()))
      .value();
}

// A tensor of the file for a member of a structure, where the member is.
// @pre check_members()
Tensor restored(const WeightsHandle& handle, const std::string& path, const Tensor& like) {
  CallerLine line;
  Unlocked unlocked;
  const std::span<const std::int64_t> layers = stacked_sizes(path, like.shape());
  const Names names = io::checkpoint_names(path, layers);
  if (names.empty()) return like;
  const Shape stack(Dimensions(layers.begin(), layers.end()));
  std::optional<Sharding> sharding = like.sharding();
  return (sharding ? handle.weights->placed_stacked(names, stack, *sharding, line.where())
                   : handle.weights->stacked(names, stack, line.where()))
      .value();
}

std::map<std::string, Tensor> load_all(const WeightsHandle& handle, nb::handle patterns,
                                       bool strict) {
  CallerLine line;
  std::vector<io::NamedSharding> shardings;
  for (nb::handle each : patterns)
    shardings.push_back({nb::cast<std::string>(nb::object(each[0])),
                         nb::cast<Mesh>(nb::object(each[1])),
                         nb::cast<PartitionSpec>(nb::object(each[2]))});
  Unlocked unlocked;
  return handle.weights->load(shardings, {.strict = strict}, line.where()).value();
}

Dimensions dimensions_of(const std::vector<std::int64_t>& numbers) {
  return Dimensions(numbers.begin(), numbers.end());
}

// Each rule is (from, to, transpose, dimension, sizes, groups, dtype).
WeightsHandle mapped(const WeightsHandle& handle, nb::handle rules, bool strict) {
  CallerLine line;
  std::vector<io::LoadRule> all;
  using Numbers = std::vector<std::int64_t>;
  for (nb::handle each : rules)
    all.push_back({.from = nb::cast<Names>(nb::object(each[0])),
                   .to = nb::cast<Names>(nb::object(each[1])),
                   .transpose = dimensions_of(nb::cast<Numbers>(nb::object(each[2]))),
                   .dimension = nb::cast<std::int64_t>(nb::object(each[3])),
                   .sizes = dimensions_of(nb::cast<Numbers>(nb::object(each[4]))),
                   .groups = nb::cast<std::int64_t>(nb::object(each[5])),
                   .dtype = nb::cast<std::optional<DType>>(nb::object(each[6]))});
  Unlocked unlocked;
  return {std::make_shared<const io::Weights>(
      io::mapped(*handle.weights, all, {.strict = strict}, line.where()).value())};
}

// Compares the members of a structure with the tensors of the file: all differences at once.
void check_members(const WeightsHandle& handle, const Names& paths, nb::handle leaves,
                   bool strict) {
  CallerLine line;
  io::internal::CheckpointReader reader(*handle.weights, line.where());
  const PyTree tree = PyTree::of(leaves);
  for (std::size_t i = 0; i < paths.size(); ++i) reader.expect(tree.leaves()[i], paths[i]);
  reader.check({.strict = strict});
  if (reader.error()) throw Error(*reader.error());
}

nb::object part_object(const io::StoredTensor::Part& part) {
  nb::list slices;
  for (const DimensionSlice& slice : part.box) slices.append(nb::slice(slice.start, slice.stop));
  return nb::make_tuple(part.file.path(), part.name, nb::tuple(slices));
}

void bind_weights(nb::module_& module) {
  nb::class_<WeightsHandle>(module, "Weights")
      .def(
          "__init__",
          [](WeightsHandle* self, const std::string& path) {
            new (self) WeightsHandle(open_weights(path));
          },
          nb::arg("path"))
      .def(
          "names", [](const WeightsHandle& w) { return w.weights->names(); },
          "The names of all tensors, in alphabetical order.")
      .def("__contains__", [](const WeightsHandle& w,
                              const std::string& name) { return w.weights->contains(name); })
      .def("__len__", [](const WeightsHandle& w) { return w.weights->names().size(); })
      .def("__iter__",
           [](const WeightsHandle& w) { return nb::iter(nb::cast(w.weights->names())); })
      .def(
          "type",
          [](const WeightsHandle& w, const std::string& name) {
            const TensorType type = w.weights->type(name).value();
            return nb::make_tuple(type.shape, type.dtype);
          },
          nb::arg("name"), "The shape and dtype of a tensor. Raises NotFoundError.")
      .def(
          "parts",
          [](const WeightsHandle& w, const std::string& name) {
            nb::list parts;
            const io::StoredTensor stored = w.weights->stored(name).value();
            for (const io::StoredTensor::Part& part : stored.parts())
              parts.append(part_object(part));
            return parts;
          },
          nb::arg("name"),
          "Where a tensor is: a list of (file, name in the file, part of the tensor as slices).")
      .def_prop_ro(
          "metadata", [](const WeightsHandle& w) { return w.weights->metadata(); },
          "What the file, or the index, says besides the tensors.")
      .def("tensor", tensor_of, nb::arg("name"), nb::arg("sharding").none() = nb::none(),
           "A tensor, on the host, or with a sharding on the devices of its mesh; each process "
           "reads only what its devices hold. Raises NotFoundError.")
      .def("__getitem__", [](const WeightsHandle& w,
                             const std::string& name) { return tensor_of(w, name, std::nullopt); })
      .def("_restored", restored, nb::arg("path"), nb::arg("like"))
      .def("_check_members", check_members, nb::arg("paths"), nb::arg("leaves"), nb::arg("strict"))
      .def("_mapped", mapped, nb::arg("rules"), nb::arg("strict"))
      .def_prop_ro(
          "path", [](const WeightsHandle& w) { return w.weights->path(); }, "As it was opened.")
      .def(
          "stored_dtype",
          [](const WeightsHandle& w, const std::string& name) -> std::optional<std::string> {
            const io::StoredTensor stored = w.weights->stored(name).value();
            for (const io::StoredTensor::Part& part : stored.parts())
              if (const io::SafetensorsEntry* entry = part.file.find(part.name);
                  entry && !entry->stored_dtype.empty())
                return entry->stored_dtype;
            return std::nullopt;
          },
          nb::arg("name"),
          "The format's name of a dtype that meshard lacks, such as `F4`: the tensor is then read "
          "as "
          "bytes (uint8). None for all others. Raises NotFoundError.")
      .def("_load", load_all, nb::arg("patterns"), nb::arg("strict"));
}

// --- publishing
// -----------------------------------------------------------------------------------

using PublisherPtr = std::shared_ptr<io::Publisher>;
using ReceivingPtr = std::shared_ptr<io::internal::Receiving>;

PublisherPtr open_publisher(const std::string& address, const std::string& secret) {
  CallerLine line;
  auto publisher = std::make_shared<PublisherPtr>();
  run_waiting([=, where = line.where()] {
    *publisher = std::make_shared<io::Publisher>(
        io::Publisher::open(address, {.secret = secret}, where).value());
  });
  return *publisher;
}

std::int64_t publish_tree(const PublisherPtr& publisher, const Names& paths, nb::handle values,
                          std::optional<std::int64_t> version) {
  CallerLine line;
  PyTree tree = PyTree::of(values);
  auto tensors = std::make_shared<std::vector<io::internal::NamedTensors>>(named(paths, tree));
  {
    Unlocked unlocked;
    compute(tree.leaves(), line.where());
  }
  auto published = std::make_shared<std::int64_t>(0);
  run_waiting([=, where = line.where()] {
    *published = publisher->publish_tensors(*tensors, version, where).value();
  });
  return *published;
}

ReceivingPtr begin_receiving(const std::string& address, const std::string& secret,
                             std::optional<std::int64_t> newer_than, double seconds) {
  CallerLine line;
  io::ReceiveOptions options{.secret = secret, .newer_than = newer_than};
  options.limit = std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(seconds * 1000)));
  auto receiving = std::make_shared<ReceivingPtr>();
  run_waiting([=, where = line.where()] {
    *receiving = std::make_shared<io::internal::Receiving>(
        io::internal::Receiving::open(address, options, where).value());
  });
  return *receiving;
}

// With a text: why this process cannot.
void finish_receiving(const ReceivingPtr& receiving, const std::optional<std::string>& failure) {
  run_waiting([=] {
    if (failure)
      (void)receiving->finish(Error(ErrorCode::kAborted, *failure));
    else
      receiving->finish({}).value();
  });
}

void bind_publishing(nb::module_& module) {
  struct PublisherHandle {
    PublisherPtr publisher;
  };
  struct ReceivingHandle {
    ReceivingPtr receiving;
  };
  nb::class_<PublisherHandle>(module, "_Publisher")
      .def(
          "__init__",
          [](PublisherHandle* self, const std::string& address, const std::string& secret) {
            new (self) PublisherHandle{open_publisher(address, secret)};
          },
          nb::arg("address"), nb::arg("secret"))
      .def(
          "publish",
          [](const PublisherHandle& p, const Names& paths, nb::handle values,
             std::optional<std::int64_t> version) {
            return publish_tree(p.publisher, paths, values, version);
          },
          nb::arg("paths"), nb::arg("values"), nb::arg("version").none())
      .def_prop_ro("address", [](const PublisherHandle& p) { return p.publisher->address(); })
      .def_prop_ro("num_receivers",
                   [](const PublisherHandle& p) { return p.publisher->num_receivers(); });
  nb::class_<ReceivingHandle>(module, "_Receiving")
      .def(
          "__init__",
          [](ReceivingHandle* self, const std::string& address, const std::string& secret,
             std::optional<std::int64_t> newer_than, double seconds) {
            new (self) ReceivingHandle{begin_receiving(address, secret, newer_than, seconds)};
          },
          nb::arg("address"), nb::arg("secret"), nb::arg("newer_than").none(), nb::arg("seconds"))
      .def_prop_ro("version", [](const ReceivingHandle& r) { return r.receiving->version(); })
      .def_prop_ro("weights",
                   [](const ReceivingHandle& r) {
                     return WeightsHandle{
                         std::shared_ptr<const io::Weights>(r.receiving, &r.receiving->weights())};
                   })
      .def(
          "finish",
          [](const ReceivingHandle& r, const std::optional<std::string>& failure) {
            finish_receiving(r.receiving, failure);
          },
          nb::arg("failure").none());
}

}  // namespace

void bind_files(nb::module_& module) {
  nb::class_<io::Saving>(module, "Saving",
                         "A save that goes on in the background. Without wait(), an error is "
                         "reported when the process ends.")
      .def("done", &io::Saving::done, "Whether wait() returns at once.")
      .def(
          "wait",
          [](const io::Saving& saving) { run_waiting([saving] { saving.wait().value(); }); },
          "Waits until the checkpoint is complete on the disk; raises the error of the save. May "
          "be called again.");
  module.def("save_tensors", save, nb::arg("path"), nb::arg("paths"), nb::arg("values"),
             nb::arg("metadata"), nb::arg("this_process_only"));
  module.def("save_tensors_async", save_async, nb::arg("path"), nb::arg("paths"), nb::arg("values"),
             nb::arg("metadata"), nb::arg("this_process_only"));
  module.def(
      "has_checkpoint",
      [](const std::string& path) {
        Unlocked unlocked;
        return io::has_checkpoint(path).value();
      },
      nb::arg("path"));
  module.def("nearest_text",
             [](const std::string& word, const Names& names) { return nearest_text(word, names); });
  module.def(
      "checkpoint_names",
      [](const std::string& path, const Shape& shape) {
        return io::checkpoint_names(path, stacked_sizes(path, shape));
      },
      nb::arg("path"), nb::arg("shape"));
  bind_weights(module);
  bind_publishing(module);
  module.def(
      "load_npy",
      [](const std::string& path) {
        CallerLine line;
        Unlocked unlocked;
        return from_host(io::load_npy(path).value(), line.where());
      },
      nb::arg("path"));
  module.def(
      "save_npy",
      [](const std::string& path, const Tensor& x) {
        CallerLine line;
        wait_for(std::span(&x, 1), line.where());
        Unlocked unlocked;
        io::save_npy(path, x.to_host(line.where())).value();
      },
      nb::arg("path"), nb::arg("x"));
}

}  // namespace meshard::python
