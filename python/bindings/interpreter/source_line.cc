#include "python/bindings/interpreter/source_line.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace nb = nanobind;

namespace meshard::python {
namespace {

std::vector<std::string>& library_folders() {
  static auto* folders = new std::vector<std::string>;
  return *folders;
}

// The number of a notebook's cell by the shell that has compiled it, which knows the files that it
// has made up; empty if it is none of them.
std::string cell_of_shell(const std::string& file) {
  try {
    nb::object modules = nb::module_::import_("sys").attr("modules");
    nb::object ipython = modules.attr("get")("IPython");
    if (ipython.is_none()) return {};
    nb::object shell = ipython.attr("get_ipython")();
    if (shell.is_none()) return {};
    nb::object names = nb::getattr(shell.attr("compile"), "_filename_map", nb::none());
    nb::object number = names.is_none() ? nb::none() : names.attr("get")(file);
    return number.is_none() ? std::string() : nb::cast<std::string>(nb::str(number));
  } catch (nb::python_error& error) {  // a shell of another kind
    return {};
  }
}

// A cell of a notebook has a file name of no use: `cell 3` for `<ipython-input-3-4af2b1>`, and for
// `/tmp/ipykernel_123/456.py`, which the shell numbers.
std::string readable_name(const std::string& file) {
  constexpr std::string_view kInput = "<ipython-input-";
  std::string number;
  if (file.starts_with(kInput)) {
    number = file.substr(kInput.size());
    number.resize(std::min(number.find_first_not_of("0123456789"), number.size()));
  } else if (file.find("/ipykernel_") != file.npos || file.find("\\ipykernel_") != file.npos) {
    number = cell_of_shell(file);
  }
  return number.empty() ? file : "cell " + number;
}

// One instruction of one code object.
struct Place {
  PyCodeObject* code = nullptr;  // owned, so that its address is not used again
  int instruction = -1;
  bool is_internal = false;
  SourceLocation where;
};

// A cache of one thread, with one place for each hash. Code objects of ended threads are not
// released.
class Places {
 public:
  const Place& find(PyFrameObject* frame, PyCodeObject* code) {
    const int instruction = instruction_of(frame);
    const std::uint64_t mixed = (reinterpret_cast<std::uintptr_t>(code) >> 4) * 31 +
                                static_cast<std::uint64_t>(instruction) * 0x9E3779B1u;
    Place& place = places_[(mixed ^ (mixed >> 12)) % kCount];
    if (place.code == code && place.instruction == instruction) [[likely]]
      return place;
    Py_XDECREF(reinterpret_cast<PyObject*>(place.code));
    Py_INCREF(reinterpret_cast<PyObject*>(code));
    place = described(frame, code, instruction);
    return place;
  }

 private:
  static constexpr std::size_t kCount = 2048;

  static int instruction_of(PyFrameObject* frame) {
#ifdef Py_LIMITED_API
    return PyFrame_GetLineNumber(frame);
#else
    return PyFrame_GetLasti(frame);
#endif
  }
  static std::string text_of(PyCodeObject* code, const char* attribute) {
    nb::object text = nb::handle(reinterpret_cast<PyObject*>(code)).attr(attribute);
    return nb::cast<std::string>(text);
  }
  static Place described(PyFrameObject* frame, PyCodeObject* code, int instruction) {
    Place place{code, instruction, false, {}};
    const std::string file = text_of(code, "co_filename");
    place.is_internal = std::ranges::any_of(
        library_folders(), [&](const std::string& folder) { return file.starts_with(folder); });
    if (!place.is_internal) {
      const int line = PyFrame_GetLineNumber(frame);
      place.where = {kept_name(readable_name(file)), kept_name(text_of(code, "co_qualname")),
                     static_cast<std::uint32_t>(line > 0 ? line : 1)};
    }
    return place;
  }

  std::vector<Place> places_ = std::vector<Place>(kCount);
};

PyFrameObject* frame_before(PyFrameObject* frame) {
#ifdef Py_LIMITED_API
  PyObject* back = PyObject_GetAttrString(reinterpret_cast<PyObject*>(frame), "f_back");
  if (back == Py_None) Py_CLEAR(back);
  return reinterpret_cast<PyFrameObject*>(back);
#else
  return PyFrame_GetBack(frame);
#endif
}

}  // namespace

const char* kept_name(std::string_view name) {
  static auto* mutex = new std::mutex;
  static auto* names = new std::unordered_set<std::string>;
  std::lock_guard lock(*mutex);
  return names->emplace(name).first->c_str();
}

void add_library_folder(std::string folder) { library_folders().push_back(std::move(folder)); }

SourceLocation caller_line() {
  static thread_local Places* places = nullptr;
  if (!places) [[unlikely]]
    places = new Places;
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  SourceLocation where;
  while (frame) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    const Place& place = places->find(frame, code);
    const bool found = !place.is_internal;
    if (found) where = place.where;
    Py_DECREF(code);
    PyFrameObject* before = found ? nullptr : frame_before(frame);
    Py_DECREF(frame);
    frame = before;
  }
  return where;
}

}  // namespace meshard::python
