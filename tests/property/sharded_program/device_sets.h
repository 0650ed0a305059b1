// Which values may meet: the sets of devices of a program, and what is on which.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "tests/property/sharded_program/program.h"

namespace meshard::property {

/// Where a value is.
struct Home {
  int set = -1;             ///< of DeviceSets; -1: nobody placed it
  bool replicated = false;  ///< marked so: every device of the set has the whole
  bool scalar = false;      ///< of rank 0
  bool marked = false;      ///< said where, not only computed there
  bool is_free() const { return set < 0; }
};

/// The sets of devices of a program's meshes.
class DeviceSets {
 public:
  /// The number of this set, whatever the order.
  int number_of(std::vector<std::int64_t> devices);
  int count() const { return static_cast<int>(sets_.size()); }
  /// Whether all devices of `inner` are devices of `outer`.
  bool contains(int outer, int inner) const;
  /// Whether a value may be used where the others are on `set`: it is there, or free, or a scalar,
  /// or replicated on these devices and others.
  bool may_come(const Home& home, int set) const;
  /// Where the result of values that meet is. None: they must not meet, or it is not said where
  /// they do.
  std::optional<Home> meet(const std::vector<Home>& values, bool scalar_result) const;

 private:
  std::vector<std::vector<std::int64_t>> sets_;
};

/// Where the result of a step outside of a trace is; none if what it meets must not meet.
/// @param first its operand number kept_operand(), if it has one
/// @param marked where its placement is, of a mark or a transfer
std::optional<Home> home_of_result(const DeviceSets& sets, const Step& step,
                                   const std::vector<Home>& met, const Home& first,
                                   const Home& marked, bool scalar_result);
/// The operand whose place the result keeps, if it keeps one: the carry of a loop, else the first.
std::size_t kept_operand(const Step& step);
/// A placement's devices, for a value of this rank.
Home home_of_placement(const Placement& placement, int set, int rank);
/// Whether all values of a program may meet where they do.
bool may_run(const Program& program);

}  // namespace meshard::property
