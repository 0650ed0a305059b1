// Runs of several processes.
#include "meshard/processes/processes.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "meshard/processes/launch.h"
#include "meshard/processes/mpi_communicator.h"
#include "python/bindings/bindings.h"
#include "python/bindings/interpreter/casters.h"
#include "python/bindings/interpreter/lock.h"
#include "python/bindings/interpreter/release_later.h"
#include "python/bindings/interpreter/source_line.h"
#include "python/bindings/interpreter/waiting.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

// Seconds; None: no limit.
std::chrono::milliseconds limit_of(std::optional<double> seconds) {
  if (!seconds) return kNoTimeLimit;
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(*seconds * 1000)));
}

nb::bytes bytes_of(const std::string& text) { return nb::bytes(text.data(), text.size()); }

// The bytes of a `bytes` or of a `str` in UTF-8.
std::string text_of(nb::handle value) {
  if (PyUnicode_Check(value.ptr())) return nb::cast<std::string>(value);
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(value.ptr(), &data, &size) != 0) nb::raise_python_error();
  return {data, static_cast<std::size_t>(size)};
}

void call_on_loss(nb::handle function, const ProcessLoss& loss) {
  try {
    function(nb::cast(loss));
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("the on_loss function of initialize_processes");
  }
}

// Joins the run. Process 0 waits for the others, which may take minutes.
Processes join(std::string address, int rank, int count, std::string secret, int local_devices,
               const std::string& collectives, double join_seconds, double silence_seconds,
               nb::object on_loss) {
  ProcessesOptions options{.address = std::move(address),
                           .rank = rank,
                           .count = count,
                           .secret = std::move(secret),
                           .local_devices = local_devices,
                           .collectives = parse_collectives(collectives).value(),
                           .join_limit = limit_of(join_seconds),
                           .silence_limit = limit_of(silence_seconds)};
  if (!on_loss.is_none())
    options.on_loss = [function = share(std::move(on_loss))](const ProcessLoss& loss) {
      try {
        Locked locked;
        call_on_loss(nb::handle(function.get()), loss);
      } catch (const Error&) {  // the interpreter has ended
      }
    };
  Unlocked unlocked;  // in this thread: MPI must be started by the main one
  return initialize_processes(std::move(options)).value();
}

void put(const Processes& run, const std::string& key, nb::handle value) {
  run_waiting([run, key, text = text_of(value)] { run.store().put(key, text).value(); });
}

nb::bytes get(const Processes& run, const std::string& key, std::optional<double> seconds) {
  auto value = std::make_shared<std::string>();
  run_waiting([=] { *value = run.store().get(key, limit_of(seconds)).value(); });
  return bytes_of(*value);
}

nb::object try_get(const Processes& run, const std::string& key) {
  auto value = std::make_shared<std::optional<std::string>>();
  run_waiting([=] { *value = run.store().try_get(key).value(); });
  return *value ? nb::object(bytes_of(**value)) : nb::none();
}

void publish(const Processes& run, const std::string& key, nb::handle value) {
  run_waiting([run, key, text = text_of(value)] { run.store().publish(key, text).value(); });
}

void bind_values(nb::module_& module) {
  nb::class_<ProcessInfo>(module, "ProcessInfo", "One process of a run.")
      .def_ro("rank", &ProcessInfo::rank, "The number of the process, from 0.")
      .def_ro("host", &ProcessInfo::host, "The name of its machine.")
      .def_ro("pid", &ProcessInfo::pid, "Its process id on that machine.")
      .def_ro("local_devices", &ProcessInfo::local_devices,
              "How many devices of the run it has; their ids begin with first_device.")
      .def_ro("first_device", &ProcessInfo::first_device, "The id of its first device.")
      .def("__repr__", [](const ProcessInfo& info) { return info.to_string(); });
  nb::class_<ProcessLoss>(module, "ProcessLoss", "A process of the run that is gone.")
      .def_ro("rank", &ProcessLoss::rank, "The number of the process, from 0.")
      .def_prop_ro(
          "kind", [](const ProcessLoss& loss) { return std::string(to_string(loss.kind)); },
          "\"died\", \"stopped\", \"failed\", \"out of step\", \"gave up\", \"ended\" or \"waits "
          "elsewhere\".")
      .def_ro("status", &ProcessLoss::status, "The exit status of one that failed.")
      .def_ro("host", &ProcessLoss::host, "The name of its machine.")
      .def_ro("pid", &ProcessLoss::pid, "Its process id on that machine.")
      .def_ro("activity", &ProcessLoss::activity, "What it was in; empty if unknown.")
      .def("__repr__", [](const ProcessLoss& loss) { return loss.to_string(); });
}

}  // namespace

void bind_processes(nb::module_& module) {
  bind_values(module);
  nb::class_<Processes>(module, "Processes",
                        "This process's place in the run. May be used from several threads.")
      .def_prop_ro("process_index", &Processes::process_index,
                   "The number of this process, from 0.")
      .def_prop_ro("rank", &Processes::process_index,
                   "The former name of process_index, for one more release.")
      .def_prop_ro("size", &Processes::size, "How many processes there are.")
      .def_prop_ro("members", &Processes::members, "All processes, by rank.")
      .def(
          "barrier",
          [](const Processes& run, const std::string& name, std::optional<double> seconds) {
            SourceLocation where = caller_line();
            run_waiting([=] { run.barrier(name, limit_of(seconds), where).value(); });
          },
          nb::arg("name"), nb::arg("seconds").none() = nb::none(),
          "Waits until all processes have called barrier() with this name, which may be used "
          "again. Raises DeadlineExceededError, naming the missing processes, after a limit in "
          "seconds; UnavailableError if a process is lost.")
      .def("put", put, nb::arg("key"), nb::arg("value"),
           "Stores bytes (or a str) under a key for all processes, instead of those that it may "
           "have.")
      .def("get", get, nb::arg("key"), nb::arg("seconds").none() = nb::none(),
           "The bytes of a key; waits until a process puts them. Raises DeadlineExceededError "
           "after a limit in seconds.")
      .def("try_get", try_get, nb::arg("key"), "The bytes of a key, or None. Does not wait.")
      .def("publish", publish, nb::arg("key"), nb::arg("value"),
           "Stores bytes that are the same in all processes. Raises AlreadyExistsError if the key "
           "has others.")
      .def(
          "entering",
          [](const Processes& run, const std::string& activity) { run.entering(activity); },
          nb::arg("activity"),
          "Says what this process does next; the others report it if this one is lost.")
      .def(
          "finalize",
          [](const Processes& run) {
            Unlocked unlocked;
            run.finalize().value();
          },
          "Leaves the run; the end of the process does it, too. Waits for saves first, and for "
          "the other processes.")
      .def("__repr__",
           [](const Processes& run) { return cat("process ", run.rank(), " of ", run.size()); });
  module.def("initialize_processes", join, nb::arg("address"), nb::arg("rank"), nb::arg("count"),
             nb::arg("secret"), nb::arg("local_devices"), nb::arg("collectives"),
             nb::arg("join_seconds"), nb::arg("silence_seconds"), nb::arg("on_loss").none());
  module.def("processes", processes);
  module.def("mpi_library", [] {
    const MpiLibrary library = installed_mpi_library().value();
    return nb::make_tuple(library.path, library.name);
  });
}

}  // namespace meshard::python
