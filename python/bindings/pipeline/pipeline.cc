// Pipelines of stages. The functions here take what python/meshard/pipeline.py has sorted.
#include "meshard/pipeline/pipeline.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "meshard/pipeline/schedule/schedule.h"
#include "meshard/pipeline/schedule/timeline.h"
#include "python/bindings/arrays/tensors.h"
#include "python/bindings/bindings.h"
#include "python/bindings/nn/optimizer_options.h"
#include "python/bindings/pipeline/pipelines.h"
#include "python/bindings/transforms/python_function.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

// --- schedules ---------------------------------------------------------------------------------

std::int64_t text_hash(std::string_view text) {
  return static_cast<std::int64_t>(std::hash<std::string_view>()(text) >> 1);
}

void check_place(int index, int count, std::string_view what) {
  if (index < 0 || index >= count)
    throw nb::index_error(cat("there is no ", what, " ", index, " of ", count).c_str());
}

PipelineAction action_of(nb::handle object) {
  const PipelineAction* action = nullptr;
  if (nb::try_cast(object, action) && action) return *action;
  std::string_view text;
  if (nb::try_cast(object, text)) return PipelineAction::parse(text).value();
  throw nb::type_error(cat("an action is an Action or its text, such as \"2F5\", not ",
                           nb::cast<std::string>(nb::repr(object)))
                           .c_str());
}

void bind_action(nb::module_& pipelines) {
  nb::class_<PipelineAction>(
      pipelines, "Action",
      "One piece of work of a stage. A value; Action(\"2F5\") is the forward pass of stage 2 for "
      "microbatch 5.\n\nRaises InvalidArgumentError for a text that is not an action.")
      .def(
          "__init__",
          [](PipelineAction* self, std::string_view text) {
            CallerLine line;
            new (self) PipelineAction(PipelineAction::parse(text).value());
          },
          nb::arg("text"))
      .def_prop_ro(
          "work", [](const PipelineAction& a) { return std::string(enum_name(a.work)); },
          "\"forward\", \"backward\", \"input gradient\", \"weight gradient\", \"update\", "
          "\"send forward\" or \"send backward\".")
      .def_ro("stage", &PipelineAction::stage)
      .def_ro("microbatch", &PipelineAction::microbatch,
              "0 for an update, which belongs to all microbatches.")
      .def("__str__", &PipelineAction::to_string)
      .def("__repr__", [](const PipelineAction& a) { return cat("Action('", a.to_string(), "')"); })
      .def("__eq__",
           [](const PipelineAction& a, nb::handle b) {
             PipelineAction* other = nullptr;
             return nb::try_cast(b, other) && other && a == *other;
           })
      .def("__hash__", [](const PipelineAction& a) { return text_hash(a.to_string()); })
      .def("__getstate__", &PipelineAction::to_string)
      .def("__setstate__", [](PipelineAction& self, const std::string& text) {
        new (&self) PipelineAction(PipelineAction::parse(text).value());
      });
}

void bind_schedule(nb::module_& pipelines) {
  using Schedule = PipelineSchedule;
  nb::class_<Schedule>(pipelines, "Schedule",
                       "In which order each worker does which work. A value; its text is what "
                       "parse() reads: a line for each worker.")
      .def_static(
          "parse",
          [](std::string_view text, std::string name) {
            return Schedule::parse(text, std::move(name)).value();
          },
          nb::arg("text"), nb::arg("name") = "custom",
          "A schedule of one's own: one line for each worker, with its actions separated by spaces "
          "or commas, `0F0 0F1 0B0 0B1`. `2F5` is the forward pass of stage 2 for microbatch 5; F: "
          "forward, B: backward, I and W: the gradients of inputs and parameters apart, U: the "
          "optimizer's step.\n\n"
          "Raises InvalidArgumentError for actions that are missing, twice or of no use, and for "
          "a deadlock, with what each worker waits for.")
      .def_static(
          "of",
          [](const std::vector<std::vector<nb::object>>& orders, std::string name) {
            CallerLine line;
            std::vector<std::vector<PipelineAction>> all;
            for (const auto& order : orders) {
              all.emplace_back();
              for (const nb::object& one : order) all.back().push_back(action_of(one));
            }
            return Schedule::of(std::move(all), std::move(name)).value();
          },
          nb::arg("orders"), nb::arg("name") = "custom",
          "A schedule of one's own, from the actions of each worker in order: Actions or their "
          "texts. Raises as parse() does.")
      .def_prop_ro(
          "name", [](const Schedule& s) { return s.name(); }, "The name of the schedule.")
      .def_prop_ro("stages", &Schedule::stages, "The number of stages.")
      .def_prop_ro("workers", &Schedule::workers, "The number of workers.")
      .def_prop_ro("microbatches", &Schedule::microbatches, "The number of microbatches.")
      .def_prop_ro("splits_gradients", &Schedule::splits_gradients,
                   "Whether the gradients of inputs and parameters are separate actions for some "
                   "microbatch.")
      .def_prop_ro(
          "peak_activations", [](const Schedule& s) { return s.peak_activations(); },
          "For each stage, the largest number of microbatches whose activations it keeps.")
      .def(
          "worker_of",
          [](const Schedule& s, int stage) {
            check_place(stage, s.stages(), "stage");
            return s.worker_of(stage);
          },
          nb::arg("stage"), "The worker that runs a stage.")
      .def(
          "order",
          [](const Schedule& s, int worker) {
            check_place(worker, s.workers(), "worker");
            return s.order(worker);
          },
          nb::arg("worker"), "The actions of a worker, in order.")
      .def("__str__", &Schedule::to_string)
      .def("__repr__",
           [](const Schedule& s) {
             return cat("<meshard.pipeline.Schedule ", s.name(), ": ", s.stages(), " stages, ",
                        s.microbatches(), " microbatches>");
           })
      .def("__eq__",
           [](const Schedule& a, nb::handle b) {
             Schedule* other = nullptr;
             return nb::try_cast(b, other) && other && a == *other;
           })
      .def("__hash__", [](const Schedule& s) { return text_hash(s.to_string()); })
      .def("__getstate__", [](const Schedule& s) { return std::pair(s.to_string(), s.name()); })
      .def("__setstate__",
           [](Schedule& self, const std::pair<std::string, std::string>& state) {
             new (&self) Schedule(Schedule::parse(state.first, state.second).value());
           })
      .def(
          "_repr_html_", [](const Schedule& s) { return picture_svg(timeline_of(s)); },
          "The picture of its timeline, for notebooks.");
  nb::class_<PipelineTimeline::Entry>(pipelines, "TimedAction", "An action and when it runs.")
      .def_ro("action", &PipelineTimeline::Entry::action)
      .def_ro("start", &PipelineTimeline::Entry::start)
      .def_ro("end", &PipelineTimeline::Entry::end)
      .def("__repr__", [](const PipelineTimeline::Entry& e) {
        return cat("<", e.action.to_string(), " from ", e.start, " to ", e.end, ">");
      });
  nb::class_<PipelineTimeline>(pipelines, "Timeline", "A schedule with the time of each action.")
      .def_ro("workers", &PipelineTimeline::workers,
              "The actions of each worker, in order. Sends are among them if the schedule lists "
              "them.")
      .def_ro("length", &PipelineTimeline::length, "The end of the last action.")
      .def_prop_ro("bubble", &PipelineTimeline::bubble,
                   "The fraction of the workers' time in which they wait.")
      .def_prop_ro("slowest", &PipelineTimeline::slowest, "The worker that works longest.")
      .def(
          "busy",
          [](const PipelineTimeline& t, int worker) {
            check_place(worker, static_cast<int>(t.workers.size()), "worker");
            return t.busy(worker);
          },
          nb::arg("worker"), "The time that a worker works.")
      .def(
          "picture",
          [](const PipelineTimeline& t, std::size_t most_columns) {
            CallerLine line;
            return picture(t, most_columns, line.where());
          },
          nb::arg("most_columns") = 60, "The timeline as text: a line for each worker.")
      .def("svg", &picture_svg, "The timeline as an image.")
      .def(
          "trace_json", [](const PipelineTimeline& t, double s) { return trace_json(t, s); },
          nb::arg("seconds") = 1.0,
          "The timeline as a trace for Perfetto; `seconds` is the length of its unit.")
      .def("__str__", [](const PipelineTimeline& t) { return picture(t); })
      .def("_repr_html_", &picture_svg);
  pipelines.def("timeline",
                [](const Schedule& schedule, const std::vector<std::vector<double>>& rows) {
                  CallerLine line;
                  return timeline_of(schedule, times_of(rows), line.where());
                });
  const auto standard = [&](const char* name, PipelineSchedule (*make)(int, int, SourceLocation),
                            const char* doc) {
    pipelines.def(
        name,
        [make](int stages, int microbatches) {
          CallerLine line;
          return make(stages, microbatches, line.where());
        },
        nb::arg("stages"), nb::arg("microbatches"), doc);
  };
  standard("gpipe", &gpipe, "All forward passes, then all backward passes (GPipe).");
  standard("one_forward_one_backward", &one_forward_one_backward,
           "1F1B: stage s keeps the activations of at most stages - s microbatches.");
  standard("zero_bubble", &zero_bubble,
           "ZB-H1: the gradients of parameters fill the bubbles of 1F1B.");
  pipelines.def(
      "interleaved",
      [](int workers, int chunks, int microbatches) {
        CallerLine line;
        return interleaved(workers, chunks, microbatches, line.where());
      },
      nb::arg("workers"), nb::arg("chunks"), nb::arg("microbatches"),
      "Interleaved 1F1B: each worker has `chunks` stages; stage s is on worker s % workers.");
}

// --- stages ------------------------------------------------------------------------------------

struct FirstStage {
  PythonFunction function;
  PyTree operator()(const PyTree& parameters, const PyTree& batch) const {
    return function(parameters, batch);
  }
};

struct LaterStage {
  PythonFunction function;
  PyTree operator()(const PyTree& parameters, const PyTree& carry, const PyTree& batch) const {
    return function(parameters, carry, batch);
  }
};

void bind_stage(nb::module_& pipelines) {
  nb::class_<PipelineStage>(pipelines, "StageBase")
      .def(
          "__init__",
          [](PipelineStage* self, const Mesh& mesh, const PyTree& parameters, nb::object function,
             bool takes_carry, std::string name, bool checkpoint) {
            CallerLine line;
            PipelineStageOptions options{.name = std::move(name), .checkpoint = checkpoint};
            PythonFunction f(std::move(function));
            if (takes_carry)
              new (self) PipelineStage(mesh, parameters, LaterStage{std::move(f)},
                                       std::move(options), line.where());
            else
              new (self) PipelineStage(mesh, parameters, FirstStage{std::move(f)},
                                       std::move(options), line.where());
          },
          nb::arg("mesh"), nb::arg("parameters").none(), nb::arg("function"),
          nb::arg("takes_carry"), nb::arg("name"), nb::arg("checkpoint"))
      .def_prop_ro("mesh", [](const PipelineStage& s) { return s.mesh(); })
      .def_prop_ro(
          "parameters", [](const PipelineStage& s) { return s.parameters().as<PyTree>(); },
          "The parameters that it was made with; those of the pipeline are "
          "Pipeline.parameters(stage).")
      .def_prop_ro("name", [](const PipelineStage& s) { return s.options().name; })
      .def_prop_ro("checkpoint", [](const PipelineStage& s) { return s.options().checkpoint; })
      .def("__repr__", [](const PipelineStage& s) {
        return cat("<meshard.pipeline.Stage", s.options().name.empty() ? "" : " ", s.options().name,
                   " on ", s.mesh().to_string(), ">");
      });
}

// --- the pipeline ------------------------------------------------------------------------------

PipelineOptimizer sgd(nb::object rate, double momentum, bool nesterov, double weight_decay,
                      std::int64_t decay_rank) {
  return sgd_of(std::move(rate), momentum, nesterov, weight_decay, decay_rank);
}

PipelineOptimizer adam(nb::object rate, double beta1, double beta2, double epsilon,
                       double weight_decay, std::int64_t decay_rank, bool efficient) {
  return adam_of(std::move(rate), beta1, beta2, epsilon, weight_decay, decay_rank, efficient);
}

// One structure for each microbatch.
std::vector<PyTree> trees_of(const std::vector<nb::object>& microbatches) {
  std::vector<PyTree> trees;
  for (const nb::object& one : microbatches) trees.push_back(batch_tree(one));
  return trees;
}

nb::object loss_of(Pipeline& pipeline,
                   Tensor (Pipeline::*run)(const std::vector<PyTree>&, SourceLocation),
                   const std::vector<nb::object>& microbatches) {
  CallerLine line;
  std::vector<PyTree> batch = trees_of(microbatches);
  Tensor loss;
  {
    Unlocked unlocked;
    loss = (pipeline.*run)(batch, line.where());
  }
  return tensor_object(loss);
}

void bind_running(nb::module_& pipelines) {
  const nb::class_<PipelineOptimizer> optimizer_class(pipelines, "Optimizer");
  pipelines.def("sgd", sgd);
  pipelines.def("adam", adam);
  nb::class_<Judging>(pipelines, "Judging")
      .def(
          "__init__",
          [](Judging* self, const PipelineOptimizer* optimizer, double clip_norm,
             std::vector<std::vector<double>> times, std::optional<std::int64_t> memory) {
            new (self) Judging{optimizer ? *optimizer : PipelineOptimizer(), clip_norm,
                               std::move(times), memory};
          },
          nb::arg("optimizer").none(), nb::arg("clip_norm"), nb::arg("times"),
          nb::arg("memory").none());
  nb::class_<PipelineStats>(pipelines, "Stats", "What a pipeline has done.")
      .def_ro("launches", &PipelineStats::launches, "Programs launched for the work of stages.")
      .def_ro("sends", &PipelineStats::sends, "Tensors sent from one stage to another.")
      .def_ro("peak_activations", &PipelineStats::peak_activations,
              "For each stage, the largest number of microbatches whose activations it kept.")
      .def_ro("peak_activation_bytes", &PipelineStats::peak_activation_bytes,
              "The same in bytes, on all its devices together.")
      .def("__repr__", [](const PipelineStats& s) {
        return cat("Stats(launches=", s.launches, ", sends=", s.sends, ", peak_activations=[",
                   join(s.peak_activations, ", "), "])");
      });
  nb::class_<Pipeline>(pipelines, "PipelineBase")
      .def(
          "__init__",
          [](Pipeline* self, const std::vector<const PipelineStage*>& stages,
             const PipelineSchedule& schedule, const PipelineOptimizer* optimizer,
             double clip_norm) {
            CallerLine line;
            std::vector<PipelineStage> all;
            for (const PipelineStage* stage : stages) all.push_back(*stage);
            PipelineOptions options{.optimizer = optimizer ? *optimizer : PipelineOptimizer(),
                                    .clip_norm = clip_norm};
            Unlocked unlocked;
            new (self) Pipeline(std::move(all), schedule, std::move(options), line.where());
          },
          nb::arg("stages"), nb::arg("schedule"), nb::arg("optimizer").none(), nb::arg("clip_norm"))
      .def(
          "backward",
          [](Pipeline& self, const std::vector<nb::object>& microbatches) {
            return loss_of(self, &Pipeline::backward<PyTree>, microbatches);
          },
          nb::arg("microbatches"),
          "The mean loss of the microbatches; computes the gradients, without an update.")
      .def(
          "step",
          [](Pipeline& self, const std::vector<nb::object>& microbatches) {
            return loss_of(self, &Pipeline::step<PyTree>, microbatches);
          },
          nb::arg("microbatches"),
          "The same, then a step of the optimizer. If anything fails, the parameters are as "
          "before, and the error names stage, work and microbatch.")
      .def(
          "parameters",
          [](const Pipeline& self, int stage) {
            CallerLine line;
            return self.parameters<PyTree>(stage, line.where());
          },
          nb::arg("stage"), "The parameters of a stage, in their structure.")
      .def(
          "gradients",
          [](const Pipeline& self, int stage) {
            CallerLine line;
            return self.gradients<PyTree>(stage, line.where());
          },
          nb::arg("stage"), "The gradients of the last backward().")
      .def_prop_ro("schedule", [](const Pipeline& self) { return self.schedule(); })
      .def_prop_ro("stats", [](const Pipeline& self) { return self.stats(); })
      .def("__repr__", [](const Pipeline& self) {
        const PipelineSchedule& schedule = self.schedule();
        return cat("<meshard.pipeline.Pipeline of ", schedule.stages(), " stages, ",
                   schedule.name(), " with ", schedule.microbatches(), " microbatches>");
      });
}

}  // namespace

std::vector<StageTimes> times_of(const std::vector<std::vector<double>>& rows) {
  std::vector<StageTimes> times;
  for (const std::vector<double>& row : rows)
    times.push_back({.forward = row[0],
                     .input_gradient = row[1],
                     .weight_gradient = row[2],
                     .update = row[3],
                     .send_forward = row[4],
                     .send_backward = row[5]});
  return times;
}

PyTree batch_tree(const nb::object& batch) { return PyTree::of(batch).with_statics_in_form(); }

void bind_pipeline(nb::module_& module) {
  nb::module_ pipelines = module.def_submodule("pipeline", "Pipelines of stages.");
  bind_action(pipelines);
  bind_schedule(pipelines);
  bind_stage(pipelines);
  bind_running(pipelines);
  bind_pipeline_reports(pipelines);
}

}  // namespace meshard::python
