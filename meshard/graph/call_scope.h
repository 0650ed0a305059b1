// Calls of functions that consist of other calls: layers, optimizers.
#pragma once
#include <string_view>

#include "meshard/graph/record.h"

namespace meshard {

/// As SourceScope, and says which function of the library was called: `model.cc:40, in nn::linear`.
/// The outermost one counts.
class CallScope {
 public:
  /// @param function `in nn::linear`; a literal.
  CallScope(const SourceLocation& where, const char* function)
      : scope_(with_name(effective_source(where), function)) {}

 private:
  static SourceLocation with_name(SourceLocation place, const char* function) {
    if (!std::string_view(place.function).starts_with("in ")) place.function = function;
    return place;
  }
  internal::InheritSource scope_;
};

}  // namespace meshard
