// Hardware to compile for, and its published figures.
#include "meshard/plan/plan.h"
#include "meshard/target/compile_workers.h"
#include "meshard/target/target.h"
#include "python/bindings/interpreter/casters.h"
#include "python/bindings/reports/report_fields.h"
#include "python/bindings/reports/reports.h"

namespace nb = nanobind;

namespace meshard::python {

void bind_targets(nb::module_& module) {
  bind_value<HardwareFigures>(module, "HardwareFigures", "matrix_rates")
      .def_prop_ro(
          "matrix_rates",
          [](const HardwareFigures& figures) {
            nb::dict rates;
            for (const HardwareFigures::Rate& rate : figures.matrix_rates)
              rates[rate.element_type.c_str()] = rate.flops;
            return rates;
          },
          "Multiplications and additions per second in matrix products, by element type.")
      .def("__repr__", [](const HardwareFigures& figures) {
        return cat("<HardwareFigures: ", figures.memory_bytes, " bytes>");
      });
  nb::class_<Target>(module, "Target",
                     "A kind of hardware and a device count, which may be absent.")
      .def_static(
          "parse", [](const std::string& name) { return Target::parse(name).value(); },
          nb::arg("name"),
          "TPUs `v5e:4x4`, `v5p:4x4x4`, several slices `v5e:16x16*2`; GPUs `h100:8`, `h100:4x8` (4 "
          "nodes of 8); the CPU plugin's virtual devices `cpu:8`.")
      .def_prop_ro("name", &Target::name, comment_of("Target.name"))
      .def_prop_ro("platform", &Target::platform, comment_of("Target.platform"))
      .def_prop_ro("size", &Target::size, comment_of("Target.size"))
      .def_prop_ro("topology", &Target::topology, comment_of("Target.topology"))
      .def_prop_ro(
          "device_ids",
          [](const Target& target) {
            std::vector<std::int64_t> ids;
            for (const DeviceAttributes& device : target.topology().devices())
              ids.push_back(device.id);
            return ids;
          },
          "The ids of its devices.")
      .def_prop_ro("memory", &device_memory,
                   "Main memory of one device in bytes; None if not published.")
      .def_prop_ro(
          "figures", [](const Target& target) { return hardware_figures(target.topology()); },
          "Published figures of a device; None if unknown.")
      .def("__eq__",
           [](const Target& one, nb::handle other) {
             const Target* two = nullptr;
             return nb::try_cast<const Target*>(other, two) && two && one == *two;
           })
      .def("__hash__",
           [](const Target& target) {
             return static_cast<Py_hash_t>(std::hash<std::string>()(target.name()) >> 1);
           })
      .def("__str__", &Target::name)
      .def("__repr__",
           [](const Target& target) {
             return cat("<Target: ", target.name(), ", ", target.size(), " devices>");
           })
      .def("__getstate__", &Target::name)
      .def("__setstate__", [](Target& target, const std::string& name) {
        new (&target) Target(Target::parse(name).value());
      });
  module.def(
      "target_name_of",
      [](std::string_view platform, const std::string& kind, const std::vector<std::int64_t>& ids,
         const std::vector<std::vector<std::int64_t>>& coords) {
        std::vector<DeviceAttributes> devices;
        for (std::size_t i = 0; i < ids.size() && i < coords.size(); ++i)
          devices.push_back({.id = ids[i],
                             .coords = IntVector(coords[i].begin(), coords[i].end()),
                             .kind = kind});
        return target_name_of(platform, devices);
      },
      nb::arg("platform"), nb::arg("kind"), nb::arg("device_ids"), nb::arg("coords"),
      "The name of the smallest target that contains the devices; None if they do not tell.");
  module.def(
      "find_compile_program", [] { return find_compile_program().value(); },
      "The path of the program meshard-compile.");
}

}  // namespace meshard::python
