// Expectations about compiled programs.
#include "meshard/report/expect.h"
#include "python/bindings/interpreter/casters.h"
#include "python/bindings/reports/reports.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

ExpectationReport check_replication(const ProgramReport& report, std::int64_t least_bytes,
                                    std::vector<std::string> except) {
  FullReplicationOptions options;
  options.least_bytes = least_bytes;
  options.except = std::move(except);
  return check_expectations(report, {.no_full_replication = std::move(options)});
}

}  // namespace

void bind_expectations(nb::module_& module) {
  nb::class_<ExpectationReport>(module, "ExpectationReport",
                                "The result of checking a program against expectations.")
      .def_ro("met", &ExpectationReport::met, "An entry for each expectation that holds.")
      .def_ro(
          "broken", &ExpectationReport::broken,
          "An entry for each one that fails: the expected and the actual state, with the source "
          "lines.")
      .def_prop_ro("ok", &ExpectationReport::ok)
      .def("__bool__", &ExpectationReport::ok)
      .def("__str__", &ExpectationReport::to_string)
      .def("__repr__", [](const ExpectationReport& r) {
        return cat("<ExpectationReport: ", r.met.size(), " met, ", r.broken.size(), " broken>");
      });
  nb::class_<Expectations>(module, "Expectations", "Expectations about a program.")
      .def_static(
          "parse", [](const std::string& text) { return Expectations::parse(text).value(); },
          nb::arg("text"),
          "Parses lines, or items separated by `;`: `1 all-reduce over model, at most 64 KiB`, `at "
          "most 2 all-gathers`, `no all-to-all`, `no collectives`, `others allowed`, `no full "
          "replication above 64 KiB except \"p['pos']\"`, `fits with 10% spare`. `#` starts a "
          "comment.")
      .def_prop_ro("empty", &Expectations::empty)
      .def("__str__", &Expectations::to_string)
      .def("__repr__",
           [](const Expectations& e) { return cat("<Expectations: ", e.to_string(), ">"); })
      .def("__eq__",
           [](const Expectations& one, nb::handle other) {
             const Expectations* two = nullptr;
             return nb::try_cast<const Expectations*>(other, two) && two && one == *two;
           })
      .attr("__hash__") = nb::none();
  module.def("check_expectations", &check_expectations, nb::arg("report"), nb::arg("expected"));
  module.def("check_replication", check_replication, nb::arg("report"), nb::arg("least_bytes"),
             nb::arg("except_names"));
}

}  // namespace meshard::python
