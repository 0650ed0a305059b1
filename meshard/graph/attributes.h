// The attributes of an op: a plain struct with MESHARD_FIELDS, accessed through a small interface.
// Printing, parsing, comparison and the cache key are derived from the fields.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <typeinfo>
#include <vector>

#include "meshard/base/fields.h"
#include "meshard/base/result.h"
#include "meshard/graph/attribute_text.h"

namespace meshard {

class Body;

/// The attributes of one node. Immutable.
class Attributes {
 public:
  virtual ~Attributes() = default;
  virtual const std::type_info& type() const = 0;
  /// A copy, for another node with the same attributes.
  virtual std::unique_ptr<const Attributes> clone() const = 0;
  /// Appends `name=value, name=value`.
  virtual void print(std::string& out) const = 0;
  /// Appends bytes that are equal exactly when the attributes are.
  virtual void append_key(std::string& out) const = 0;
  /// The bodies that the node runs (body.h); nullptr if the op has no bodies.
  virtual const std::vector<Body>* bodies() const { return nullptr; }
  /// The extension key (superseded.h) of the node that this one extends; empty if it extends none.
  /// That node has the same op and operands, and its results are the first results of this one.
  virtual std::string_view extends() const { return {}; }
};

/// Attributes of struct type T. A field `bodies` holds the bodies that the node runs; a field
/// `extends` holds the result of extends().
template <HasFields T>
class AttributesOf final : public Attributes {
 public:
  explicit AttributesOf(T value) : value_(std::move(value)) {}

  const T& value() const { return value_; }
  const std::type_info& type() const override { return typeid(T); }
  std::unique_ptr<const Attributes> clone() const override {
    return std::make_unique<const AttributesOf<T>>(value_);
  }
  void print(std::string& out) const override {
    bool first = true;
    visit_fields(value_, [&](std::string_view name, const auto& field) {
      if (!first) out.append(", ");
      first = false;
      out.append(name);
      out.push_back('=');
      attribute_text::print(out, field);
    });
  }
  const std::vector<Body>* bodies() const override {
    if constexpr (requires(const T& value) { value.bodies; })
      return &value_.bodies;
    else
      return nullptr;
  }
  std::string_view extends() const override {
    if constexpr (requires(const T& value) { value.extends; })
      return value_.extends;
    else
      return {};
  }
  void append_key(std::string& out) const override {
    visit_fields(value_, [&](std::string_view, const auto& field) {
      attribute_text::append_key(out, field);
    });
  }

 private:
  T value_;
};

/// Wraps an attribute struct in the form that a node holds.
template <HasFields T>
std::unique_ptr<const Attributes> make_attributes(T value) {
  return std::make_unique<const AttributesOf<T>>(std::move(value));
}

/// Parses `name=value, ...` as print() writes it.
/// @error invalid argument for an unknown or missing name or a malformed value.
template <HasFields T>
Result<std::unique_ptr<const Attributes>> parse_attributes(std::string_view text) {
  T value{};
  attribute_text::Reader reader(text);
  visit_fields(value, [&](std::string_view name, auto& field) { reader.field(name, field); });
  MESHARD_RETURN_IF_ERROR(reader.finish());
  return make_attributes(std::move(value));
}

}  // namespace meshard
