#include "examples/digits/plot.h"

#include <meshard/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace digits {
namespace {

using meshard::append;
using meshard::cat;

constexpr double kWidth = 720, kHeight = 400, kLeft = 70, kRight = 20, kTop = 45, kBottom = 55;

// Rounds to a thousandth, so that 0.30000000000000004 prints as 0.3.
double rounded(double value) { return std::round(value * 1000) / 1000; }

// Maps values to image coordinates.
struct Frame {
  double x_end, y_end;
  double x(double value) const {
    return rounded(kLeft + value / x_end * (kWidth - kLeft - kRight));
  }
  double y(double value) const {
    return rounded(kHeight - kBottom - value / y_end * (kHeight - kTop - kBottom));
  }
};

std::string text(double x, double y, const std::string& words, const std::string& more) {
  return cat("<text x=\"", x, "\" y=\"", y, "\" ", more, ">", words, "</text>\n");
}

std::string line(double x1, double y1, double x2, double y2, const std::string& color) {
  return cat("<line x1=\"", x1, "\" y1=\"", y1, "\" x2=\"", x2, "\" y2=\"", y2, "\" stroke=\"",
             color, "\"/>\n");
}

std::string axes(const Frame& frame) {
  std::string out;
  double bottom = frame.y(0), right = frame.x(frame.x_end);
  double step = mark_distance(frame.x_end);
  for (double mark = 0; mark <= frame.x_end * 1.0001; mark += step) {
    append(out, line(frame.x(mark), bottom, frame.x(mark), bottom + 5, "#333"));
    append(out, text(frame.x(mark), bottom + 20, cat(rounded(mark)), "text-anchor=\"middle\""));
  }
  step = mark_distance(frame.y_end);
  for (double mark = 0; mark <= frame.y_end * 1.0001; mark += step) {
    append(out, line(kLeft, frame.y(mark), right, frame.y(mark), "#e4e4e4"));
    append(out, text(kLeft - 8, frame.y(mark) + 4, cat(rounded(mark)), "text-anchor=\"end\""));
  }
  append(out, line(kLeft, bottom, right, bottom, "#333"));
  append(out, line(kLeft, bottom, kLeft, kTop, "#333"));
  return out;
}

std::string curve(const Frame& frame, std::span<const double> values, const std::string& style) {
  std::string out = "<polyline fill=\"none\" " + style + " points=\"";
  for (std::size_t i = 0; i < values.size(); ++i)
    append(out, cat(i ? " " : "", frame.x(double(i + 1)), ",", frame.y(values[i])));
  return out + "\"/>\n";
}

// The mean of each value and the values before it, over at most a fiftieth of all values.
std::vector<double> running_mean(std::span<const double> values) {
  std::size_t span = std::max<std::size_t>(1, values.size() / 50);
  std::vector<double> out;
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    sum += values[i];
    if (i >= span) sum -= values[i - span];
    out.push_back(sum / double(std::min(i + 1, span)));
  }
  return out;
}

}  // namespace

double mark_distance(double length) {
  double power = std::pow(10, std::floor(std::log10(length)));
  double share = length / power;  // 1 <= share < 10
  if (share < 2) return power / 5;
  return share < 5 ? power / 2 : power;
}

std::string line_plot(std::span<const double> values, const std::string& title,
                      const std::string& x_name, const std::string& y_name) {
  double most = std::max(*std::max_element(values.begin(), values.end()), 1e-3);
  Frame frame{double(values.size()), most * 1.05};
  double middle = (kLeft + kWidth - kRight) / 2;
  std::string out =
      cat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", kWidth, "\" height=\"", kHeight,
          "\" font-family=\"sans-serif\" font-size=\"12\">\n",
          "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n");
  append(out, text(middle, 25, title, "text-anchor=\"middle\" font-size=\"16\""));
  append(out, text(middle, kHeight - 12, x_name, "text-anchor=\"middle\""));
  append(out, text(18, kHeight / 2, y_name,
                   cat("text-anchor=\"middle\" transform=\"rotate(-90 18 ", kHeight / 2, ")\"")));
  append(out, axes(frame));
  append(out, curve(frame, values, "stroke=\"#9dbcdc\" stroke-width=\"1\""));
  append(out, curve(frame, running_mean(values), "stroke=\"#1f5fa8\" stroke-width=\"2\""));
  return out + "</svg>\n";
}

}  // namespace digits
