// Initializers and layers as arguments from Python.
#pragma once
#include <nanobind/nanobind.h>

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "meshard/nn/all.h"
#include "python/bindings/arrays/tensors.h"
#include "python/bindings/interpreter/lock.h"
#include "python/bindings/interpreter/source_line.h"

namespace meshard::python {

/// An initializer that is a C++ function.
struct BoundInitializer {
  nn::Initializer function;
  std::string text;  ///< as `normal(0.02)`
};

/// The C++ function of an initializer: one of nn.init, or any function of (key, shape, fans,
/// dtype).
/// @error type error: it is not a function
nn::Initializer initializer_of(nanobind::object object);

/// What a Python function returned, which must be a tensor, a number or an array.
/// @error type error with the text `what`
Tensor returned_tensor(nanobind::handle result, const char* what);

/// What `make` returns. Parameters are computed meanwhile, without the lock.
template <class F>
auto made_unlocked(const F& make) {
  CallerLine line;
  Unlocked unlocked;
  return make();
}

void bind_layers(nanobind::module_& nn_module);
/// Convolutions, and normalizations of channels.
void bind_channel_layers(nanobind::module_& nn_module);
/// Recurrent cells, and adapters of weights.
void bind_recurrent_layers(nanobind::module_& nn_module);
void bind_losses(nanobind::module_& nn_module);

}  // namespace meshard::python

namespace nanobind::detail {

/// Reads the parameters of a layer: the attributes of a Python object that have the names of the
/// fields. Returns them as a tuple, in the order of the fields.
template <class Layer>
struct LayerCaster {
  NB_TYPE_CASTER(Layer, const_name("typing.Any"))

  bool from_python(handle source, std::uint8_t, cleanup_list*) noexcept {
    try {
      return read(source, value);
    } catch (...) {
      PyErr_Clear();
      return false;
    }
  }
  static handle from_cpp(const Layer& layer, rv_policy, cleanup_list*) {
    return written(layer).release();
  }

 private:
  template <class T>
  static bool read(handle source, T& layer) {
    bool found = true;
    meshard::visit_fields(layer, [&](std::string_view name, auto& field) {
      if (!found) return;
      PyObject* attribute = PyObject_GetAttrString(source.ptr(), std::string(name).c_str());
      if (!attribute) PyErr_Clear();
      found = attribute && read_field(steal(attribute), field);
    });
    return found;
  }
  template <class Field>
  static bool read_field(object object, Field& field) {
    if constexpr (std::is_same_v<Field, meshard::Tensor>) {
      const meshard::Tensor* tensor = meshard::python::tensor_in(object.ptr());
      std::optional<meshard::Tensor> made;
      if (!tensor) made = meshard::python::tensor_of_value(object.ptr(), {});
      if (!tensor && !made) return false;
      field = tensor ? *tensor : *made;
      return true;
    } else if constexpr (std::is_same_v<Field, std::optional<meshard::Tensor>>) {
      return object.is_none() || read_field(std::move(object), field.emplace());
    } else {
      return read(object, field);
    }
  }
  template <class T>
  static object written(const T& value) {
    if constexpr (std::is_same_v<T, meshard::Tensor>) {
      return meshard::python::tensor_object(value);
    } else if constexpr (std::is_same_v<T, std::optional<meshard::Tensor>>) {
      return value ? meshard::python::tensor_object(*value) : none();
    } else {
      list fields;
      meshard::visit_fields(
          value, [&](std::string_view, const auto& field) { fields.append(written(field)); });
      return nanobind::tuple(fields);
    }
  }
};

template <>
struct type_caster<meshard::nn::Linear> : LayerCaster<meshard::nn::Linear> {};
template <>
struct type_caster<meshard::nn::Embedding> : LayerCaster<meshard::nn::Embedding> {};
template <>
struct type_caster<meshard::nn::LayerNorm> : LayerCaster<meshard::nn::LayerNorm> {};
template <>
struct type_caster<meshard::nn::RmsNorm> : LayerCaster<meshard::nn::RmsNorm> {};
template <>
struct type_caster<meshard::nn::Conv> : LayerCaster<meshard::nn::Conv> {};
template <>
struct type_caster<meshard::nn::BatchNorm> : LayerCaster<meshard::nn::BatchNorm> {};
template <>
struct type_caster<meshard::nn::BatchStatistics> : LayerCaster<meshard::nn::BatchStatistics> {};
template <>
struct type_caster<meshard::nn::GroupNorm> : LayerCaster<meshard::nn::GroupNorm> {};
template <>
struct type_caster<meshard::nn::InstanceNorm> : LayerCaster<meshard::nn::InstanceNorm> {};
template <>
struct type_caster<meshard::nn::SimpleCell> : LayerCaster<meshard::nn::SimpleCell> {};
template <>
struct type_caster<meshard::nn::LstmCell> : LayerCaster<meshard::nn::LstmCell> {};
template <>
struct type_caster<meshard::nn::LstmState> : LayerCaster<meshard::nn::LstmState> {};
template <>
struct type_caster<meshard::nn::GruCell> : LayerCaster<meshard::nn::GruCell> {};
template <>
struct type_caster<meshard::nn::Lora> : LayerCaster<meshard::nn::Lora> {};
template <>
struct type_caster<meshard::nn::Mlp> : LayerCaster<meshard::nn::Mlp> {};
template <>
struct type_caster<meshard::nn::GatedMlp> : LayerCaster<meshard::nn::GatedMlp> {};
template <>
struct type_caster<meshard::nn::Attention> : LayerCaster<meshard::nn::Attention> {};
template <>
struct type_caster<meshard::nn::KeyValueCache> : LayerCaster<meshard::nn::KeyValueCache> {};
template <>
struct type_caster<meshard::nn::Mixture> : LayerCaster<meshard::nn::Mixture> {};
template <>
struct type_caster<meshard::nn::MixtureResult> : LayerCaster<meshard::nn::MixtureResult> {};
}  // namespace nanobind::detail
