// meshard schedule: shows who works when in a pipeline, and how long workers wait.
#include "meshard/pipeline/schedule/schedule.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <memory>

#include "meshard/base/cat.h"
#include "meshard/pipeline/schedule/timeline.h"
#include "meshard/report/diff_text.h"
#include "tools/meshard/load_report.h"
#include "tools/meshard/subcommands.h"
#include "tools/meshard/terminal.h"
#include "tools/meshard/write_file.h"

namespace meshard::tool {
namespace {

struct ScheduleArguments {
  std::string schedule, svg, trace;
  int stages = 0, microbatches = 0, chunks = 1;
  std::vector<double> forward, backward, input_gradient, weight_gradient, update, send;
  std::size_t columns = 60;
  bool actions = false, no_picture = false;
};

[[noreturn]] void refuse_schedule(std::string message) {
  throw Error(ErrorCode::kInvalidArgument, cat("[schedule] ", message));
}

PipelineSchedule standard_schedule(const ScheduleArguments& given) {
  if (given.stages < 1 || given.microbatches < 1)
    refuse_schedule(cat(given.schedule, " needs --stages and --microbatches of at least 1"));
  if (given.chunks < 1 || given.stages % given.chunks != 0)
    refuse_schedule(cat(given.stages, " stages cannot be divided into ", given.chunks,
                        " chunks for each worker"));
  bool alternates = given.schedule == "1f1b";
  if (alternates && given.chunks > 1)
    return interleaved(given.stages / given.chunks, given.chunks, given.microbatches);
  if (alternates) return one_forward_one_backward(given.stages, given.microbatches);
  if (given.chunks > 1) refuse_schedule(cat("only 1f1b has --chunks, not ", given.schedule));
  return given.schedule == "gpipe" ? gpipe(given.stages, given.microbatches)
                                   : zero_bubble(given.stages, given.microbatches);
}

PipelineSchedule schedule_of(const ScheduleArguments& given) {
  constexpr std::string_view kStandard[] = {"1f1b", "gpipe", "zb-h1"};
  if (std::find(std::begin(kStandard), std::end(kStandard), given.schedule) != std::end(kStandard))
    return standard_schedule(given);
  std::string text;
  try {
    text = read_file(given.schedule);
  } catch (const Error& error) {
    refuse_schedule(
        cat(given.schedule, " is neither 1f1b, gpipe or zb-h1, nor a file: ", error.message()));
  }
  PipelineSchedule schedule =
      PipelineSchedule::parse(text, given.schedule == "-" ? "custom" : given.schedule).value();
  if (given.chunks != 1 || (given.stages != 0 && given.stages != schedule.stages()) ||
      (given.microbatches != 0 && given.microbatches != schedule.microbatches()))
    refuse_schedule(cat("the file has ", schedule.stages(), " stages and ", schedule.microbatches(),
                        " microbatches: leave out --stages, --microbatches and --chunks"));
  return schedule;
}

// The time of each stage: one number for each, or one for all. Nothing is given: `otherwise`.
class TimesOption {
 public:
  TimesOption(const char* option, const std::vector<double>& given, int stages) : given_(given) {
    if (given.size() > 1 && given.size() != static_cast<std::size_t>(stages))
      refuse_schedule(cat(option, " has ", given.size(), " times for ", stages, " stages"));
  }
  double at(std::size_t stage, double otherwise) const {
    if (given_.empty()) return otherwise;
    return given_[given_.size() == 1 ? 0 : stage];
  }

 private:
  const std::vector<double>& given_;
};

std::vector<StageTimes> times_of(const ScheduleArguments& given, int stages) {
  if (!given.backward.empty() && (!given.input_gradient.empty() || !given.weight_gradient.empty()))
    refuse_schedule(
        "--backward is the sum of --input-gradient and --weight-gradient: give it or them");
  TimesOption forward("--forward", given.forward, stages),
      backward("--backward", given.backward, stages),
      inputs("--input-gradient", given.input_gradient, stages),
      weights("--weight-gradient", given.weight_gradient, stages),
      update("--update", given.update, stages), send("--send", given.send, stages);
  std::vector<StageTimes> times;
  for (std::size_t s = 0; s < static_cast<std::size_t>(stages); ++s) {
    double one = forward.at(s, 1), half = backward.at(s, 2 * one) / 2;
    times.push_back({.forward = one,
                     .input_gradient = inputs.at(s, half),
                     .weight_gradient = weights.at(s, half),
                     .update = update.at(s, 0),
                     .send_forward = send.at(s, 0),
                     .send_backward = send.at(s, 0)});
  }
  return times;
}

std::string facts_text(const PipelineSchedule& schedule, const PipelineTimeline& timeline) {
  std::string out = cat(schedule.name(), ": ", schedule.stages(), " stages, ", schedule.workers(),
                        " workers, ", schedule.microbatches(), " microbatches\n");
  int slowest = timeline.slowest();
  append(out, cat("bubble   ", growth_percent(timeline.bubble()), " of the workers' time\n"));
  append(out, cat("length   ", timeline.length, ", of which worker ", slowest,
                  ", the busiest, works ", timeline.busy(slowest), "\n"));
  append(out, cat("kept     activations of ", join(schedule.peak_activations(), ", "),
                  " microbatches, by stage\n"));
  return out;
}

int run_schedule(const ScheduleArguments& given) {
  PipelineSchedule schedule = schedule_of(given);
  PipelineTimeline timeline = timeline_of(schedule, times_of(given, schedule.stages()));
  constexpr double kMillisecond = 1e-3;
  if (!given.svg.empty()) write_file(given.svg, picture_svg(timeline));
  if (!given.trace.empty()) write_file(given.trace, trace_json(timeline, kMillisecond) + "\n");
  if (given.svg == "-" || given.trace == "-") return 0;  // instead of the text
  std::string out = facts_text(schedule, timeline);
  if (!given.no_picture) append(out, picture(timeline, given.columns));
  if (given.actions) append(out, schedule.to_string());
  print_text(out);
  return 0;
}

}  // namespace

void add_schedule(CLI::App& app, int& exit_code) {
  auto given = std::make_shared<ScheduleArguments>();
  CLI::App* command = app.add_subcommand(
      "schedule", "Shows who works when in a pipeline of stages, and how long workers wait");
  command->footer(
      "A file has a line for each worker, with its actions in order: 0F0 0F1 0B0 0B1. It is an "
      "error\n"
      "if an action is missing or listed twice, or if workers wait for each other.\n"
      "Times are in any unit; the trace takes them as milliseconds. A list has a time for each "
      "stage:\n"
      "10,10,14. Neither devices nor a plugin are needed.");
  command
      ->add_option("schedule", given->schedule,
                   "1f1b, gpipe, zb-h1, or a file with a schedule (- is standard input)")
      ->required();
  command->add_option("--stages", given->stages, "number of stages");
  command->add_option("--microbatches", given->microbatches, "number of microbatches");
  command->add_option("--chunks", given->chunks,
                      "stages of each worker: interleaved 1F1B (default: 1)");
  const auto times = [&](const char* name, std::vector<double>& to, const char* what) {
    command->add_option(name, to, what)->delimiter(',')->type_name("TIME,...");
  };
  times("--forward", given->forward, "time of a forward pass (default: 1)");
  times("--backward", given->backward, "time of a backward pass (default: twice the forward pass)");
  times("--input-gradient", given->input_gradient,
        "time of the gradients of inputs (default: half of a backward pass)");
  times("--weight-gradient", given->weight_gradient,
        "time of the gradients of parameters (default: half of a backward pass)");
  times("--update", given->update, "time of the optimizer's step (default: 0)");
  times("--send", given->send, "time until a result is at the next stage (default: 0)");
  command->add_option("--svg", given->svg, "write the picture as an SVG image");
  command->add_option("--trace", given->trace, "write a trace for Perfetto");
  command->add_option("--columns", given->columns, "greatest width of the picture (default: 60)");
  command->add_flag("--actions", given->actions, "also list the actions, as a file has them");
  command->add_flag("--no-picture", given->no_picture, "omit the picture");
  command->callback([given, &exit_code] { exit_code = run_schedule(*given); });
}

}  // namespace meshard::tool
