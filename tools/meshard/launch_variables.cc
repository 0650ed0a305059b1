// Tested in tools/meshard/check_doctor_processes.py.
#include "tools/meshard/launch_variables.h"

#include <unistd.h>

#include <cstdlib>

namespace meshard::tool {

LaunchVariables launch_variables() {
  LaunchVariables result;
  auto read = [](const char* name) { return static_cast<const char*>(std::getenv(name)); };
  if (Result<Launchers> launchers = recognize_launchers(read, ::geteuid()); launchers.ok())
    result.findings = launchers->findings;
  Result<Launch> launch = find_launch({}, read, ::geteuid());
  if (launch.ok())
    result.launch = *std::move(launch);
  else
    result.problem = launch.error().message();
  return result;
}

}  // namespace meshard::tool
