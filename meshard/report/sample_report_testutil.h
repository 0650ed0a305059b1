// Handwritten reports, for tests of the code that shows reports.
#pragma once
#include "meshard/explain/report.h"

namespace meshard {

/// A training step on two slices of 4 x 4 TPUs, with something in every part of the report and
/// every field set somewhere: loops, reshards, shardings of rank 3 and 4, sub-axes, padding,
/// non-ASCII names.
ProgramReport::Parts sample_parts();

/// The same program on `nodes` GPU nodes of 8, without coordinates.
ProgramReport::Parts sample_gpu_parts(std::int64_t nodes);

/// `entries` steps, and a collective for every fourth, on a slice of 16 x 32 TPUs.
ProgramReport::Parts large_parts(std::size_t entries);

/// Texts from a hostile module: markup, quotes, control characters, invalid UTF-8.
ProgramReport::Parts hostile_parts();

/// True if the two reports have the same content.
bool same_report(const ProgramReport::Parts& a, const ProgramReport::Parts& b);

}  // namespace meshard
