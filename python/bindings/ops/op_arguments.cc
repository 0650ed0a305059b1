#include "python/bindings/ops/op_arguments.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <cctype>
#include <map>

namespace nb = nanobind;

namespace meshard::python {

Tensor tensor_of(const In& in) {
  if (in.tensor) return *in.tensor;
  const Scalar& number = in.scalar;
  const DType dtype = number.kind == ScalarKind::kBool      ? DType::bool_
                      : number.kind == ScalarKind::kInteger ? kDefaultInteger
                                                            : kDefaultFloat;
  return constant(scalar_array(number, dtype, in.where), in.where);
}

namespace {

Tensor settled(const Operand& operand) {
  settle({&operand});
  return tensor_of(operand.in());
}

}  // namespace

Tensor OptionalOperand::tensor() const { return given ? settled(operand) : Tensor(); }

std::vector<Tensor> Operands::tensors() const {
  std::vector<Tensor> made;
  for (const Operand& each : all) made.push_back(settled(each));
  return made;
}

std::vector<In> Operands::ins() const {
  std::vector<In> made;
  for (const Operand& each : all) {
    settle({&each});
    made.push_back(each.in());
  }
  return made;
}

bool load_padding(PyObject* object, WindowPadding& padding) {
  if (PyUnicode_Check(object)) {
    const std::string given = nb::cast<std::string>(nb::handle(object));
    std::string name = given;
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (name == "valid")
      padding = Padding::kValid;
    else if (name == "same")
      padding = Padding::kSame;
    else if (name == "same_lower")
      padding = Padding::kSameLower;
    else
      throw nb::value_error(cat("no padding has the name \"", given,
                                "\": it is \"valid\", \"same\", \"same_lower\", a number of "
                                "elements, or a sequence of these or of (before, after)")
                                .c_str());
    return true;
  }
  std::int64_t both = 0;
  WindowPadding::Pairs pairs;
  if (load_integer(object, both)) {
    padding = WindowPadding({{both, both}});
    return true;
  }
  if (!PyList_Check(object) && !PyTuple_Check(object)) return false;
  for (nb::handle each : nb::handle(object)) {
    std::pair<std::int64_t, std::int64_t> pair;
    if (load_integer(each.ptr(), both))
      pairs.emplace_back(both, both);
    else if (nb::try_cast(each, pair))
      pairs.push_back(pair);
    else
      return false;
  }
  padding = WindowPadding(std::move(pairs));
  return true;
}

TensorList list_of(std::vector<Tensor> tensors) {
  TensorList list;
  for (Tensor& tensor : tensors) list.append(tensor_object(std::move(tensor)));
  return list;
}

nb::object named_result(const char* name, std::initializer_list<const char*> fields,
                        std::initializer_list<nb::object> values) {
  static auto* classes = new std::map<std::string, PyObject*>;
  PyObject*& type = (*classes)[name];
  if (!type) {
    nb::list names;
    for (const char* field : fields) names.append(field);
    nb::object made = nb::module_::import_("collections").attr("namedtuple")(name, names);
    made.attr("__module__") = "meshard";
    type = made.release().ptr();
  }
  nb::list all;
  for (const nb::object& value : values) all.append(value);
  return nb::handle(type).attr("_make")(all);
}

}  // namespace meshard::python
