// Tested in meshard/explain/cost/estimate_test.cc.
#include "meshard/explain/cost/roofline.h"

#include <algorithm>

namespace meshard {
namespace {

double sum_over(const std::vector<LinkTime>& links) {
  double sum = 0;
  for (const LinkTime& link : links) sum += link.seconds;
  return sum;
}

}  // namespace

double ProgramCost::total_flops() const {
  double sum = 0;
  for (const Flops& each : flops) sum += each.matrix + each.other;
  return sum;
}

double Roofline::link_seconds() const {
  return communication_seconds ? *communication_seconds : sum_over(links);
}

double Roofline::seconds() const {
  return std::max({compute_seconds, memory_seconds, link_seconds()});
}

double Roofline::seconds_in_sequence() const {
  return compute_seconds + memory_seconds + sum_over(links);
}

std::string_view Roofline::bound_by() const {
  double most = seconds();
  if (most == compute_seconds) return "compute";
  return most == memory_seconds ? "memory" : "communication";
}

std::string_view to_string(TimelineEntry::Kind kind) { return enum_name(kind); }

}  // namespace meshard
