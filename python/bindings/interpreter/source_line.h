// The line of Python code that called meshard.
#pragma once
#include <nanobind/stl/string.h>

#include <string>
#include <string_view>

#include "meshard/base/source_location.h"
#include "meshard/graph/record.h"
#include "python/bindings/interpreter/assignment_scope.h"

namespace meshard::python {

/// The line in the innermost frame outside of add_library_folder()'s; unknown without one. Takes
/// about 50 ns for a place that this thread has asked for lately.
/// @pre the interpreter's lock is held
SourceLocation caller_line();

/// The name, which lives as long as the process, as SourceLocation needs.
const char* kept_name(std::string_view name);

/// Frames of files in this folder, such as the package's own, are not the caller.
/// @pre the interpreter's lock is held
void add_library_folder(std::string folder);

/// While alive, what this thread records has the caller's line.
class CallerLine {
 public:
  CallerLine() : where_(caller_line()), scope_(where_) {}
  const SourceLocation& where() const { return where_; }

 private:
  SourceLocation where_;
  SourceScope scope_;
};

/// While alive, this thread runs a Python function that a transformation calls: what it records has
/// its own lines, not that of the transformation's caller, and it may assign to its own tensors.
class UserCode {
 public:
  UserCode() : before_(internal::recorder().outer) { internal::recorder().outer = nullptr; }
  ~UserCode() { internal::recorder().outer = before_; }
  UserCode(const UserCode&) = delete;
  UserCode& operator=(const UserCode&) = delete;

 private:
  const SourceLocation* before_;
  AssignmentScope assignments_;
};

}  // namespace meshard::python
