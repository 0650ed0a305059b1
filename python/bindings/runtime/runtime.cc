// Devices, counters, waiting, transfers and traces.
#include "meshard/runtime/runtime.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "meshard/base/environment.h"
#include "meshard/graph/sync.h"
#include "meshard/pjrt/client.h"
#include "meshard/runtime/check_devices.h"
#include "meshard/runtime/counters.h"
#include "meshard/runtime/gather.h"
#include "meshard/runtime/nan_check.h"
#include "meshard/runtime/transfer.h"
#include "python/bindings/arrays/host_arrays.h"
#include "python/bindings/arrays/tensors.h"
#include "python/bindings/bindings.h"
#include "python/bindings/interpreter/casters.h"
#include "python/bindings/interpreter/lock.h"
#include "python/bindings/interpreter/release_later.h"
#include "python/bindings/interpreter/source_line.h"
#include "python/bindings/interpreter/waiting.h"
#include "python/bindings/mesh/mesh_casters.h"
#include "python/bindings/transforms/pytree.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

// --- options -----------------------------------------------------------------------------------

std::vector<pjrt::NamedValue> named_values(const nb::dict& options) {
  std::vector<pjrt::NamedValue> values;
  for (auto [key, value] : options) {
    pjrt::NamedValue& named = values.emplace_back();
    named.name = nb::cast<std::string>(key);
    if (PyBool_Check(value.ptr())) {
      named.value = value.is(nb::handle(Py_True));
    } else if (PyLong_Check(value.ptr())) {
      named.value = nb::cast<std::int64_t>(value);
    } else if (PyFloat_Check(value.ptr())) {
      named.value = static_cast<float>(nb::cast<double>(value));
    } else if (PyUnicode_Check(value.ptr())) {
      named.value = nb::cast<std::string>(value);
    } else {
      named.value = nb::cast<std::vector<std::int64_t>>(value);
    }
  }
  return values;
}

nb::object value_object(const pjrt::NamedValue::Value& value) { return nb::cast(value); }

void configure(std::string plugin, std::string platform, int cpu_devices,
               const nb::dict& client_options, const std::optional<std::string>& log,
               std::optional<bool> check_host_data, const std::vector<PlatformOptions>& platforms) {
  RuntimeOptions options;
  options.plugin = std::move(plugin);
  options.platform = std::move(platform);
  options.cpu_devices = cpu_devices;
  options.client_options = named_values(client_options);
  if (log) options.log = parse_log_level(*log).value();
  options.check_host_data = check_host_data;
  options.platforms = platforms;
  configure_runtime(std::move(options)).value();
}

// --- devices -----------------------------------------------------------------------------------

// A handle on a device; clients live as long as the process.
struct DeviceHandle {
  const pjrt::Device* device;
  friend bool operator==(const DeviceHandle&, const DeviceHandle&) = default;
};

std::vector<DeviceHandle> devices_of(const std::string& device_type, bool only_local) {
  CallerLine line;
  Unlocked unlocked;
  const pjrt::Client& client = runtime_client(device_type, line.where());
  std::vector<DeviceHandle> all;
  if (only_local) {
    for (const pjrt::Device* device : client.addressable_devices()) all.push_back({device});
  } else {
    for (std::size_t i = 0; i < client.device_count(); ++i) all.push_back({&client.device(i)});
  }
  return all;
}

nb::dict attributes_of(const DeviceHandle& handle) {
  nb::dict attributes;
  Result<std::vector<pjrt::NamedValue>> found = handle.device->description().attributes();
  if (!found.ok() && found.error().code() == ErrorCode::kUnimplemented) return attributes;
  for (const pjrt::NamedValue& each : found.value())
    attributes[each.name.c_str()] = value_object(each.value);
  return attributes;
}

void bind_devices(nb::module_& module) {
  nb::class_<DeviceHandle>(module, "Device",
                           "A device of a platform. Two are equal if they are "
                           "the same device.")
      .def_prop_ro(
          "id", [](const DeviceHandle& d) { return d.device->id(); }, "Its id, which meshes list.")
      .def_prop_ro(
          "platform", [](const DeviceHandle& d) { return d.device->platform(); },
          "`cpu`, `cuda`, `tpu`.")
      .def_prop_ro(
          "kind", [](const DeviceHandle& d) { return d.device->description().kind().value(); },
          "The plugin's name of the hardware: `cpu`, `TPU v5 lite`.")
      .def_prop_ro(
          "process", [](const DeviceHandle& d) { return d.device->process_index(); },
          "The process that has it.")
      .def_prop_ro(
          "is_local", [](const DeviceHandle& d) { return d.device->addressable(); },
          "Whether this process can place data on it.")
      .def_prop_ro("attributes", attributes_of,
                   "What the plugin says about it: `coords`, `core_on_chip`, `slice_index`.")
      .def(
          "memory_stats",
          [](const DeviceHandle& d) {
            CallerLine line;
            return memory_stats(d.device->id(), d.device->platform(), line.where());
          },
          "Its memory now; see meshard.memory_stats().")
      .def("__eq__",
           [](const DeviceHandle& a, nb::handle b) {
             return nb::isinstance<DeviceHandle>(b) && a == *nb::inst_ptr<DeviceHandle>(b);
           })
      .def("__hash__",
           [](const DeviceHandle& d) {
             return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(d.device) >> 4);
           })
      .def("__repr__", [](const DeviceHandle& d) {
        return cat("Device(", d.device->id(), ", \"", d.device->platform(), "\")");
      });
  module.def("devices", devices_of, nb::arg("device_type"), nb::arg("local"));
  module.def(
      "platforms",
      [] {
        std::vector<std::string> names;
        for (const pjrt::Client* client : started_clients()) names.push_back(client->name());
        return names;
      },
      "The names of the platforms that have started, the default one first.");
  module.def(
      "platform_version",
      [](const std::string& device_type) {
        CallerLine line;
        Unlocked unlocked;
        return runtime_client(device_type, line.where()).platform_version();
      },
      nb::arg("device_type"));
  module.def(
      "check_devices",
      [](const Mesh& mesh) {
        CallerLine line;
        Unlocked unlocked;
        check_devices(mesh, line.where());
      },
      nb::arg("mesh"));
}

// --- counters and memory -----------------------------------------------------------------------

template <class Class, class Value>
struct Field {
  const char* name;
  Value Class::*field;
  const char* doc;
};

template <class Class, class Value>
void bind_fields(nb::class_<Class>& bound, std::initializer_list<Field<Class, Value>> fields) {
  for (auto [name, field, doc] : fields) bound.def_ro(name, field, doc);
}

void bind_counters(nb::module_& module) {
  nb::class_<RuntimeCounters> counters(
      module, "RuntimeCounters",
      "Totals of the runtime's work. The difference of two is what happened between them.");
  bind_fields<RuntimeCounters, std::uint64_t>(
      counters,
      {{"buffers_sent", &RuntimeCounters::buffers_sent,
        "Buffers created on devices from host data."},
       {"bytes_sent", &RuntimeCounters::bytes_sent, "Their bytes."},
       {"bytes_aliased", &RuntimeCounters::bytes_aliased,
        "Of bytes_sent, the bytes that the device uses in place, without a copy."},
       {"buffers_read", &RuntimeCounters::buffers_read, "Shards read back to the host."},
       {"bytes_read", &RuntimeCounters::bytes_read, "Their bytes."},
       {"buffers_moved", &RuntimeCounters::buffers_moved, "Buffers copied between devices."},
       {"bytes_moved", &RuntimeCounters::bytes_moved, "Their bytes."},
       {"compiles", &RuntimeCounters::compiles, "Programs compiled."},
       {"retargets", &RuntimeCounters::retargets,
        "Programs loaded from a serialized program for other devices."},
       {"cache_hits", &RuntimeCounters::cache_hits, "Programs found in the cache in memory."},
       {"part_loads", &RuntimeCounters::part_loads,
        "Small programs without collectives loaded once more, as a program for each device, "
        "because they are called often."},
       {"disk_hits", &RuntimeCounters::disk_hits, "Programs loaded from the cache on disk."},
       {"disk_misses", &RuntimeCounters::disk_misses,
        "Programs looked for in the cache on disk without success."},
       {"launches", &RuntimeCounters::launches, "Launches of compiled programs."},
       {"nodes_run", &RuntimeCounters::nodes_run, "Recorded nodes that they computed."}});
  counters.def("__sub__", [](const RuntimeCounters& a, const RuntimeCounters& b) { return a - b; })
      .def("__eq__",
           [](const RuntimeCounters& a, nb::handle b) {
             return nb::isinstance<RuntimeCounters>(b) && a == *nb::inst_ptr<RuntimeCounters>(b);
           })
      .def("__repr__", [](const RuntimeCounters& all) { return all.to_string(); });
  module.def("runtime_counters", runtime_counters);
  module.def("reset_runtime_counters", reset_runtime_counters);

  nb::class_<MemoryStats> stats(module, "MemoryStats", "The memory of one device, in bytes.");
  bind_fields<MemoryStats, std::int64_t>(
      stats, {{"device", &MemoryStats::device, "The id of the device."},
              {"live_bytes", &MemoryStats::live_bytes,
               "The live buffers that this process has on the device, without temporary memory of "
               "running programs."},
              {"peak_live_bytes", &MemoryStats::peak_live_bytes, "The most so far."}});
  bind_fields<MemoryStats, std::optional<std::int64_t>>(
      stats,
      {{"bytes_in_use", &MemoryStats::bytes_in_use,
        "What the plugin's allocator reports; None if it reports nothing, as on CPU devices."},
       {"peak_bytes_in_use", &MemoryStats::peak_bytes_in_use,
        "The most so far, as the plugin reports it."},
       {"bytes_limit", &MemoryStats::bytes_limit, "The memory that the plugin may use."},
       {"largest_free_block", &MemoryStats::largest_free_block,
        "The largest free block, as the plugin reports it."}});
  stats.def("__repr__", [](const MemoryStats& all) { return all.to_string(); });
  module.def(
      "memory_stats",
      [](std::int64_t device, const std::string& device_type) {
        CallerLine line;
        Unlocked unlocked;
        return memory_stats(device, device_type, line.where());
      },
      nb::arg("device"), nb::arg("device_type"));
  module.def(
      "mesh_memory_stats",
      [](const Mesh& mesh) {
        CallerLine line;
        Unlocked unlocked;
        return memory_stats(mesh, line.where());
      },
      nb::arg("mesh"));
}

// --- waiting and moving ------------------------------------------------------------------------

// What has to be done before the interpreter ends: programs may call Python functions, and threads
// of the plugin must not wait for a lock that no longer exists.
void finish_work() {
  if (internal::is_forked_child.load(std::memory_order_relaxed)) return;
  end_interpreter([] {
    run_waiting([] {
      sync();
      pjrt::finish_callbacks();
    });
    release_collected();
  });
  end_before_running_compiles();
}

void bind_waiting(nb::module_& module) {
  module.def("sync_all", [] { run_waiting([] { sync(); }); });
  module.def("finish_work", finish_work);
  module.def(
      "sync_tree",
      [](nb::handle tree) {
        CallerLine line;
        PyTree flat = PyTree::of(tree);
        wait_for(flat.leaves(), line.where());
      },
      nb::arg("tree").none());
  module.def(
      "block_until_ready",
      [](const Operand& x) {
        CallerLine line;
        Tensor tensor = x.in().tensor ? *x.in().tensor : Tensor();
        wait_for(std::span(&tensor, 1), line.where());
      },
      nb::arg("x"));
  module.def(
      "compute",
      [](nb::handle tree) {
        CallerLine line;
        PyTree flat = PyTree::of(tree);
        Unlocked unlocked;
        compute(flat.leaves(), line.where());
      },
      nb::arg("tree").none(), "Starts computing the tensors of a structure, without waiting.");

  module.def(
      "transfer",
      [](const Operand& x, const Sharding& sharding) {
        CallerLine line;
        Unlocked unlocked;
        In in = x.in();
        in.where = line.where();
        return transfer(in, sharding);
      },
      nb::arg("x"), nb::arg("sharding"));
  module.def(
      "transfer",
      [](const Operand& x, const Mesh& mesh, const PartitionSpec& spec) {
        CallerLine line;
        Unlocked unlocked;
        In in = x.in();
        in.where = line.where();
        return transfer(in, mesh, spec);
      },
      nb::arg("x"), nb::arg("mesh"), nb::arg("spec"));
  module.def(
      "transfer",
      [](const Operand& x, const ShardingSpec& spec) {
        CallerLine line;
        Unlocked unlocked;
        In in = x.in();
        in.where = line.where();
        return transfer(in, spec);
      },
      nb::arg("x"), nb::arg("spec"));

  module.def(
      "gather_to_all",
      [](const Tensor& x) {
        CallerLine line;
        auto whole = std::make_shared<HostArray>();
        run_waiting([whole, x, where = line.where()] { *whole = gather(x, where); });
        return numpy_array(*whole);
      },
      nb::arg("x"));
  module.def(
      "gather_to",
      [](const Tensor& x, int process) -> nb::object {
        CallerLine line;
        auto whole = std::make_shared<std::optional<HostArray>>();
        run_waiting([=, where = line.where()] { *whole = gather_to(x, process, where); });
        return *whole ? numpy_array(**whole) : nb::none();
      },
      nb::arg("x"), nb::arg("process"));
}

}  // namespace

void bind_runtime(nb::module_& module) {
  nb::class_<PlatformOptions>(module, "PlatformOptions", "A further platform.")
      .def(
          "__init__",
          [](PlatformOptions* self, std::string device_type, std::string plugin, int cpu_devices,
             const nb::dict& client_options) {
            new (self) PlatformOptions{std::move(device_type), std::move(plugin), cpu_devices,
                                       named_values(client_options)};
          },
          nb::arg("device_type"), nb::arg("plugin") = "", nb::arg("cpu_devices") = 0,
          nb::arg("client_options") = nb::dict());
  module.def("configure_runtime", configure, nb::arg("plugin"), nb::arg("platform"),
             nb::arg("cpu_devices"), nb::arg("client_options"), nb::arg("log").none(),
             nb::arg("check_host_data").none(), nb::arg("platforms"));
  module.def("restart_runtime", [] {
    Unlocked unlocked;
    restart_runtime();
  });
  module.def("log_level", [] { return std::string(to_string(log_level())); });
  module.def(
      "set_log_level",
      [](const std::string& level) { set_log_level(parse_log_level(level).value()); },
      nb::arg("level"));
  module.def("set_check_nans", set_check_nans, nb::arg("on"));
  module.def("checks_nans", checks_nans);
  bind_devices(module);
  bind_counters(module);
  bind_waiting(module);
  bind_compiles(module);
}

}  // namespace meshard::python
