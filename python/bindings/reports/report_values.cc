// The values inside a report: collectives, placements, memory, times.
#include <cmath>

#include "meshard/explain/byte_text.h"
#include "python/bindings/interpreter/casters.h"
#include "python/bindings/reports/reports.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

// The axes that a collective runs over, or None.
nb::object axes_or_none(const ExplainedCollective& one) {
  return one.axes ? axes_tuple(*one.axes) : nb::none();
}

template <class T, class... Extra>
void add_text(nb::class_<T, Extra...>& type, const char* name) {
  type.def("__str__", [](const T& value) { return value.to_string(); });
  type.def("__repr__",
           [name](const T& value) { return cat("<", name, ": ", value.to_string(), ">"); });
  if constexpr (requires(const T& a) { a == a; }) {
    type.def("__eq__", [](const T& value, nb::handle other) {
      const T* one = nullptr;
      return nb::try_cast<const T*>(other, one) && one && value == *one;
    });
    type.attr("__hash__") = nb::none();
  }
}

std::optional<std::string> file_of(const std::string& place) {
  std::size_t colon = place.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  return place.substr(0, colon);
}

std::optional<std::int64_t> line_of(const std::string& place) {
  std::size_t colon = place.rfind(':');
  if (colon == std::string::npos || colon + 1 == place.size()) return std::nullopt;
  std::int64_t line = 0;
  for (char digit : place.substr(colon + 1)) {
    if (digit < '0' || digit > '9') return std::nullopt;
    line = line * 10 + (digit - '0');
  }
  return line;
}

std::vector<std::string> places_of(const CollectiveOrigin& origin) {
  std::vector<std::string> places;
  for (const OriginPlace& place : origin.places)
    if (!place.to_string().empty()) places.push_back(place.to_string());
  return places;
}

// The first place with a source line.
std::string first_place(const CollectiveOrigin& origin) {
  for (const OriginPlace& place : origin.places)
    if (!place.place.empty()) return place.place;
  return "";
}

template <class T>
void add_origin(nb::class_<T>& type) {
  type.def_prop_ro(
          "places", [](const T& one) { return places_of(one.origin); },
          "The source lines, `model.py:42`; for an op without a line, its name.")
      .def_prop_ro(
          "ops",
          [](const T& one) {
            std::vector<std::string> ops;
            for (const OriginPlace& place : one.origin.places) ops.push_back(place.op);
            return ops;
          },
          "The ops of the program that it originates from.")
      .def_prop_ro(
          "file", [](const T& one) { return file_of(first_place(one.origin)); },
          "The file of the first source line; None if unknown.")
      .def_prop_ro(
          "line", [](const T& one) { return line_of(first_place(one.origin)); },
          "The number of the first source line; None if unknown.")
      .def_prop_ro(
          "certainty", [](const T& one) { return std::string(to_string(one.origin.certainty)); },
          "How the source line was found: `exact`, `merged`, `inferred`, `unknown`.");
}

std::vector<std::string> helpers_of(const CollectiveOrigin& origin) {
  std::vector<std::string> helpers;
  for (const OriginPlace& place : origin.places) helpers.push_back(place.via);
  return helpers;
}

void bind_purposes(nb::module_& module) {
  nb::class_<CollectivePurpose> purpose(module, "CollectivePurpose", "What a collective is for.");
  purpose
      .def_prop_ro(
          "kind", [](const CollectivePurpose& p) { return std::string(to_string(p.kind)); },
          "`weight`, `argument`, `gradient`, `update`, `result`, `activations`, `reshard`, `user`, "
          "`unknown`.")
      .def_prop_ro(
          "certainty",
          [](const CollectivePurpose& p) { return std::string(to_string(p.certainty)); },
          "`exact`: by the data flow; `inferred`: partly by the names of ops; `unknown`.")
      .def_ro("names", &CollectivePurpose::names,
              "The names of the arguments (for a result: of the results) concerned.")
      .def_ro("layer", &CollectivePurpose::layer, "The layer; empty if unknown.")
      .def_prop_ro(
          "phase", [](const CollectivePurpose& p) { return std::string(to_string(p.phase)); },
          "`forward`, `backward`, `optimizer`; empty if unknown.")
      .def_ro("before", &CollectivePurpose::from,
              "For a reshard: the sharding before; empty if unknown.")
      .def_ro("after", &CollectivePurpose::to, "For a reshard: the sharding after.")
      .def("__repr__", [](const CollectivePurpose& p) {
        return cat("<CollectivePurpose: ", to_string(p.kind), purpose_text(p.kind, p.names), ">");
      });
  nb::class_<LayerTraffic>(module, "LayerTraffic",
                           "The collectives of one layer in one phase that serve one purpose.")
      .def_ro("layer", &LayerTraffic::layer, "Empty: outside every layer, or unknown.")
      .def_prop_ro("phase", [](const LayerTraffic& r) { return std::string(to_string(r.phase)); })
      .def_prop_ro("purpose",
                   [](const LayerTraffic& r) { return std::string(to_string(r.purpose)); })
      .def_ro("count", &LayerTraffic::count, "Number of logical collectives.")
      .def_ro("executions", &LayerTraffic::executions, "Of all of them in one run.")
      .def_ro("total_bytes", &LayerTraffic::total_bytes, "Of all executions on one device.")
      .def("__str__", &LayerTraffic::to_string)
      .def("__repr__",
           [](const LayerTraffic& r) { return cat("<LayerTraffic: ", r.to_string(), ">"); });
}

void bind_collectives(nb::module_& module) {
  nb::class_<ExplainedCollective> one(module, "Collective",
                                      "One collective of a compiled program: an instruction, or "
                                      "the collective that several instructions implement.");
  one.def_prop_ro(
         "kind", [](const ExplainedCollective& c) { return std::string(to_string(c.kind)); },
         "The HLO name: `all-reduce`, `collective-permute`.")
      .def_ro("instruction", &Collective::instruction, "Its name in the compiled module.")
      .def_prop_ro(
          "axes", axes_or_none,
          "The mesh axes that it runs over, in mesh order. None: its groups match no axes.")
      .def_ro("group_size", &Collective::group_size,
              "Number of devices in a group; 0 for a permutation.")
      .def_prop_ro(
          "shifts",
          [](const ExplainedCollective& c) {
            std::vector<std::string> texts;
            for (const AxisShift& shift : c.shifts) texts.push_back(shift.to_string());
            return texts;
          },
          "How a permutation moves data, if all devices move it alike: `\"model\" by +1`.")
      .def_ro("bytes_in", &Collective::bytes_in, "Bytes that one device sends in one execution.")
      .def_ro("bytes_out", &Collective::bytes_out,
              "Bytes that one device receives in one execution.")
      .def_prop_ro("bytes", &Collective::bytes, "The larger of bytes_in and bytes_out.")
      .def_prop_ro("total_bytes", &Collective::total_bytes, "`bytes` times `executions`.")
      .def_ro("channel", &Collective::channel, "Channel id; 0: none.")
      .def_ro("loop_depth", &Collective::loop_depth, "Number of loops that contain it.")
      .def_ro("executions", &Collective::executions, "Number of executions in one run.")
      .def_ro("executions_known", &Collective::executions_known,
              "False if the trip count of a loop is unknown; such a loop counts as one iteration.")
      .def_ro("conditional", &Collective::conditional, "True in a branch, which may not be taken.")
      .def_prop_ro(
          "form", [](const ExplainedCollective& c) { return std::string(to_string(c.form)); },
          "How the compiler wrote it: `plain`, `fused`, `windowed einsum`, `across slices`.")
      .def_ro("continues", &Collective::continues,
              "True for a further fragment of an earlier collective, which has the bytes.")
      .def_ro("across_processes", &Collective::across_processes,
              "True if data goes from one process to another.")
      .def_ro("tensor", &Collective::tensor, "The value that is moved; empty if unknown.")
      .def_prop_ro(
          "cause", [](const ExplainedCollective& c) { return std::string(to_string(c.cause)); },
          "`asked for` by the program, `inserted` by the partitioner; empty if unknown.");
  one.def_prop_ro(
         "purpose", [](const ExplainedCollective& c) { return c.purpose; }, "What it is for.")
      .def_ro("instructions", &ExplainedCollective::instructions,
              "The instructions that implement it.")
      .def_prop_ro(
          "via", [](const ExplainedCollective& c) { return helpers_of(c.origin); },
          "For each of `ops`, the line of the library's function that the program's line called; "
          "empty if it called none.");
  one.def_ro("reason", &ExplainedCollective::reason,
             "Why it is needed, in a sentence; empty if unknown.")
      .def_ro("suggestion", &ExplainedCollective::suggestion,
              "How to avoid it, as predict() says; empty if there is nothing to say.");
  add_origin(one);
  add_text(one, "Collective");
  nb::class_<CollectiveGroup> group(module, "CollectiveGroup",
                                    "Collectives that differ only in size and instruction name.");
  group
      .def_prop_ro(
          "example", [](const CollectiveGroup& g) { return ExplainedCollective(g.example); },
          "One of them.")
      .def_prop_ro("kind",
                   [](const CollectiveGroup& g) { return std::string(to_string(g.example.kind)); })
      .def_prop_ro("axes",
                   [](const CollectiveGroup& g) {
                     return g.example.axes ? axes_tuple(*g.example.axes) : nb::none();
                   })
      .def_prop_ro("places", [](const CollectiveGroup& g) { return places_of(g.example.origin); })
      .def_prop_ro("executions", [](const CollectiveGroup& g) { return g.example.executions; })
      .def_ro("names", &CollectiveGroup::names, "The names of the purposes of all.")
      .def_ro("layers", &CollectiveGroup::layers, "The layers of all.")
      .def_ro("count", &CollectiveGroup::count, "How many.")
      .def_ro("bytes", &CollectiveGroup::bytes, "Sum of Collective.bytes.")
      .def_ro("total_bytes", &CollectiveGroup::total_bytes, "Sum of Collective.total_bytes.");
  add_text(group, "CollectiveGroup");
  nb::class_<Reshard> reshard(module, "Reshard", "A change of sharding in a compiled program.");
  reshard
      .def_prop_ro(
          "kind", [](const Reshard& r) { return std::string(to_string(r.kind)); },
          "`gather`, `exchange`, `full rematerialization`.")
      .def_ro("instruction", &Reshard::instruction, "The collective, or the copy.")
      .def_ro("type", &Reshard::type, "The value's global type; empty if unknown.")
      .def_ro("before", &Reshard::from, "The sharding before; empty if unknown.")
      .def_ro("after", &Reshard::to, "The sharding after; empty if unknown.")
      .def_ro("bytes", &Reshard::bytes, "Bytes that one device receives in one execution.")
      .def_ro("executions", &Reshard::executions, "Number of executions in one run.")
      .def_prop_ro(
          "who", [](const Reshard& r) { return std::string(to_string(r.who)); },
          "`asked for` by the program, `inserted` by the partitioner; empty if unknown.")
      .def_ro("cause", &Reshard::cause, "The reason, in a sentence; empty if unknown.");
  add_origin(reshard);
  add_text(reshard, "Reshard");
}

void bind_values(nb::module_& module) {
  nb::class_<ValuePlacement> value(module, "ValuePlacement",
                                   "How an argument, a result or an intermediate is sharded.");
  value.def_ro("name", &ValuePlacement::name, "The name in the program; empty: none.")
      .def_ro("place", &ValuePlacement::place, "The source line; empty if unknown.")
      .def_prop_ro(
          "type", [](const ValuePlacement& v) { return v.type.to_string(); }, "`f32[16,32]`.")
      .def_prop_ro("shape", [](const ValuePlacement& v) { return v.type.shape; })
      .def_prop_ro("dtype", [](const ValuePlacement& v) { return v.type.dtype; })
      .def_prop_ro(
          "padded", [](const ValuePlacement& v) { return v.padded.to_string(); },
          "The type in the compiled program: larger if its sharding does not divide it.")
      .def_prop_ro(
          "shard", [](const ValuePlacement& v) { return v.shard().to_string(); },
          "The type of one device's part.")
      .def_prop_ro("shard_shape", [](const ValuePlacement& v) { return v.shard().shape; })
      .def_prop_ro("shard_bytes", [](const ValuePlacement& v) { return v.shard().bytes(); })
      .def_prop_ro("padding_bytes", &ValuePlacement::padding_bytes,
                   "Bytes of padding over all devices.")
      .def_ro("sharding", &ValuePlacement::sharding, "None on a single device without a mesh.")
      .def_prop_ro(
          "spec",
          [](const ValuePlacement& v) -> std::optional<std::string> {
            if (!v.sharding) return std::nullopt;
            return v.sharding->spec().to_string();
          },
          "The text of the partition spec, `P(\"data\", none)`; None without a sharding.")
      .def_ro("chosen_by_compiler", &ValuePlacement::chosen_by_compiler,
              "False if the program requested the sharding.")
      .def_ro("donated", &ValuePlacement::donated, "True if its memory is reused for a result.")
      .def_ro("memory_kind", &ValuePlacement::memory_kind,
              "`pinned_host`, or empty for the device's memory.");
  add_text(value, "ValuePlacement");
  nb::class_<MemoryUse> memory(module, "MemoryUse",
                               "Memory that one device needs for a program, in bytes.");
  memory.def_ro("arguments", &MemoryUse::arguments)
      .def_ro("outputs", &MemoryUse::outputs)
      .def_ro("aliased", &MemoryUse::aliased,
              "The part of `outputs` that reuses donated arguments.")
      .def_ro("temporaries", &MemoryUse::temporaries)
      .def_ro("code", &MemoryUse::code, "0 if the compiler does not report it.")
      .def_ro("peak", &MemoryUse::peak, "Peak live memory; 0 if the compiler does not report it.")
      .def_ro("host_arguments", &MemoryUse::host_arguments, "In the memory of the host.")
      .def_ro("host_outputs", &MemoryUse::host_outputs, "In the memory of the host.")
      .def_ro("host_temporaries", &MemoryUse::host_temporaries, "In the memory of the host.")
      .def_ro("capacity", &MemoryUse::capacity, "The device's memory; None if unknown.")
      .def_prop_ro("total", &MemoryUse::total, "The memory needed for the program alone.")
      .def_prop_ro("spare", &MemoryUse::spare, "capacity - total; None without a capacity.");
  add_text(memory, "MemoryUse");
  nb::class_<BufferUse> buffer(module, "BufferUse", "One buffer in a device's main memory.");
  buffer
      .def_prop_ro(
          "role", [](const BufferUse& b) { return std::string(to_string(b.role)); },
          "`argument`, `output`, `temporary`, `constant`.")
      .def_ro("name", &BufferUse::name, "The argument, the output, or the defining instruction.")
      .def_ro("type", &BufferUse::type)
      .def_ro("bytes", &BufferUse::bytes, "With the padding of its layout.")
      .def_ro("place", &BufferUse::place, "The source line, or the op; empty if unknown.");
  add_text(buffer, "BufferUse");
  nb::class_<TargetSummary>(module, "TargetSummary",
                            "The hardware that a program was compiled for.")
      .def_ro("name", &TargetSummary::name, "`v6e:16x16`, or the platform of this process.")
      .def_ro("device_kind", &TargetSummary::device_kind, "The plugin's name of the devices.")
      .def_ro("devices", &TargetSummary::devices, "Number of devices.")
      .def_ro("compiler", &TargetSummary::compiler, "The compiler's version text.")
      .def_ro("compile_seconds", &TargetSummary::compile_seconds, "0 if it was compiled before.")
      .def("__repr__", [](const TargetSummary& target) {
        return cat("<TargetSummary: ", target.name, ", ", target.devices, " devices>");
      });
}

void bind_costs(nb::module_& module) {
  nb::class_<ProgramCost::Flops>(module, "Flops", "Operations of one element type.")
      .def_ro("element_type", &ProgramCost::Flops::element_type)
      .def_ro("matrix", &ProgramCost::Flops::matrix, "In matrix products and convolutions.")
      .def_ro("other", &ProgramCost::Flops::other)
      .def("__repr__", [](const ProgramCost::Flops& flops) {
        return cat("<Flops: ", flops.element_type, ", matrix ", flops.matrix, ", other ",
                   flops.other, ">");
      });
  nb::class_<ProgramCost>(module, "ProgramCost", "The work of one run on one device.")
      .def_ro("flops", &ProgramCost::flops, "By element type.")
      .def_prop_ro("total_flops", &ProgramCost::total_flops)
      .def_ro("memory_bytes", &ProgramCost::memory_bytes, "Read from and written to main memory.")
      .def_ro("transcendentals", &ProgramCost::transcendentals, "Number of exp, tanh, ...")
      .def_ro("loops_known", &ProgramCost::loops_known,
              "False if a trip count is unknown; such a loop counts as one iteration.")
      .def("__repr__", [](const ProgramCost& cost) {
        return cat("<ProgramCost: ", cost.total_flops(), " flops, ", cost.memory_bytes, " bytes>");
      });
  nb::class_<LinkTime>(module, "LinkTime", "The time of collectives on one kind of link.")
      .def_ro("axes", &LinkTime::axes, "The axes by name; empty if unknown.")
      .def_ro("link", &LinkTime::link, "`ICI`, `DCN`, `NVLink`, `device link`, ...")
      .def_ro("bytes", &LinkTime::bytes)
      .def_ro("seconds", &LinkTime::seconds)
      .def("__repr__", [](const LinkTime& time) {
        return cat("<LinkTime: ", time.axes, " on ", time.link, ", ", time.seconds, " s>");
      });
  nb::class_<Roofline>(module, "Roofline", "Lower bounds for the time of one run, in seconds.")
      .def_ro("compute_seconds", &Roofline::compute_seconds)
      .def_ro("memory_seconds", &Roofline::memory_seconds)
      .def_prop_ro("link_seconds", &Roofline::link_seconds,
                   "A bound for all collectives together, which overlap on different links.")
      .def_ro("links", &Roofline::links)
      .def_prop_ro(
          "seconds", [](const Roofline& r) { return r.seconds(); },
          "The largest of the three bounds.")
      .def_prop_ro("seconds_in_sequence", &Roofline::seconds_in_sequence,
                   "compute + memory + the sum over the links: without any overlap.")
      .def_prop_ro(
          "bound_by", [](const Roofline& r) { return std::string(r.bound_by()); },
          "`compute`, `memory` or `communication`.")
      .def_ro("rates_known", &Roofline::rates_known,
              "False if only links whose figures were given count.")
      .def_ro("sources", &Roofline::sources, "The figures that were used, with their sources.")
      .def("__repr__", [](const Roofline& r) {
        return cat("<Roofline: ", r.seconds(), " s, bound by ", r.bound_by(), ">");
      });
  nb::class_<TimelineEntry>(module, "TimelineEntry", "One step of the module, in execution order.")
      .def_prop_ro(
          "kind", [](const TimelineEntry& step) { return std::string(to_string(step.kind)); },
          "`compute`, `collective`, `copy`, `loop`, `other`.")
      .def_ro("instruction", &TimelineEntry::instruction)
      .def_ro("opcode", &TimelineEntry::opcode)
      .def_ro("depth", &TimelineEntry::depth, "Entries of a loop's body are one level deeper.")
      .def_ro("executions", &TimelineEntry::executions)
      .def_ro("flops", &TimelineEntry::flops, "Per execution.")
      .def_ro("memory_bytes", &TimelineEntry::memory_bytes, "Per execution.")
      .def_ro("link_bytes", &TimelineEntry::link_bytes, "Per execution.")
      .def_ro("host_bytes", &TimelineEntry::host_bytes, "From and to the host, per execution.")
      .def_ro("seconds", &TimelineEntry::seconds, "Per execution; 0 if unknown.")
      .def_ro("hidden_seconds", &TimelineEntry::hidden_seconds,
              "The time of its transfers that runs behind computation, per execution.")
      .def_ro("exposed_seconds", &TimelineEntry::exposed_seconds,
              "The time of its transfers that the device waits for, per execution.")
      .def_ro("measured_seconds", &TimelineEntry::measured_seconds,
              "The mean in a trace, per execution; None if not measured.")
      .def_ro("place", &TimelineEntry::place, "The source line; empty if unknown.")
      .def("__repr__", [](const TimelineEntry& step) {
        return cat("<TimelineEntry: ", step.opcode, " ", step.instruction, ">");
      });
}

void bind_schedule(nb::module_& module) {
  nb::class_<TransferTime>(module, "TransferTime", "Time of transfers, in seconds.")
      .def_ro("hidden_seconds", &TransferTime::hidden_seconds, "Behind computation.")
      .def_ro("exposed_seconds", &TransferTime::exposed_seconds, "The device waits.")
      .def("__repr__", [](const TransferTime& time) {
        return cat("<TransferTime: ", time.exposed_seconds, " s exposed, ", time.hidden_seconds,
                   " s hidden>");
      });
  nb::class_<CommunicationTime>(module, "CommunicationTime",
                                "The collectives of one kind over the same axes.")
      .def_ro("kind", &CommunicationTime::kind, "`all-gather`, `custom call`, ...")
      .def_ro("axes", &CommunicationTime::axes, "The axes by name; empty if unknown.")
      .def_ro("collectives", &CommunicationTime::collectives, "Number of instructions.")
      .def_ro("executions", &CommunicationTime::executions, "In one run.")
      .def_ro("time", &CommunicationTime::time)
      .def("__repr__", [](const CommunicationTime& one) {
        return cat("<CommunicationTime: ", one.kind, " ", one.axes, ", ", one.time.exposed_seconds,
                   " s exposed>");
      });
  nb::class_<Schedule>(module, "Schedule", "An estimate of the time of one run, in seconds.")
      .def_ro("seconds", &Schedule::seconds)
      .def_ro("busy_seconds", &Schedule::busy_seconds, "Computation and memory.")
      .def_ro("links", &Schedule::links, "Communication between devices.")
      .def_ro("host", &Schedule::host, "Transfers from and to host memory.")
      .def_ro("communication", &Schedule::communication, "Longest exposed time first.")
      .def("__repr__",
           [](const Schedule& schedule) { return cat("<Schedule: ", schedule.seconds, " s>"); });
  nb::class_<MeasuredRun>(module, "MeasuredRun", "Times of a trace: means over devices and runs.")
      .def_ro("devices", &MeasuredRun::devices)
      .def_ro("runs", &MeasuredRun::runs)
      .def_ro("seconds", &MeasuredRun::seconds, "In which a device runs steps, in one run.")
      .def_ro("links", &MeasuredRun::links)
      .def_ro("communication", &MeasuredRun::communication, "Longest exposed time first.")
      .def_ro("matched_events", &MeasuredRun::matched_events)
      .def_ro("unmatched_events", &MeasuredRun::unmatched_events,
              "Of instructions that the compiled module lacks.")
      .def_ro("unmatched", &MeasuredRun::unmatched, "Their names, at most ten.")
      .def("__repr__",
           [](const MeasuredRun& run) { return cat("<MeasuredRun: ", run.seconds, " s>"); });
  nb::class_<CustomCallUse> call(module, "CustomCallUse", "Custom calls of one name and place.");
  call.def_ro("name", &CustomCallUse::name, "The kernel's name, otherwise the target.")
      .def_ro("target", &CustomCallUse::target)
      .def_ro("count", &CustomCallUse::count)
      .def_ro("executions", &CustomCallUse::executions, "In one run.")
      .def_ro("operand_bytes", &CustomCallUse::operand_bytes, "In all executions.")
      .def_ro("result_bytes", &CustomCallUse::result_bytes, "In all executions.")
      .def_prop_ro(
          "source", [](const CustomCallUse& use) { return std::string(to_string(use.source)); },
          "Where the cost comes from: `unknown`, `counted`, `stated`, `given`.")
      .def_ro("flops", &CustomCallUse::flops, "In all executions.")
      .def_ro("memory_bytes", &CustomCallUse::memory_bytes, "In all executions.")
      .def_ro("link_bytes", &CustomCallUse::link_bytes, "In all executions.")
      .def_ro("communicates", &CustomCallUse::communicates, "Sends data to other devices.")
      .def_ro("place", &CustomCallUse::place, "The source line, or the op.");
  add_text(call, "CustomCallUse");
  nb::class_<HostTransfers> host(module, "HostTransfers", "Transfers from and to host memory.");
  host.def_ro("from_host", &HostTransfers::from_host, "Bytes in one run.")
      .def_ro("to_host", &HostTransfers::to_host, "Bytes in one run.")
      .def_ro("executions", &HostTransfers::executions)
      .def_ro("seconds", &HostTransfers::seconds, "0: the rate is unknown.");
  add_text(host, "HostTransfers");
}

}  // namespace

nb::dict axes_dict(const std::vector<MeshAxis>& axes) {
  nb::dict sizes;
  for (const MeshAxis& axis : axes) sizes[axis.name.c_str()] = axis.size;
  return sizes;
}

nb::object axes_tuple(const AxisList& axes) {
  nb::list texts;
  for (const AxisRef& axis : axes) texts.append(axis.is_whole() ? axis.name : axis.to_string());
  return nb::tuple(texts);
}

void bind_report_values(nb::module_& module) {
  bind_purposes(module);
  bind_collectives(module);
  bind_values(module);
  bind_costs(module);
  bind_schedule(module);
}

}  // namespace meshard::python
