#include "python/bindings/interpreter/guarded.h"

#include <nanobind/stl/string.h>

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "meshard/base/error.h"
#include "python/bindings/interpreter/source_line.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

// From the number of the code to the exception class; 0 is that of InternalError.
std::unordered_map<int, PyObject*>& classes() {
  static auto* all = new std::unordered_map<int, PyObject*>;
  return *all;
}

// C++ in messages, and how Python says it.
constexpr std::pair<std::string_view, std::string_view> kWords[] = {
    {"AxisSplit::kWhereNeeded", "split='where_needed'"},
    {"Uneven::kAllow", "uneven='allow'"},
    {"strict = false", "strict=False"},
};

Error in_words_of_python(const Error& error) {
  std::string message = error.message();
  bool is_changed = false;
  for (auto [cpp, python] : kWords)
    for (std::size_t at; (at = message.find(cpp)) != std::string::npos; is_changed = true)
      message.replace(at, cpp.size(), python);
  if (!is_changed) return error;
  Error changed(error.code(), message, error.where());
  for (const std::string& note : error.notes()) changed = changed.with_note(note);
  return changed;
}

// The user's line, also of an error that has one of the library's own. Functions have the names
// that they have in Python: `in nn.linear`.
Error with_users_line(const Error& error) {
  SourceLocation where = error.where();
  const std::string_view file = where.file;
  std::string function = where.function;
  if (!where.known() || file.ends_with(".cc") || file.ends_with(".h")) {
    const SourceLocation caller = caller_line();
    if (caller.known()) where = caller;
  } else if (!function.starts_with("in ")) {
    return error;
  }
  if (function.starts_with("in ")) {
    for (std::size_t at; (at = function.find("::")) != function.npos;) function.replace(at, 2, ".");
    where.function = kept_name(function);
  }
  Error changed = Error(error.code(), error.message()).at(where);
  for (const std::string& note : error.notes()) changed = changed.with_note(note);
  return changed;
}

// An error without a line gets that of the Python code that is running.
void set_error(const Error& thrown, int code) noexcept {
  // Ctrl-C in a callback that this thread ran made the launch fail: KeyboardInterrupt says why.
  if (PyErr_CheckSignals() != 0) return;
  Error error = thrown;
  try {
    if (code != 0) error = with_users_line(in_words_of_python(thrown));
  } catch (...) {
    PyErr_Clear();
  }
  auto found = classes().find(code);
  PyObject* type = found != classes().end() ? found->second : PyExc_RuntimeError;
  try {
    nb::object made = nb::handle(type)(error.what());
    const SourceLocation where = error.where();
    nb::setattr(made, "message", nb::cast(error.message()));
    nb::setattr(made, "filename", where.known() ? nb::cast(where.file) : nb::none());
    nb::setattr(made, "lineno", where.known() ? nb::cast(where.line) : nb::none());
    PyErr_SetObject(type, made.ptr());
  } catch (...) {
    PyErr_SetString(type, error.what());
  }
}

void translate(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const InternalError& error) {
    set_error(error, 0);
  } catch (const Error& error) {
    set_error(error, static_cast<int>(error.code()));
  }
}

}  // namespace

void set_python_error() noexcept {
  try {
    throw;
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const InternalError& error) {
    set_error(error, 0);
  } catch (const Error& error) {
    set_error(error, static_cast<int>(error.code()));
  } catch (const nb::builtin_exception& error) {
    PyErr_SetString(error.type() == nb::exception_type::value_error   ? PyExc_ValueError
                    : error.type() == nb::exception_type::index_error ? PyExc_IndexError
                                                                      : PyExc_TypeError,
                    error.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "unknown C++ exception");
  }
}

void bind_errors(nb::module_& module) {
  nb::register_exception_translator(
      [](const std::exception_ptr& thrown, void*) { translate(thrown); });
  module.def("set_error_class",
             [](int code, nb::object type) { classes()[code] = type.release().ptr(); });
}

}  // namespace meshard::python
