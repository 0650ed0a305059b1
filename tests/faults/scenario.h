// Programs that the fault sweep runs, and the state required after one of their calls fails.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "meshard/meshard.h"

namespace faults {

/// Returns the number of launches that the plugin has accepted so far.
using CountLaunches = int (*)();

/// One attempt at a scenario: its inputs on devices, and the results that it has read.
class Run {
 public:
  /// @param folder for the files of this attempt
  Run(CountLaunches launches, std::string folder)
      : launches_(launches), folder_(std::move(folder)) {}

  struct Input {
    std::string name;
    meshard::Tensor tensor;
    meshard::HostArray value;
    /// Whether a launch consumes the input.
    bool donated;
    /// The number of launches accepted before the one that consumes it; -1: not launched yet.
    int launches_before = -1;
  };

  /// Records a value on devices that must still be `value` after any fault.
  void keep(std::string name, const meshard::Tensor& tensor, const meshard::HostArray& value) {
    inputs_.push_back({std::move(name), tensor, value, false});
  }
  /// The same for a value that the next launch consumes.
  void keep_until_launch(std::string name, const meshard::Tensor& tensor,
                         const meshard::HostArray& value) {
    inputs_.push_back({std::move(name), tensor, value, true});
  }
  /// Must be called directly before the launch that consumes inputs.
  void begin_launch() {
    for (Input& input : inputs_)
      if (input.donated && input.launches_before < 0) input.launches_before = launches_();
  }
  /// Reads a result.
  void read(const meshard::Tensor& tensor,
            meshard::SourceLocation where = meshard::SourceLocation::current());

  const std::string& folder() const { return folder_; }
  const std::vector<Input>& inputs() const { return inputs_; }
  /// All results that were read, concatenated.
  const std::vector<float>& values() const { return values_; }
  /// The number of launches accepted since the one that consumes `input` began.
  int launches_since(const Input& input) const {
    return input.launches_before < 0 ? 0 : launches_() - input.launches_before;
  }

 private:
  CountLaunches launches_;
  std::string folder_;
  std::vector<Input> inputs_;
  std::vector<float> values_;
};

struct Scenario {
  const char* name;
  /// @error an Error, if a plugin call fails
  void (*run)(Run& run);
  /// Whether to also sweep a fresh process, which includes loading the plugin.
  bool cold;
};

/// All scenarios.
std::span<const Scenario> scenarios();

/// The elements of an array as f32. @pre its dtype is f32 or i32
std::vector<float> as_floats(const meshard::HostArray& array);

}  // namespace faults
