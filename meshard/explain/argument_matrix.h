// Table of the part of each argument that each device receives.
#pragma once
#include <string>

#include "meshard/explain/report.h"

namespace meshard {

/// A text table with a row for each device and a column for each argument. Rows are labeled with
/// device ids, in the order of the program's logical devices. A cell shows the part of the argument
/// that the device receives: `0:4,0:8` is rows 0 to 3 and columns 0 to 7, `all` the whole argument,
/// `empty` no elements (only padding). Devices outside the mesh have no row, because they do not
/// run the program.
///
/// ```
/// device  0 w    1 x
/// 6       0:4    all
/// 4       4:8    all
/// ```
/// @param most_devices maximum number of rows; the number of omitted rows is printed; 0: no limit
std::string argument_matrix(const ProgramReport& report, std::size_t most_devices = 64);

}  // namespace meshard
