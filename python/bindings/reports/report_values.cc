// The values inside a report: collectives, placements, memory, times.
#include <algorithm>

#include "meshard/explain/same.h"
#include "python/bindings/interpreter/casters.h"
#include "python/bindings/reports/report_fields.h"
#include "python/bindings/reports/reports.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

struct FieldComment {
  std::string_view name;
  const char* text;
};

// By name; made by tools/reference/field_comments.py.
constexpr FieldComment kFieldComments[] = {
#include "field_comments.inc"
};

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
          "certainty", [](const T& one) { return python_value(one.origin.certainty); },
          nb::sig("def certainty(self) -> str"),
          "How the source line was found: `exact`, `merged`, `inferred`, `unknown`.");
}

std::vector<std::string> helpers_of(const CollectiveOrigin& origin) {
  std::vector<std::string> helpers;
  for (const OriginPlace& place : origin.places) helpers.push_back(place.via);
  return helpers;
}

void bind_collectives(nb::module_& module) {
  bind_value<CollectivePurpose>(module, "CollectivePurpose")
      .def("__repr__", [](const CollectivePurpose& p) {
        return cat("<CollectivePurpose: ", to_string(p.kind), purpose_text(p.kind, p.names), ">");
      });
  bind_value<LayerTraffic>(module, "LayerTraffic");
  nb::class_<ExplainedCollective> one(module, "Collective",
                                      "One collective of a compiled program: an instruction, or "
                                      "the collective that several instructions implement.");
  add_fields<Collective>(one, "Collective", "origin");
  one.def_prop_ro("bytes", &Collective::bytes, comment_of("Collective.bytes"))
      .def_prop_ro("total_bytes", &Collective::total_bytes, "`bytes` times `executions`.")
      .def_ro("instructions", &ExplainedCollective::instructions,
              "The instructions that implement it.")
      .def_prop_ro(
          "via", [](const ExplainedCollective& c) { return helpers_of(c.origin); },
          "For each of `ops`, the line of the library's function that the program's line called; "
          "empty if it called none.")
      .def_ro("reason", &ExplainedCollective::reason,
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
  nb::class_<Reshard> reshard = bind_value<Reshard>(module, "Reshard", "origin");
  add_origin(reshard);
}

void bind_values(nb::module_& module) {
  bind_value<ValuePlacement>(module, "ValuePlacement")
      .def_prop_ro("shape", [](const ValuePlacement& v) { return v.type.shape; })
      .def_prop_ro("dtype", [](const ValuePlacement& v) { return v.type.dtype; })
      .def_prop_ro("shard_shape", [](const ValuePlacement& v) { return v.shard().shape; })
      .def_prop_ro(
          "spec",
          [](const ValuePlacement& v) -> std::optional<std::string> {
            if (!v.sharding) return std::nullopt;
            return v.sharding->spec().to_string();
          },
          "The text of the partition spec, `P(\"data\", none)`; None without a sharding.");
  bind_value<MemoryUse>(module, "MemoryUse");
  bind_value<MeshProcesses>(module, "MeshProcesses");
  bind_value<BufferUse>(module, "BufferUse");
  bind_value<TargetSummary>(module, "TargetSummary")
      .def("__repr__", [](const TargetSummary& target) {
        return cat("<TargetSummary: ", target.name, ", ", target.devices, " devices>");
      });
}

void bind_comparisons(nb::module_& module) {
  bind_value<ModuleDifference>(module, "ModuleDifference");
  bind_value<ComparedProgram>(module, "ComparedProgram")
      .def("__repr__", [](const ComparedProgram& one) {
        return cat("<ComparedProgram: ", one.name, ", ", one.fingerprint,
                   one.difference ? ", another computation>" : ">");
      });
  bind_value<SameReport>(module, "SameReport")
      .def_prop_ro("same", &SameReport::same, comment_of("SameReport.same"))
      .def("__bool__", &SameReport::same);
}

void bind_costs(nb::module_& module) {
  bind_value<ProgramCost::Flops>(module, "Flops")
      .def("__repr__", [](const ProgramCost::Flops& flops) {
        return cat("<Flops: ", flops.element_type, ", matrix ", flops.matrix, ", other ",
                   flops.other, ">");
      });
  bind_value<ProgramCost>(module, "ProgramCost")
      .def_prop_ro("total_flops", &ProgramCost::total_flops)
      .def("__repr__", [](const ProgramCost& cost) {
        return cat("<ProgramCost: ", cost.total_flops(), " flops, ", cost.memory_bytes, " bytes>");
      });
  bind_value<LinkTime>(module, "LinkTime").def("__repr__", [](const LinkTime& time) {
    return cat("<LinkTime: ", time.axes, " on ", time.link, ", ", time.seconds, " s>");
  });
  bind_value<Roofline>(module, "Roofline")
      .def_prop_ro("link_seconds", &Roofline::link_seconds, comment_of("Roofline.link_seconds"))
      .def("__repr__", [](const Roofline& r) {
        return cat("<Roofline: ", r.seconds(), " s, bound by ", r.bound_by(), ">");
      });
  bind_value<TimelineEntry>(module, "TimelineEntry").def("__repr__", [](const TimelineEntry& step) {
    return cat("<TimelineEntry: ", step.opcode, " ", step.instruction, ">");
  });
  bind_value<CustomCallUse>(module, "CustomCallUse");
  bind_value<HostTransfers>(module, "HostTransfers");
}

void bind_schedule(nb::module_& module) {
  bind_value<TransferTime>(module, "TransferTime").def("__repr__", [](const TransferTime& time) {
    return cat("<TransferTime: ", time.exposed_seconds, " s exposed, ", time.hidden_seconds,
               " s hidden>");
  });
  bind_value<CommunicationTime>(module, "CommunicationTime")
      .def("__repr__", [](const CommunicationTime& one) {
        return cat("<CommunicationTime: ", one.kind, " ", one.axes, ", ", one.time.exposed_seconds,
                   " s exposed>");
      });
  bind_value<Schedule>(module, "Schedule").def("__repr__", [](const Schedule& schedule) {
    return cat("<Schedule: ", schedule.seconds, " s>");
  });
  bind_value<MeasuredRun>(module, "MeasuredRun").def("__repr__", [](const MeasuredRun& run) {
    return cat("<MeasuredRun: ", run.seconds, " s>");
  });
}

}  // namespace

const char* comment_of(std::string_view name) {
  auto found = std::ranges::lower_bound(kFieldComments, name, {}, &FieldComment::name);
  return found != std::end(kFieldComments) && found->name == name ? found->text : "";
}

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
  bind_collectives(module);
  bind_values(module);
  bind_comparisons(module);
  bind_costs(module);
  bind_schedule(module);
}

}  // namespace meshard::python
