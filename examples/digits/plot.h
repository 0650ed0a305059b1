// Line plots as SVG images.
#pragma once
#include <span>
#include <string>

namespace digits {

/// A self-contained SVG image of `values` over 1, 2, 3, .... It has axes with round numbers, the
/// values as a thin line, and their running mean as a thick one.
/// @pre at least one value; all finite
std::string line_plot(std::span<const double> values, const std::string& title,
                      const std::string& x_name, const std::string& y_name);

/// The distance between tick marks of an axis of this length. It is 1, 2 or 5 times a power of ten,
/// and gives 4 to 10 ticks.
double mark_distance(double length);

}  // namespace digits
