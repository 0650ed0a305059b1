// The nodes of a structure of Python, and how classes are taken apart.
//
// A form is a list of numbers, one node after the other, depth first. A node is
// kind | number of children << 8, followed by the number of an object for the kinds that need one:
// the keys of a dict, or the class (and what a registered function returned besides the children).
#pragma once
#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace meshard::python {

enum class Node : std::uint8_t {
  kTensor,
  kConstant,  // a leaf that is compared by its value: a string, a function, ...
  kStatic,    // a leaf that was declared static, of any class
  kNone,
  kTuple,
  kList,
  kDict,        // the tuple of its keys
  kNamedTuple,  // its class
  kDataclass,   // its class
  kRegistered,  // the pair (class, auxiliary data)
};

constexpr std::uint64_t word(Node kind, std::size_t children = 0) {
  return static_cast<std::uint64_t>(kind) | children << 8;
}
constexpr Node kind_of(std::uint64_t word) { return static_cast<Node>(word & 0xFF); }
constexpr std::size_t children_of(std::uint64_t word) { return word >> 8; }

/// The number of an object. Equal objects of equal types have equal numbers, for the life of the
/// process. @error type error: it cannot be hashed
std::uint64_t number_of(nanobind::handle object);
/// The object with this number.
PyObject* numbered_object(std::uint64_t number);

/// How instances of a class are taken apart, if they are not leaves.
struct ClassInfo {
  Node kind = Node::kConstant;   // for a class of leaves
  bool can_be_constant = false;  // for a class of leaves: they are compared by their values
  bool is_number = false;        // for a class of leaves: of a kind that meshard does not have
  std::uint64_t number = 0;      // of the class
  PyObject* fields = nullptr;    // of a dataclass: a tuple of the names that are children
  PyObject* statics = nullptr;   // of a dataclass: names of fields with metadata {"static": True}
  bool is_stacked = false;       // a dataclass with one field, like nn::Layers
  PyObject* flatten = nullptr;
  PyObject* unflatten = nullptr;
  PyObject* keys = nullptr;  // of a registered class: the names of the children; null: positions
};

const ClassInfo& info_of(PyTypeObject* type);

/// Makes instances of a class structures. `keys` may be None.
void register_node(nanobind::type_object type, nanobind::object flatten, nanobind::object unflatten,
                   nanobind::object keys);

/// The step of a path to the element with this key: `["w"]`, `[2]`.
std::string key_step(nanobind::handle key);

/// True for a leaf that belongs to the structure: it is compared by its value, which contains no
/// array. @pre info_of() its class is that of leaves
bool is_constant(PyObject* object);

}  // namespace meshard::python
