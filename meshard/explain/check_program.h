// check_program: finds the first value that a partitioned module computes wrongly.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "meshard/array/host_array.h"
#include "meshard/base/fields.h"
#include "meshard/mesh/mesh.h"
#include "meshard/runtime/imported_program.h"

namespace meshard {

/// Options of check_program().
struct CheckProgramOptions {
  /// How many bytes of values inside the program are compared in one run. If they have more, it
  /// runs again for the others. A value that has more itself is compared, too.
  std::int64_t bytes_at_once = std::int64_t{1} << 30;
};

/// Value type: the first value that differs between the partitioned program and one device.
struct ProgramDifference {
  /// The op that computed it, `stablehlo.dot_general`; `result 2` if no op is known.
  std::string op;
  /// The user's line, `model.py:12`; otherwise `line 3 of the module`.
  std::string place;
  TensorType type;
  /// Its sharding in the partitioned program: `P("x", none) over Mesh(...)`, or `not sharded`.
  std::string sharding;
  /// The element with the largest distance.
  Dimensions index;
  /// The device that has it.
  int device = -1;
  /// Its value there, and on one device; for an op that one device cannot compute, its value on the
  /// first device that holds the same part.
  double partitioned = 0, expected = 0;
  /// Their distance in ULPs of the largest value; infinite if only one of them is NaN or infinite,
  /// or if integers differ.
  double ulps = 0;

  MESHARD_FIELDS(op, place, type, sharding, index, device, partitioned, expected, ulps)
};

/// Value type: the result of check_program().
struct ProgramCheck {
  /// The results of the program, all of which are compared.
  std::size_t results = 0;
  /// The ops whose results were compared; 0 if the program's results agree.
  std::size_t ops = 0;
  /// The largest distance among the results, in ULPs. If it is large and there is no difference,
  /// rounding explains it.
  double ulps = 0;
  /// The ops that one device cannot compute, `sdy.manual_computation at model.py:7`: their results
  /// are taken from the partitioned program.
  std::vector<std::string> not_compared;
  /// None if the program is right.
  std::optional<ProgramDifference> difference;

  MESHARD_FIELDS(results, ops, ulps, not_compared, difference)
  bool ok() const { return !difference; }
  /// `3 results agree, at most 2 ULPs apart`, or a description of the first difference; and what
  /// was not compared.
  std::string to_string() const;
};

/// Runs a loaded program partitioned, and on one device without its shardings, and compares the
/// results on every device. If they differ by more than 16 ULPs, the program runs again with the
/// values inside as further results: those of all ops of main and of the functions that it calls,
/// in groups of CheckProgramOptions::bytes_at_once. Each op is then run alone on one device with
/// the operands that it had in the partitioned program, so that only the op that is wrong differs,
/// and nothing that follows from it.
///
/// A difference is allowed if rounding explains it: the rounding of sums (explained_by_rounding()),
/// or of operands that are computed more precisely, for which the op is run again with operands
/// that are one ULP off.
///
/// One device cannot compute manual regions (shard_map), random bits of the compiler, and
/// collectives outside of manual regions. Their results are taken from the partitioned program;
/// devices that hold the same part of them must agree.
/// Loops and conditionals are compared by their results.
/// @param tensors in the order of ImportedProgram::arguments()
/// @error invalid argument: another number of tensors; the errors of ImportedProgram::module_text()
/// and of running it
ProgramCheck check_program(const ImportedProgram& program, std::span<const Tensor> tensors,
                           const CheckProgramOptions& options = {},
                           SourceLocation where = SourceLocation::current());

namespace internal {
/// Checks what a compiler could have made of a module: `partitioned` has the ops of `module`, one
/// for one, but some of them may compute something else.
/// @param arguments of main, in order
/// @param mesh the devices; none: the first ones
/// @error data loss: the texts cannot be parsed; invalid argument: they have other numbers of ops
/// or results
ProgramCheck check_program(const std::string& module, const std::string& partitioned,
                           std::span<const HostArray> arguments, const std::optional<Mesh>& mesh,
                           const CheckProgramOptions& options, SourceLocation where);
}  // namespace internal

}  // namespace meshard
