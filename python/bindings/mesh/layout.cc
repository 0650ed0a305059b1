// Layouts, and conversions of tuples of integers.
#include "meshard/layout/layout.h"

#include "meshard/base/error.h"
#include "python/bindings/bindings.h"
#include "python/bindings/interpreter/values.h"
#include "python/bindings/mesh/layout_casters.h"
#include "python/bindings/mesh/mesh_parts.h"

namespace nb = nanobind;

namespace meshard::python {

bool load_int_tuple(PyObject* object, IntTuple& tuple, int depth) noexcept {
  std::int64_t number = hole;
  if (object == Py_None || load_integer(object, number)) {
    tuple = IntTuple(number);
    return true;
  }
  if ((!PyTuple_Check(object) && !PyList_Check(object)) || depth >= kMaxParsedDepth) return false;
  std::vector<IntTuple> elements;
  for (Py_ssize_t i = 0; i < PySequence_Size(object); ++i) {
    PyObject* element = PySequence_GetItem(object, i);
    const bool loaded = element && load_int_tuple(element, elements.emplace_back(), depth + 1);
    Py_XDECREF(element);
    if (!loaded) return false;
  }
  tuple = IntTuple(std::span<const IntTuple>(elements));
  return true;
}

nb::object int_tuple_object(const IntTuple& tuple) {
  if (tuple.is_integer())
    return tuple.value() == hole ? nb::none() : nb::object(nb::int_(tuple.value()));
  nb::list elements;
  for (std::size_t i = 0; i < tuple.rank(); ++i) elements.append(int_tuple_object(tuple[i]));
  return nb::tuple(elements);
}

bool load_tiler(PyObject* object, Tiler& tiler, int depth) noexcept {
  std::int64_t number = 0;
  Layout layout;
  if (object == Py_None) {
    tiler = Tiler();
    return true;
  }
  if (load_integer(object, number)) {
    if (number < 1) return false;
    tiler = Tiler(number);
    return true;
  }
  if (nb::try_cast<Layout>(nb::handle(object), layout)) {
    tiler = Tiler(std::move(layout));
    return true;
  }
  if ((!PyTuple_Check(object) && !PyList_Check(object)) || depth >= kMaxParsedDepth) return false;
  std::vector<Tiler> elements;
  for (Py_ssize_t i = 0; i < PySequence_Size(object); ++i) {
    PyObject* element = PySequence_GetItem(object, i);
    const bool loaded = element && load_tiler(element, elements.emplace_back(), depth + 1);
    Py_XDECREF(element);
    if (!loaded) return false;
  }
  tiler = Tiler(std::move(elements));
  return true;
}

void throw_not_int_tuple(nb::handle object) {
  throw_invalid({}, "[layout] expected an integer or nested tuples of integers; got ",
                repr_text(object));
}

void throw_not_tiler(nb::handle object) {
  throw_invalid({},
                "[layout] a tiler is None, an integer of at least 1, a Layout, or a tuple of "
                "these; got ",
                repr_text(object));
}

void bind_layout(nb::module_& module) {
  nb::class_<Layout> type(
      module, "Layout",
      R"~(A function from indices 0 to size-1 to integers, given by shape and stride.

    Layout((2, 4), (4, 1))        # maps (i, j) to 4 i + j
    Layout((2, 4))                # the compact row-major layout: the identity
    Layout("((2,2),4):((1,4),8)") # its text

Shape and stride are integers or nested tuples of the same nesting. Each element of the outer tuple
is a mode. `meshard.layout` has the algebra.

Error: shape and stride differ in nesting; a size below 1; values do not fit 64 bits.)~");
  bind_value(type);
  type.def(
          "__init__",
          [](Layout* self, std::string_view text) {
            new (self) Layout(Layout::parse(text).value());
          },
          nb::arg("text"))
      .def(nb::init<>())
      .def(nb::init<IntTuple>(), nb::arg("shape"))
      .def(nb::init<IntTuple, IntTuple>(), nb::arg("shape"), nb::arg("stride"))
      .def("__hash__", python_hash<Layout>)
      .def("__repr__", [](const Layout& layout) { return cat("Layout('", layout, "')"); })
      .def_prop_ro("shape", &Layout::shape, "The sizes: an integer or nested tuples.")
      .def_prop_ro("stride", &Layout::stride, "The strides, nested like the shape.")
      .def_prop_ro("rank", &Layout::rank, "The number of modes.")
      .def_prop_ro("depth", &Layout::depth, "The depth of the nesting: 0 for an integer shape.")
      .def_prop_ro("size", &Layout::size, "The number of indices.")
      .def_prop_ro("cosize", &Layout::cosize, "The largest value plus one.")
      .def(
          "mode",
          [](const Layout& layout, std::size_t i) {
            if (i >= layout.rank()) throw_invalid({}, "[layout] no mode ", i, " in ", layout);
            return layout.mode(i);
          },
          nb::arg("i"), "Mode i as a layout.\n\nError: no such mode.")
      .def(
          "__call__",
          [](const Layout& layout, const IntTuple& coordinate) {
            if (has_hole(coordinate))
              throw_invalid({}, "[layout] the coordinate ", coordinate,
                            " has holes; meshard.layout.slice takes these");
            if (!coordinate.is_integer()) return layout(coordinate);
            if (coordinate.value() < 0)
              throw_invalid({}, "[layout] the index ", coordinate.value(), " is negative");
            return layout(coordinate.value());
          },
          nb::arg("index"),
          "The value at an index, or at a coordinate with one element per mode: an index of the "
          "mode, or a tuple of its nesting. Indices at or above `size` continue along the first "
          "mode.\n\nError: the coordinate does not match the shape's nesting.");
  nb::module_ algebra = module.def_submodule("layout", "The algebra of layouts.");
  bind_layout_algebra(algebra);
}

}  // namespace meshard::python
