// explain() and plan() of pipelines, for hardware that may be absent.
#include <nanobind/nanobind.h>

#include <utility>

#include "meshard/pipeline/schedule/timeline.h"
#include "meshard/plan/pipeline/plan_pipeline.h"
#include "python/bindings/interpreter/casters.h"
#include "python/bindings/interpreter/lock.h"
#include "python/bindings/interpreter/source_line.h"
#include "python/bindings/pipeline/pipelines.h"
#include "python/bindings/reports/report_fields.h"
#include "python/bindings/reports/reports.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

ExplainPipelineOptions options_of(const Judging& judging, const ReportOptions& compile) {
  ExplainPipelineOptions options;
  options.pipeline.optimizer = judging.optimizer;
  options.pipeline.clip_norm = judging.clip_norm;
  options.times = times_of(judging.times);
  options.memory = judging.memory;
  options.overrides = compile.overrides;
  options.links = compile.links();
  options.compile = compile.compile();
  return options;
}

// --- explain -----------------------------------------------------------------------------------

PipelineReport explain_stages(const std::vector<const PipelineStage*>& stages,
                              const PipelineSchedule& schedule, const nb::object& microbatch,
                              const Target& target, const ReportOptions& compile,
                              const Judging& judging) {
  CallerLine line;
  std::vector<PipelineStage> all;
  for (const PipelineStage* stage : stages) all.push_back(*stage);
  ExplainPipelineOptions options = options_of(judging, compile);
  PyTree batch = batch_tree(microbatch);
  Unlocked unlocked;
  return explain_pipeline(target, all, schedule, batch, options, line.where());
}

void bind_stage_reports(nb::module_& pipelines) {
  using Memory = PipelineStageMemory;
  bind_value<Memory>(pipelines, "StageMemory", {}, "PipelineStageMemory")
      .def_prop_ro("spare", &Memory::spare, comment_of("PipelineStageMemory.spare"))
      .def("__repr__", [](const Memory& m) {
        return cat("<meshard.pipeline.StageMemory: ", m.total, " bytes>");
      });
  bind_value<PipelineProgram>(pipelines, "StageProgram", "report", "PipelineProgram")
      .def_prop_ro(
          "report", [](const PipelineProgram& p) { return *p.report; },
          "The Report of the program, as meshard.explain() returns it. If another stage has the "
          "same program, that of the one that was compiled.");
  using Stage = PipelineStageReport;
  bind_value<Stage>(pipelines, "StageReport", "times devices()", "PipelineStageReport")
      .def_prop_ro(
          "times",
          [](const Stage& s) {
            nb::dict times;
            visit_fields(s.times, [&](std::string_view name, double time) {
              times[nb::str(name.data(), name.size())] = time;
            });
            return times;
          },
          "The times of its actions, by the names of timeline()'s arguments.")
      .def("__repr__", [](const Stage& s) {
        return cat("<meshard.pipeline.StageReport ", s.name, " on worker ", s.worker, ">");
      });
  bind_value<PipelineTransfer>(pipelines, "Transfer", "from to", "PipelineTransfer")
      .def_ro("from_stage", &PipelineTransfer::from)
      .def_ro("to_stage", &PipelineTransfer::to)
      .def("__repr__", [](const PipelineTransfer& t) {
        return cat("<meshard.pipeline.Transfer ", t.from, " -> ", t.to, ": ", t.bytes, " bytes>");
      });
}

void bind_explaining(nb::module_& pipelines) {
  bind_stage_reports(pipelines);
  using Report = PipelineReport;
  nb::class_<Report> type(
      pipelines, "Report",
      "What the compiler and the schedule make of a pipeline. print() shows it.");
  add_fields<Report::Parts>(type, "PipelineReportParts", "workers() microbatches()",
                            [](const Report& r) -> const Report::Parts& { return r.parts(); });
  type.def(
          "to_json", [](const Report& r, std::size_t indent) { return to_json(r, indent); },
          nb::arg("indent") = 0, "The report as JSON, without those of the programs.")
      .def("__str__", [](const Report& r) { return r.to_string(); })
      .def("__repr__",
           [](const Report& r) {
             return cat("<meshard.pipeline.Report: ", r.stages().size(), " stages on ",
                        r.parts().target, ", ", r.duration_text(r.time()), " a step>");
           })
      .def(
          "_repr_html_", [](const Report& r) { return picture_svg(r.timeline()); },
          "The picture of the timeline, for notebooks.");
  pipelines.def("explain", explain_stages);
}

// A target, or its name.
Target target_of(const nb::object& topology) {
  std::string_view name;
  if (nb::try_cast(topology, name)) return Target::parse(name).value();
  return nb::cast<const Target&>(topology);
}

// --- plan --------------------------------------------------------------------------------------

PipelineScheduleKind kind_of(std::string_view name) {
  for (const auto& each : EnumNames<PipelineScheduleKind>::kNames)
    if (each.name == name) return each.value;
  throw nb::value_error(cat("no schedule \"", name, "\" to plan: GPipe, 1F1B, ZB-H1").c_str());
}

// Layers whose stages a Python function makes: stage(begin, end, mesh).
PipelineLayers layers_of(int count, nb::object stage) {
  ObjectRef make = share(std::move(stage));
  return {count, [make](int begin, int end, const Mesh& mesh) {
            Locked locked;
            UserCode own_lines;
            nb::object made = nb::handle(make.get())(begin, end, mesh);
            return nb::cast<const PipelineStage&>(made);
          }};
}

void bind_candidate(nb::module_& pipelines) {
  using Candidate = PipelineCandidate;
  nb::class_<Candidate> type(pipelines, "Candidate", comment_of("PipelineCandidate"));
  add_fields<Candidate>(type, "PipelineCandidate", "axes");
  type.def(
          "__init__",
          [](Candidate* self, std::string_view schedule, int workers, const nb::dict& axes,
             std::vector<int> layers, int microbatches, int chunks) {
            Candidate made{.schedule = kind_of(schedule),
                           .workers = workers,
                           .chunks = chunks,
                           .microbatches = microbatches,
                           .axes = {},
                           .layers = std::move(layers)};
            for (auto [name, size] : axes)  // in their order
              made.axes.push_back({nb::cast<std::string>(name), nb::cast<std::int64_t>(size)});
            new (self) Candidate(std::move(made));
          },
          nb::arg("schedule"), nb::arg("workers"), nb::arg("axes"), nb::arg("layers"),
          nb::arg("microbatches"), nb::arg("chunks") = 1,
          "`schedule` is \"GPipe\", \"1F1B\" or \"ZB-H1\"; `axes` has the sizes of a worker's "
          "axes, "
          "`{\"data\": 2, \"model\": 2}`; `layers` the number of layers of each of workers * "
          "chunks "
          "stages.")
      .def_prop_ro(
          "axes", [](const Candidate& c) { return axes_dict(c.axes); },
          "The axes of each worker's submesh and their sizes.")
      .def_prop_ro("stages", &Candidate::stages, "The number of stages.")
      .def(
          "make_schedule",
          [](const Candidate& c) {
            CallerLine line;
            return schedule_of(c, line.where());
          },
          "Its Schedule.")
      .def(
          "make_stages",
          [](const Candidate& c, const PipelineLayers& layers, const nb::object& target) {
            CallerLine line;
            return stages_of(c, layers, target_of(target), line.where());
          },
          nb::arg("layers"), nb::arg("topology"),
          "Its stages on submeshes of the target's devices. With the same devices in this process, "
          "they are what a Pipeline takes.")
      .def("__str__", &Candidate::to_string)
      .def("__repr__",
           [](const Candidate& c) {
             return cat("<meshard.pipeline.Candidate ", c.to_string(), ">");
           })
      .def("__eq__", [](const Candidate& a, nb::handle b) {
        Candidate* other = nullptr;
        return nb::try_cast(b, other) && other && a == *other;
      });
}

PipelinePlan plan_layers(const PipelineLayers& layers, const nb::object& batch,
                         const Target& target, const ReportOptions& compile, const Judging& judging,
                         const std::vector<std::string>& schedules, PlanPipelineOptions options) {
  CallerLine line;
  if (!schedules.empty()) {
    options.schedules.clear();
    for (const std::string& name : schedules) options.schedules.push_back(kind_of(name));
  }
  options.explain = options_of(judging, compile);
  PyTree tree = batch_tree(batch);
  Unlocked unlocked;
  return plan_pipeline(target, layers, tree, options, line.where());
}

void bind_planning(nb::module_& pipelines) {
  nb::class_<PipelineLayers>(pipelines, "LayersBase")
      .def("__init__",
           [](PipelineLayers* self, int count, nb::object stage) {
             new (self) PipelineLayers(layers_of(count, std::move(stage)));
           })
      .def("__len__", [](const PipelineLayers& l) { return l.count; })
      .def("__repr__",
           [](const PipelineLayers& l) { return cat("<meshard.pipeline.Layers: ", l.count, ">"); });
  bind_candidate(pipelines);
  using Planned = PlannedPipeline;
  bind_value<Planned>(pipelines, "PlannedCandidate", {}, "PlannedPipeline")
      .def_prop_ro("fits", &Planned::fits)
      .def("__repr__", [](const Planned& p) {
        return cat("<meshard.pipeline.PlannedCandidate ", p.candidate.to_string(), ">");
      });
  using Plan = PipelinePlan;
  nb::class_<Plan> plans(pipelines, "Plan",
                         "What plan() found. print() shows the best candidates.");
  add_fields<Plan>(plans, "PipelinePlan");
  plans
      .def_prop_ro("anything_fits", &Plan::anything_fits,
                   "True if a candidate fits into the memory of the devices.")
      .def_prop_ro("given_is_best", &Plan::given_is_best, comment_of("PipelinePlan.given_is_best"))
      .def(
          "reason",
          [](const Plan& p, std::size_t index) {
            if (index >= p.ranking.size())
              throw nb::index_error(
                  cat("there is no candidate ", index, " of ", p.ranking.size()).c_str());
            return p.reason(index);
          },
          nb::arg("index"), "Why the candidate is where it is.")
      .def(
          "to_json", [](const Plan& p, std::size_t indent) { return to_json(p, indent); },
          nb::arg("indent") = 0, "The plan as JSON.")
      .def("__str__", [](const Plan& p) { return p.to_string(); })
      .def("__repr__", [](const Plan& p) {
        return cat("<meshard.pipeline.Plan: ", p.ranking.size(), " candidates explained>");
      });
  pipelines.def(
      "plan",
      [](const PipelineLayers& layers, const nb::object& batch, const Target& target,
         const ReportOptions& compile, const Judging& judging,
         const std::vector<std::string>& schedules, std::vector<std::string> axes,
         std::map<std::string, std::int64_t> pinned, std::vector<int> workers,
         std::vector<int> microbatches, std::vector<int> chunks, std::size_t most,
         std::size_t moves, const PipelineCandidate* given) {
        PlanPipelineOptions options;
        options.axes = std::move(axes);
        options.pinned = std::move(pinned);
        options.workers = std::move(workers);
        options.microbatches = std::move(microbatches);
        options.chunks = std::move(chunks);
        options.most = most;
        options.moves = moves;
        if (given) options.given = *given;
        return plan_layers(layers, batch, target, compile, judging, schedules, std::move(options));
      },
      nb::arg("layers"), nb::arg("batch"), nb::arg("target"), nb::arg("compile"),
      nb::arg("judging"), nb::arg("schedules"), nb::arg("axes"), nb::arg("pinned"),
      nb::arg("workers"), nb::arg("microbatches"), nb::arg("chunks"), nb::arg("most"),
      nb::arg("moves"), nb::arg("given").none());
}

}  // namespace

void bind_pipeline_reports(nb::module_& pipelines) {
  bind_explaining(pipelines);
  bind_planning(pipelines);
}

}  // namespace meshard::python
