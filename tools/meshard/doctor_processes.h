// meshard doctor --processes: whether several processes work together.
#pragma once

namespace meshard::tool {

/// Joins the run and checks it, as each of its processes; process 0 prints a report. Started alone,
/// it prints how a run is started and what of that is installed.
/// @param limit seconds to wait for other processes in each step
/// @return the exit code: 0; 1 if something does not work; 2 if the processes do not come together
int doctor_processes(double limit);

}  // namespace meshard::tool
