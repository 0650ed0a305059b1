// Whether programs are the same computation.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/fields.h"
#include "meshard/base/source_location.h"
#include "meshard/hlo/program_identity.h"
#include "meshard/target/compile_for.h"

namespace meshard {

/// A view of a program to compare.
struct NamedProgram {
  /// For texts: the file's name.
  std::string_view name;
  /// A StableHLO module as text or bytecode, a portable artifact, or a program of jax.export.
  std::string_view module;
};

/// Value type: a program that was compared, and how it differs from the first one.
struct ComparedProgram {
  std::string name;
  /// 32 hexadecimal digits, equal for programs that are the same computation. They depend on the
  /// version of the CPU plugin that read the modules.
  std::string fingerprint;
  std::int64_t devices = 1;
  /// The number of different ops.
  std::int64_t ops = 0;
  /// None: it is the same computation as the first.
  std::optional<ModuleDifference> difference = std::nullopt;

  MESHARD_FIELDS(name, fingerprint, devices, ops, difference)
};

/// Value type: the programs that were compared, in order.
struct SameReport {
  std::vector<ComparedProgram> programs;

  MESHARD_FIELDS(programs)
  /// Whether all are the same computation.
  bool same() const;
  /// The equal programs, and for each other one the first different op, with both source lines.
  std::string to_string() const;
};

/// Compares programs with the first one. Names, the order of ops, meshes' and axes' names and
/// source lines do not matter (ProgramIdentity). The CPU plugin reads each in a child process, so
/// that programs of other versions of a framework have the same form; nothing is run, and custom
/// calls need no handler.
/// @pre at least one program
/// @error invalid argument or data loss, with the program's name: it is not a module, or its sizes
/// are symbolic; not found without a CPU plugin; the errors of compile_for()
SameReport compare_programs(std::span<const NamedProgram> programs,
                            const CompileForOptions& options = {},
                            SourceLocation where = SourceLocation::current());

}  // namespace meshard
