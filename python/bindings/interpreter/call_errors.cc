#include "python/bindings/interpreter/call_errors.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <utility>

namespace nb = nanobind;

namespace meshard::python {
namespace {

// The functions that nanobind calls its function objects with: one for each combination of few and
// many arguments, with and without names.
constexpr std::size_t kMost = 8;
std::array<vectorcallfunc, kMost> originals{};
std::size_t known = 0;

// Replaces the error of a call that fits no form of `function`, if meshard._calls finds what is
// wrong.
void explain(PyObject* function, PyObject* const* args, std::size_t count, PyObject* names) {
  nb::python_error error;  // takes the error that is set
  try {
    const nb::str text(error.value());
    if (std::strstr(text.c_str(), "(): incompatible function arguments")) {
      nb::list positional;
      for (std::size_t i = 0; i < count; ++i) positional.append(nb::handle(args[i]));
      nb::dict by_name;
      for (std::size_t i = 0; names && i < nb::len(nb::handle(names)); ++i)
        by_name[nb::handle(names)[i]] = nb::handle(args[count + i]);
      nb::object found =
          nb::module_::import_("meshard._calls")
              .attr("wrong_argument")(nb::handle(function), positional, by_name, text);
      if (!found.is_none()) {
        PyErr_SetObject(PyExc_TypeError, found.ptr());
        return;
      }
    }
  } catch (const std::exception&) {
    PyErr_Clear();  // the error of the call is the one to report
  }
  error.restore();
}

template <std::size_t I>
PyObject* call(PyObject* self, PyObject* const* args, std::size_t count, PyObject* names) {
  PyObject* result = originals[I](self, args, count, names);
  if (!result && PyErr_ExceptionMatches(PyExc_TypeError))
    explain(self, args, static_cast<std::size_t>(PyVectorcall_NARGS(count)), names);
  return result;
}

constexpr std::array<vectorcallfunc, kMost> call_table =
    []<std::size_t... I>(std::index_sequence<I...>) {
  return std::array<vectorcallfunc, kMost>{call<I>...};
}
(std::make_index_sequence<kMost>());

// Where an object of nanobind keeps the function that it is called with.
vectorcallfunc* slot_of(PyObject* function) {
#if defined(Py_LIMITED_API)
  constexpr Py_ssize_t offset = sizeof(PyVarObject);  // nb_func in nanobind's nb_internals.h
#else
  const Py_ssize_t offset = Py_TYPE(function)->tp_vectorcall_offset;
#endif
  auto* slot = reinterpret_cast<vectorcallfunc*>(reinterpret_cast<char*>(function) + offset);
  return *slot == PyVectorcall_Function(function) ? slot : nullptr;
}

void replace(PyObject* function) {
  vectorcallfunc* slot = slot_of(function);
  if (!slot) return;
  for (std::size_t i = 0; i < known; ++i) {
    if (*slot == call_table[i]) return;
    if (*slot == originals[i]) {
      *slot = call_table[i];
      return;
    }
  }
  if (known == kMost) return;
  originals[known] = *slot;
  *slot = call_table[known++];
}

// Whether the value is a function or a method that nanobind made.
bool is_bound(nb::handle value) { return nb::hasattr(value.type(), "__nb_signature__"); }

void visit(nb::handle names, nb::handle module_name) {
  for (nb::handle value : nb::borrow<nb::dict>(names.attr("copy")()).values()) {
    if (nb::isinstance<nb::module_>(value)) {
      if (nb::borrow<nb::str>(value.attr("__name__")).attr("startswith")(module_name).is(Py_True))
        visit(value.attr("__dict__"), module_name);
    } else if (nb::isinstance<nb::type_object>(value)) {
      visit(value.attr("__dict__"), module_name);
    } else if (is_bound(value)) {
      replace(value.ptr());
    } else if (nb::hasattr(value, "__func__") && is_bound(value.attr("__func__"))) {
      replace(nb::object(value.attr("__func__")).ptr());
    }
  }
}

}  // namespace

void name_wrong_arguments(nb::module_& module) {
  visit(module.attr("__dict__"), module.attr("__name__"));
}

}  // namespace meshard::python
