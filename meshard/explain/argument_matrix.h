// Which part of which argument each device is given.
#pragma once
#include <string>

#include "meshard/explain/report.h"

namespace meshard {

/// A row for each device that runs the program, by its id and in the order of the program's logical
/// devices; a column for each argument, with the part of it that the device is given: `0:4,0:8` are
/// rows 0 to 3 and columns 0 to 7, `all` the whole, `empty` no element (padding alone). Devices
/// beyond the mesh have no row: they do not take part.
///
/// ```
/// device  0 w    1 x
/// 6       0:4    all
/// 4       4:8    all
/// ```
/// @param most_devices further rows are left out, and counted; 0: none are
std::string argument_matrix(const ProgramReport& report, std::size_t most_devices = 64);

}  // namespace meshard
