// Runs C++ code in functions that Python calls directly.
#pragma once
#include <nanobind/nanobind.h>

#include <exception>

namespace meshard::python {

/// Sets the Python error for the exception that is being handled.
void set_python_error() noexcept;

/// The result of f, or null with a Python error set if it throws.
template <class F>
PyObject* guarded(const F& f) noexcept {
  try {
    return f();
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

/// meshard::Error becomes the exception class of its code. Called once.
void bind_errors(nanobind::module_& module);

}  // namespace meshard::python
