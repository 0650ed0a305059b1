#include "meshard/pipeline/schedule/timeline.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "meshard/base/cat.h"
#include "meshard/base/json_writer.h"

namespace meshard {
namespace {

using Entry = PipelineTimeline::Entry;

bool is_drawn(const Entry& one) { return !is_send(one.action.work) && one.end > one.start; }

bool shows_stages(const PipelineTimeline& timeline) {
  for (const auto& entries : timeline.workers)
    for (const Entry& one : entries)
      if (one.action.stage != entries.front().action.stage) return true;
  return false;
}

std::string label_of(const PipelineAction& one, bool with_stage) {
  std::string number = one.work == PipelineWork::kUpdate ? "" : cat(one.microbatch);
  return cat(with_stage ? cat(one.stage) : std::string(), letters(one.work), number);
}

// The shortest action, or longer, so that there are at most `most` columns.
double unit_of(const PipelineTimeline& timeline, std::size_t most) {
  double shortest = std::numeric_limits<double>::infinity();
  for (const auto& entries : timeline.workers)
    for (const Entry& one : entries)
      if (is_drawn(one)) shortest = std::min(shortest, one.end - one.start);
  return std::max(shortest, timeline.length / static_cast<double>(most));
}

std::size_t column_of(double time, double unit) {
  return static_cast<std::size_t>(std::lround(time / unit));
}

// Pads with spaces or lines to a width in characters. All labels are ASCII.
void append_padded(std::string& out, std::string text, std::size_t width, const char* fill) {
  text.resize(std::min(text.size(), width));
  append(out, text);
  for (std::size_t i = text.size(); i < width; ++i) append(out, fill);
}

std::string_view color_of(PipelineWork work) {
  switch (work) {
    case PipelineWork::kForward: return "#9ec5fe";
    case PipelineWork::kBackward: return "#a3cfbb";
    case PipelineWork::kInputGradient: return "#a6e9d5";
    case PipelineWork::kWeightGradient: return "#ffe69c";
    case PipelineWork::kUpdate: return "#e2b5ff";
    case PipelineWork::kSendForward:
    case PipelineWork::kSendBackward: break;
  }
  return "#dee2e6";
}

void append_box(std::string& out, double x, double y, double width, double height,
                std::string_view color, std::string_view text) {
  append(out, "<rect x=\"", x, "\" y=\"", y, "\" width=\"", width, "\" height=\"", height,
         "\" fill=\"", color, "\" stroke=\"#495057\" stroke-width=\"0.5\"/>\n");
  append(out, "<text x=\"", x + width / 2, "\" y=\"", y + height / 2 + 4,
         "\" text-anchor=\"middle\">", text, "</text>\n");
}

}  // namespace

double StageTimes::of(PipelineWork work) const {
  switch (work) {
    case PipelineWork::kForward: return forward;
    case PipelineWork::kBackward: return input_gradient + weight_gradient;
    case PipelineWork::kInputGradient: return input_gradient;
    case PipelineWork::kWeightGradient: return weight_gradient;
    case PipelineWork::kUpdate: return update;
    case PipelineWork::kSendForward: return send_forward;
    case PipelineWork::kSendBackward: return send_backward;
  }
  return 0;
}

double PipelineTimeline::busy(int worker) const {
  double sum = 0;
  for (const Entry& one : workers[static_cast<std::size_t>(worker)])
    if (!is_send(one.action.work)) sum += one.end - one.start;
  return sum;
}

double PipelineTimeline::bubble() const {
  double sum = 0;
  for (std::size_t worker = 0; worker < workers.size(); ++worker)
    sum += busy(static_cast<int>(worker));
  double all = static_cast<double>(workers.size()) * length;
  return all > 0 ? 1 - sum / all : 0;
}

int PipelineTimeline::slowest() const {
  int found = 0;
  for (int worker = 1; worker < static_cast<int>(workers.size()); ++worker)
    if (busy(worker) > busy(found)) found = worker;
  return found;
}

PipelineTimeline timeline_of(const PipelineSchedule& schedule, const std::vector<StageTimes>& times,
                             SourceLocation where) {
  if (times.size() != 1 && times.size() != static_cast<std::size_t>(schedule.stages()))
    throw_invalid(where, "[pipeline] got the times of ", times.size(), " stages for a schedule of ",
                  schedule.stages());
  for (std::size_t stage = 0; stage < times.size(); ++stage)
    for (const auto& [work, name] : EnumNames<PipelineWork>::kNames)
      if (double time = times[stage].of(work); !(time >= 0) || std::isinf(time))
        throw_invalid(where, "[pipeline] stage ", stage, ": ", name, " takes ", time,
                      "; expected a time of at least 0");
  internal::PipelineWalk walk =
      internal::walk_pipeline(schedule.orders(), [&](const PipelineAction& one) {
        return times[times.size() == 1 ? 0 : static_cast<std::size_t>(one.stage)].of(one.work);
      });
  PipelineTimeline timeline{.workers = std::move(walk.done)};
  for (const auto& entries : timeline.workers)
    for (const PipelineTimeline::Entry& one : entries)
      timeline.length = std::max(timeline.length, one.end);
  return timeline;
}

PipelineTimeline timeline_of(const PipelineSchedule& schedule, const StageTimes& times,
                             SourceLocation where) {
  return timeline_of(schedule, std::vector<StageTimes>{times}, where);
}

std::string picture(const PipelineTimeline& timeline, std::size_t most_columns,
                    SourceLocation where) {
  if (most_columns == 0) throw_invalid(where, "[pipeline] a picture needs at least one column");
  bool with_stage = shows_stages(timeline);
  double unit = unit_of(timeline, most_columns);
  std::size_t cell = 1, columns = 0;
  std::size_t digits = cat(timeline.workers.empty() ? 0 : timeline.workers.size() - 1).size();
  for (const auto& entries : timeline.workers)
    for (const Entry& one : entries)
      if (is_drawn(one)) {
        cell = std::max(cell, label_of(one.action, with_stage).size());
        columns = std::max(columns, column_of(one.end, unit));
      }
  std::string out;
  for (std::size_t worker = 0; worker < timeline.workers.size(); ++worker) {
    append(out, "worker ");
    append_padded(out, cat(worker), digits, " ");
    append(out, " │");
    std::size_t at = 0;
    const auto wait_until = [&](std::size_t column) {
      for (; at < column; ++at) {
        append(out, "·");
        append_padded(out, "", cell - 1, " ");
        append(out, "│");
      }
    };
    for (const Entry& one : timeline.workers[worker]) {
      if (!is_drawn(one)) continue;
      std::size_t begin = std::max(at, column_of(one.start, unit)), end = column_of(one.end, unit);
      if (end <= begin) continue;  // narrower than a column
      wait_until(begin);
      std::size_t width = (end - begin) * (cell + 1) - 1;
      std::string label = label_of(one.action, with_stage);
      append_padded(out, label, width, end - begin > 1 ? "─" : " ");
      append(out, "│");
      at = end;
    }
    wait_until(columns);
    append(out, "\n");
  }
  return out;
}

std::string picture_svg(const PipelineTimeline& timeline) {
  constexpr double kRow = 26, kBox = 22, kLeft = 80, kColumn = 26, kMostWidth = 4000;
  double unit = unit_of(timeline, static_cast<std::size_t>(kMostWidth / kColumn));
  double scale = std::isfinite(unit) && unit > 0 ? kColumn / unit : 0;
  double width = kLeft + timeline.length * scale + 10;
  double height = kRow * static_cast<double>(timeline.workers.size() + 2);
  bool with_stage = shows_stages(timeline);
  std::string out =
      cat("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", std::max(width, 640.0), " ",
          height, "\" font-family=\"sans-serif\" font-size=\"11\">\n");
  std::set<PipelineWork> used;
  for (std::size_t worker = 0; worker < timeline.workers.size(); ++worker) {
    double y = kRow * static_cast<double>(worker) + 4;
    append(out, "<text x=\"4\" y=\"", y + kBox / 2 + 4, "\">worker ", worker, "</text>\n");
    for (const Entry& one : timeline.workers[worker]) {
      if (!is_drawn(one)) continue;
      used.insert(one.action.work);
      append_box(out, kLeft + one.start * scale, y, (one.end - one.start) * scale, kBox,
                 color_of(one.action.work),
                 with_stage ? cat(one.action.stage, ":", one.action.microbatch)
                            : cat(one.action.microbatch));
    }
  }
  double x = kLeft, y = kRow * static_cast<double>(timeline.workers.size()) + 12;
  for (PipelineWork work : used) {
    append_box(out, x, y, 100, kBox, color_of(work), enum_name(work));
    x += 108;
  }
  append(out, "</svg>\n");
  return out;
}

std::string trace_json(const PipelineTimeline& timeline, double seconds) {
  double microseconds = seconds * 1e6;
  JsonWriter json;
  json.begin_object();
  json.key("traceEvents").begin_array();
  for (std::size_t worker = 0; worker < timeline.workers.size(); ++worker) {
    json.begin_object();
    json.member("name", "thread_name").member("ph", "M").member("pid", 0).member("tid", worker);
    json.key("args").begin_object();
    json.member("name", cat("worker ", worker));
    json.end_object();
    json.end_object();
    for (const Entry& one : timeline.workers[worker]) {
      json.begin_object();
      json.member("name", one.action.to_string());
      json.member("cat", enum_name(one.action.work));
      json.member("ph", "X").member("pid", 0).member("tid", worker);
      json.member("ts", one.start * microseconds);
      json.member("dur", (one.end - one.start) * microseconds);
      json.key("args").begin_object();
      json.member("stage", one.action.stage).member("microbatch", one.action.microbatch);
      json.end_object();
      json.end_object();
    }
  }
  json.end_array();
  json.end_object();
  return std::move(json).text();
}

}  // namespace meshard
