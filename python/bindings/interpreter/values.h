// What all bound values have in common.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <functional>
#include <new>
#include <string>
#include <utility>

namespace meshard::python {

/// `'text'`, as Python writes it.
std::string quoted(std::string_view text);

/// repr(object).
std::string repr_text(nanobind::handle object);

/// Adds ==, with other values of the class.
template <class Value, class... Extra>
void bind_equality(nanobind::class_<Value, Extra...>& type) {
  namespace nb = nanobind;
  type.def(
      "__eq__",
      [](const Value& a, nb::handle b) -> nb::object {
        if (!nb::isinstance<Value>(b)) return nb::borrow(Py_NotImplemented);
        return nb::bool_(a == *nb::inst_ptr<Value>(b));
      },
      nb::arg("other").none(), nb::is_operator());
}

/// Adds copies, which are the same object, to the class of an immutable value, and says that it
/// belongs to the package.
template <class Value, class... Extra>
void bind_copies(nanobind::class_<Value, Extra...>& type) {
  namespace nb = nanobind;
  type.attr("__module__") = "meshard";
  type.def("__copy__", [](nb::handle_t<Value> value) { return nb::borrow(value); })
      .def(
          "__deepcopy__", [](nb::handle_t<Value> value, nb::handle) { return nb::borrow(value); },
          nb::arg("memo").none());
}

/// The same, with str and pickling through the text form of `text` and `parse`.
template <class Value, class... Extra, class Text, class Parse>
void bind_text(nanobind::class_<Value, Extra...>& type, Text text, Parse parse) {
  bind_copies(type);
  type.def("__str__", text)
      .def("__getstate__", text)
      .def("__setstate__",
           [parse](Value& value, const std::string& state) { new (&value) Value(parse(state)); });
}

/// bind_equality, and bind_text with to_string and parse of the class.
template <class Value, class... Extra>
void bind_value(nanobind::class_<Value, Extra...>& type) {
  bind_equality(type);
  bind_text(
      type, [](const Value& value) { return value.to_string(); },
      [](const std::string& text) { return Value::parse(text).value(); });
  type.def_static(
      "parse", [](const std::string& text) { return Value::parse(text).value(); },
      nanobind::arg("text"), "The value with this text, as str prints it.");
}

/// The position that an index of Python means: negative ones count from the end. @error IndexError:
/// out of range
inline std::size_t item_index(Py_ssize_t i, std::size_t size) {
  const auto count = static_cast<Py_ssize_t>(size);
  if (i < -count || i >= count) throw nanobind::index_error("index out of range");
  return static_cast<std::size_t>(i < 0 ? i + count : i);
}

/// Adds __len__, __getitem__, which calls `item(value, index)` with 0 <= index < count(value), and
/// __iter__.
template <class Value, class... Extra, class Count, class Item>
void bind_sequence(nanobind::class_<Value, Extra...>& type, Count count, Item item,
                   const char* doc) {
  namespace nb = nanobind;
  using Element = decltype(item(std::declval<const Value&>(), std::size_t{0}));
  type.def("__len__", count)
      .def(
          "__getitem__",
          [count, item](const Value& value, Py_ssize_t i) {
            return item(value, item_index(i, static_cast<std::size_t>(count(value))));
          },
          nb::arg("index"), doc)
      .def("__iter__", [](nb::handle_t<Value> value) {
        return nb::typed<nb::iterator, Element>(
            nb::steal<nb::iterator>(PySeqIter_New(value.ptr())));
      });
}

/// The same with size() of the class.
template <class Value, class... Extra, class Item>
void bind_items(nanobind::class_<Value, Extra...>& type, Item item, const char* doc) {
  bind_sequence(
      type, [](const Value& value) { return value.size(); }, item, doc);
}

/// A hash for Python.
template <class Value>
Py_hash_t python_hash(const Value& value) {
  return static_cast<Py_hash_t>(value.hash() >> 1);
}

}  // namespace meshard::python
