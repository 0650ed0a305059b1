#include "python/bindings/ops/op_arguments.h"

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
