// Traces of the runtime's activity.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>

#include "meshard/runtime/trace_events.h"
#include "python/bindings/bindings.h"
#include "python/bindings/interpreter/casters.h"
#include "python/bindings/interpreter/lock.h"
#include "python/bindings/interpreter/source_line.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

const char* name_of(TraceEvent::Track track) {
  switch (track) {
    case TraceEvent::Track::kHost: return "host";
    case TraceEvent::Track::kDevice: return "device";
    default: return "transfer";
  }
}

// Python's handle on a trace.
struct TraceHandle {
  std::shared_ptr<TraceSession> session;
};

template <class F>
auto unlocked(const TraceHandle& handle, const F& f) {
  Unlocked released;
  return f(*handle.session);
}

}  // namespace

void bind_traces(nb::module_& module) {
  nb::class_<TraceEvent>(module, "TraceEvent", "One operation of the runtime or of a device.")
      .def_prop_ro(
          "track", [](const TraceEvent& event) { return name_of(event.track); },
          "\"host\", \"device\" or \"transfer\".")
      .def_ro("category", &TraceEvent::category, "`compile`, `launch`, `execute`, `send`, ...")
      .def_ro("what", &TraceEvent::what, "The program's name, or the value's type.")
      .def_ro("place", &TraceEvent::place, "The user's source line; empty: none.")
      .def_ro("number", &TraceEvent::number, "The number of the thread, or the id of the device.")
      .def_ro("platform", &TraceEvent::platform, "The device type; empty for the host.")
      .def_ro("start", &TraceEvent::start, "In microseconds since the trace began.")
      .def_ro("duration", &TraceEvent::duration, "In microseconds.")
      .def_ro("bytes", &TraceEvent::bytes, "For transfers, placements and gathers.")
      .def_ro("failed", &TraceEvent::failed, "True if the work ended with an error.")
      .def("__repr__", [](const TraceEvent& event) {
        return cat("TraceEvent(", name_of(event.track), " ", event.number, ": ", event.category,
                   " ", event.what, ", ", event.duration, " us)");
      });
  nb::class_<TraceHandle>(
      module, "TraceSession",
      "A trace of the runtime's work, which start_trace() begins and stop() or the end of a "
      "`with` block ends.")
      .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__exit__",
           [](const TraceHandle& handle, nb::args) {
             unlocked(handle, [](TraceSession& session) { session.stop(); });
           })
      .def(
          "stop",
          [](const TraceHandle& handle) {
            unlocked(handle, [](TraceSession& session) { session.stop(); });
          },
          "Waits until the devices have finished all launches, and ends the trace.")
      .def(
          "events",
          [](const TraceHandle& handle) {
            return unlocked(handle, [](TraceSession& session) { return session.events(); });
          },
          "All events, sorted by start time. Stops the trace first.")
      .def(
          "left_out",
          [](const TraceHandle& handle) {
            return unlocked(handle, [](TraceSession& session) { return session.left_out(); });
          },
          "The number of events that were dropped because there were too many.")
      .def(
          "to_json",
          [](const TraceHandle& handle) {
            return unlocked(handle, [](TraceSession& session) { return session.to_json(); });
          },
          "The trace in Chrome's trace-event format.")
      .def(
          "write",
          [](const TraceHandle& handle, const std::string& path) {
            unlocked(handle, [&](TraceSession& session) { session.write(path).value(); });
          },
          nb::arg("path"), "Writes to_json() to a file, for ui.perfetto.dev.")
      .def(
          "write_all",
          [](const TraceHandle& handle, const std::string& path) {
            unlocked(handle, [&](TraceSession& session) { session.write_all(path).value(); });
          },
          nb::arg("path"),
          "Writes one file for all processes of the run, which all call this; the path of "
          "process 0 counts.");
  module.def(
      "start_trace",
      [](std::size_t most_events) {
        CallerLine line;
        return TraceHandle{
            std::make_shared<TraceSession>(start_trace({most_events}, line.where()))};
      },
      nb::arg("most_events"));
}

}  // namespace meshard::python
