// The source lines of a compiled module's instructions, as a user wants to read them.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "meshard/hlo/module.h"

namespace meshard {

/// True for a file that belongs to an installed package, to Python's own library, or to the
/// interpreter (`<frozen runpy>`): a user did not write it.
bool is_library_file(std::string_view path);

/// Value type: where an instruction comes from.
struct SourcePlace {
  /// The user's line, `train.py:88`; empty if unknown.
  std::string place;
  /// The line of a library's function that the user's line called, `linear.py:287`, if that is
  /// where the op was recorded; else empty.
  std::string via;
  friend bool operator==(const SourcePlace&, const SourcePlace&) = default;
};

/// Finds the source lines of a module's instructions. Files are named by as much of their path as
/// distinguishes them from the module's other files: `train.py`, or `model/layers.py` if there is
/// another `layers.py`.
class SourcePlaces {
 public:
  /// Knows no module: files are named without their folders.
  SourcePlaces() = default;
  explicit SourcePlaces(const HloModule& module);

  /// The innermost line of the instruction's call stack that is not in a library file. If there is
  /// none, the innermost line.
  /// @pre the module outlives this object
  SourcePlace of(const HloMetadata& metadata) const;

 private:
  std::string line(const std::string& file, std::int64_t number) const;
  const HloModule* module_ = nullptr;
  std::unordered_map<std::string, std::string> short_names_;
};

/// Names the instructions that have no name of an op but a line of the module's own text, in the
/// file `-`: MLIR's parser gives ops without a location this place. An instruction with XLA's own
/// name, `call.1/all-reduce.1`, gets the line of the op if the text has one such op.
/// @param names the names of the ops, by line
void name_by_lines(const std::map<std::int64_t, std::string>& names, HloModule& module);

}  // namespace meshard
