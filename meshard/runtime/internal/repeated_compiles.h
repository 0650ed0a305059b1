// Notices places at which recorded operations are compiled again and again, and says why.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "meshard/base/source_location.h"
#include "meshard/graph/graph.h"

namespace meshard {

class LoadedProgram;

/// What a program of recorded operations consists of, without its values.
struct ProgramOutline {
  struct Step {
    const OpDef* op = nullptr;  // null: an input
    TensorType type;
    std::string attributes;  // as Attributes::print writes them
    SourceLocation where;
  };
  std::vector<Step> steps;  // the inputs, then the operations
};

ProgramOutline outline_of(const Graph& graph);

/// The first thing in which two programs differ: `the input from x.cc:3 is f32[9], was f32[8]`.
std::string difference(const ProgramOutline& now, const ProgramOutline& before);

/// For each place that reads recorded values, which programs it has compiled. Thread-safe.
class RepeatedCompiles {
 public:
  /// With this number of programs, a place is reported: once, as advice `lazy.compiles`.
  static constexpr std::size_t kMany = 16;

  /// Called when a read at `where` may have compiled `program`, which is known if it was noted
  /// there before. An outline is kept of the last program before the report. Without a place, it is
  /// a read of the library, and is not counted.
  void note(const LoadedProgram* program, const Graph& graph, SourceLocation where);

 private:
  struct Reads {
    std::vector<const LoadedProgram*> programs;  // compared only
    ProgramOutline last;
  };
  std::mutex mutex_;
  std::map<std::pair<std::string, std::uint32_t>, Reads> places_;
};

}  // namespace meshard
