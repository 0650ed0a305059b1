// Calls of programs that were written elsewhere, as ops of a recorded program.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "meshard/base/fingerprint.h"
#include "meshard/graph/tensor.h"
#include "meshard/mesh/mesh.h"

namespace meshard {

/// A value: a module that recorded programs call, for one set of devices.
struct ImportedBody {
  /// For messages.
  std::string name;
  /// The text of a module with a function `main`, for the platform of its devices.
  std::string text;
  /// Of the text.
  Fingerprint key = fingerprint(text);
  /// The number of devices that it is for. A program for one device runs on any number.
  std::int64_t devices = 1;
  /// Its meshes over all devices, by their names in the text.
  std::vector<std::pair<std::string, Mesh>> meshes = {};
  /// Whether it depends on the order of its devices, which is the order of `meshes`: it has
  /// collectives or manual axes.
  bool has_device_order = false;
  /// The number of the platform, if that is the first argument of `main`.
  std::optional<std::int32_t> platform_number = std::nullopt;
  /// The operands of the call that `main` takes, in its order.
  std::vector<std::size_t> taken = {};
  std::vector<TensorType> results = {};

  /// Records the cotangents of the operands from the operands and the cotangents of the results,
  /// of which an undefined one is zero; undefined ones are not known or zero. Empty: the program
  /// was exported without a derivative.
  using Pullback = std::function<std::vector<Tensor>(std::span<const Tensor> operands,
                                                     std::span<const Tensor> cotangents)>;
  Pullback pullback = {};
};

/// Records a call. Its module becomes a part of the program's module, once for all calls.
/// @pre the operands that `main` takes have the types of its arguments
/// @post the results, in order. A derivative of them without a pullback, vmap, and a program on
/// other devices are errors with the program's name
std::vector<Tensor> record_imported_call(std::shared_ptr<const ImportedBody> body,
                                         std::span<const Tensor> operands, SourceLocation where);

/// The module that a node calls; nullptr for all other nodes.
const ImportedBody* imported_body(const Node& node);

}  // namespace meshard
