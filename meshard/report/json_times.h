// The members of a report in JSON that tell its times.
#pragma once
#include "meshard/base/json_writer.h"
#include "meshard/explain/report.h"

namespace meshard {

/// Writes the members `schedule`, `custom_calls`, `host_transfers` and `measured` of an object.
/// @pre the writer is in an object
void write_times(JsonWriter& json, const ProgramReport::Parts& parts);

}  // namespace meshard
