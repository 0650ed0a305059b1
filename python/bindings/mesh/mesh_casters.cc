#include "python/bindings/mesh/mesh_casters.h"

#include "meshard/base/error.h"
#include "python/bindings/interpreter/casters.h"
#include "python/bindings/interpreter/values.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

bool has_type_name(PyObject* object, const char* name) {
  nb::object found = nb::handle(object).type().attr("__name__");
  return PyUnicode_Check(found.ptr()) && PyUnicode_CompareWithASCIIString(found.ptr(), name) == 0;
}

// UNCONSTRAINED, or JAX's.
bool is_unconstrained(PyObject* object) {
  if (nb::isinstance<UnconstrainedType>(nb::handle(object))) return true;
  return !PyUnicode_Check(object) && !PyLong_Check(object) && object != Py_None &&
         has_type_name(object, "UnconstrainedSingleton");
}

// `('x', 'y')`, `('x',)`.
std::string tuple_code(const std::vector<std::string>& items) {
  std::string code = "(";
  for (const std::string& item : items) code += (code.size() > 1 ? ", " : "") + item;
  return code + (items.size() == 1 ? ",)" : ")");
}

}  // namespace

nb::object unconstrained_object() {
  static PyObject* const only = nb::cast(UnconstrainedType{}).release().ptr();
  return nb::borrow(only);
}

std::string quoted(std::string_view text) { return repr_text(nb::str(text.data(), text.size())); }

bool load_axis(PyObject* object, AxisList& axes) noexcept {
  std::int64_t position = 0;
  if (PyUnicode_Check(object)) {
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(object, &size);
    if (!text) {
      PyErr_Clear();
      return false;
    }
    axes.push_back(AxisRef(std::string_view(text, static_cast<std::size_t>(size))));
    return true;
  }
  if (load_integer(object, position)) {
    if (position < 0) return false;
    axes.push_back(AxisRef(position));
    return true;
  }
  AxisRef axis;
  if (!nb::try_cast<AxisRef>(nb::handle(object), axis)) return false;
  axes.push_back(std::move(axis));
  return true;
}

bool load_axes(PyObject* object, AxisList& axes) noexcept {
  if (!PyList_Check(object) && !PyTuple_Check(object)) return load_axis(object, axes);
  for (Py_ssize_t i = 0; i < PySequence_Size(object); ++i) {
    PyObject* element = PySequence_GetItem(object, i);
    const bool loaded = element && load_axis(element, axes);
    Py_XDECREF(element);
    if (!loaded) return false;
  }
  return true;
}

bool load_names(PyObject* object, std::vector<std::string>& names) noexcept {
  AxisList axes;
  names.clear();
  if (!load_axes(object, axes)) return false;
  for (const AxisRef& axis : axes) {
    if (axis.is_position() || !axis.is_whole()) return false;
    names.push_back(axis.name);
  }
  return true;
}

bool load_dimension(PyObject* object, DimensionSpec& dimension) noexcept {
  AxisList axes;
  bool is_open = is_unconstrained(object);
  if (object != Py_None && !is_open && !load_axis(object, axes)) {
    if (!PyList_Check(object) && !PyTuple_Check(object)) return false;
    const Py_ssize_t count = PySequence_Size(object);
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* element = PySequence_GetItem(object, i);
      is_open = element && i == count - 1 && is_unconstrained(element);
      const bool loaded = element && (is_open || load_axis(element, axes));
      Py_XDECREF(element);
      if (!loaded) return false;
    }
  }
  dimension = DimensionSpec(std::move(axes), is_open);
  return true;
}

std::optional<UnreducedKind> unreduced_kind(std::string_view text) noexcept {
  for (const auto& [kind, name] : EnumNames<UnreducedKind>::kNames)
    if (text == name) return kind;
  return std::nullopt;
}

bool is_spec_of_jax(PyObject* object) noexcept {
  return PyObject_HasAttrString(object, "partitions") != 0 &&
         PyObject_HasAttrString(object, "unreduced") != 0;
}

bool load_spec_of_jax(PyObject* object, PartitionSpec& spec, AxisList& unreduced,
                      UnreducedKind& kind) noexcept {
  try {
    nb::handle given(object);
    nb::tuple partitions(nb::object(given.attr("partitions")));
    nb::list axes(nb::object(given.attr("unreduced")));
    kind = UnreducedKind::kSum;
    nb::object named = nb::getattr(given, "unreduced_kind", nb::none());  // since JAX 0.12
    if (!named.is_none()) {
      std::optional<UnreducedKind> known =
          unreduced_kind(nb::cast<std::string>(named.attr("name")));
      if (!known) return false;
      kind = *known;
    }
    return load_spec(partitions.ptr(), spec) && load_axes(axes.ptr(), unreduced);
  } catch (nb::python_error&) {
    return false;
  }
}

bool load_spec(PyObject* sequence, PartitionSpec& spec) noexcept {
  std::vector<DimensionSpec> dimensions;
  for (Py_ssize_t i = 0; i < PySequence_Size(sequence); ++i) {
    PyObject* element = PySequence_GetItem(sequence, i);
    const bool loaded = element && load_dimension(element, dimensions.emplace_back());
    Py_XDECREF(element);
    if (!loaded) {
      PyErr_Clear();
      return false;
    }
  }
  spec = PartitionSpec(std::move(dimensions));
  return true;
}

nb::object axis_object(const AxisRef& axis) {
  if (axis.is_position()) return nb::int_(axis.position);
  if (axis.is_whole()) return nb::str(axis.name.data(), axis.name.size());
  return nb::cast(axis);
}

nb::object axes_object(const AxisList& axes) {
  nb::list all;
  for (const AxisRef& axis : axes) all.append(axis_object(axis));
  return nb::tuple(all);
}

nb::object dimension_object(const DimensionSpec& dimension) {
  if (dimension.axes().empty()) return dimension.is_open() ? unconstrained_object() : nb::none();
  if (dimension.axes().size() == 1 && !dimension.is_open()) return axis_object(dimension.axes()[0]);
  nb::list all;
  for (const AxisRef& axis : dimension.axes()) all.append(axis_object(axis));
  if (dimension.is_open()) all.append(unconstrained_object());
  return nb::tuple(all);
}

std::string axis_code(const AxisRef& axis) {
  if (axis.is_position()) return std::to_string(axis.position);
  if (axis.is_whole()) return quoted(axis.name);
  return cat("AxisRef(", quoted(axis.name), ", ", axis.pre_size, ", ", axis.size, ")");
}

std::string axes_code(const AxisList& axes) {
  std::vector<std::string> items;
  for (const AxisRef& axis : axes) items.push_back(axis_code(axis));
  return tuple_code(items);
}

std::string dimension_code(const DimensionSpec& dimension) {
  if (dimension.axes().empty()) return dimension.is_open() ? "UNCONSTRAINED" : "None";
  if (dimension.axes().size() == 1 && !dimension.is_open()) return axis_code(dimension.axes()[0]);
  std::vector<std::string> items;
  for (const AxisRef& axis : dimension.axes()) items.push_back(axis_code(axis));
  if (dimension.is_open()) items.push_back("UNCONSTRAINED");
  return tuple_code(items);
}

std::string spec_code(const PartitionSpec& spec) {
  std::string code = "P(";
  for (std::size_t i = 0; i < spec.size(); ++i) code += (i ? ", " : "") + dimension_code(spec[i]);
  return code + ")";
}

void throw_not_axes(nb::handle object) {
  throw_invalid({},
                "[axes] an axis is a name, a position from 0 on or an AxisRef, several are a "
                "list or tuple of these; got ",
                repr_text(object));
}

void throw_not_names(nb::handle object) {
  throw_invalid({}, "[mesh] axes are given by a name, or a list or tuple of names; got ",
                repr_text(object));
}

void throw_not_spec(nb::handle object) {
  throw_invalid({},
                "[partition spec] a spec is P(...) or a tuple; each dimension is None, an axis "
                "(its name, its position from "
                "0 on or an AxisRef), a tuple of axes, or UNCONSTRAINED (alone or last in a "
                "tuple); got ",
                repr_text(object));
}

}  // namespace meshard::python
