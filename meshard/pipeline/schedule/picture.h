// Pipelines as pictures: who works when.
#pragma once
#include <string>

#include "meshard/pipeline/schedule/timeline.h"

namespace meshard {

/// Draws a timeline as text (UTF-8): a line for each worker, with one column for each unit of time.
/// The unit is the shortest action that takes time, or longer if the picture would be wider than
/// `most_columns`. An action shows its letters and its microbatch, with its stage if workers have
/// several; `·` is waiting. Actions that take no time, and sends, are not drawn.
///
/// `picture(timeline_of(one_forward_one_backward(2, 3)))`:
/// ```
/// worker 0 │F0│F1│· │· │B0───│F2│B1───│· │B2───│
/// worker 1 │· │F0│B0───│F1│B1───│F2│B2───│· │· │
/// ```
/// @error invalid argument, thrown: most_columns is 0
std::string picture(const PipelineTimeline& timeline, std::size_t most_columns = 60,
                    SourceLocation where = SourceLocation::current());

/// The same as a self-contained SVG image: a row for each worker, a box for each action, with a
/// color for each kind of work. Lists the kinds below.
std::string picture_svg(const PipelineTimeline& timeline);

/// The same as a trace for Perfetto and chrome://tracing: a track for each worker.
/// @param seconds the length of the timeline's unit
std::string trace_json(const PipelineTimeline& timeline, double seconds = 1);

}  // namespace meshard
