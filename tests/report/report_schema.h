// The JSON schema of reports, made from their fields.
#pragma once
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "meshard/base/json_fields.h"
#include "meshard/explain/report.h"

namespace meshard {

/// Writes schemas of types. Structs become definitions by their names. Types that have no fields
/// (Sharding, Topology) are defined in leaf_schemas.json. Descriptions are names of comments,
/// `@MemoryUse.aliased`, which check_schema.py replaces.
class ReportSchema {
 public:
  static std::string text() {
    ReportSchema schema;
    JsonWriter json;
    json.begin_object();
    schema.members<ProgramReport::Parts>(json);
    json.key("$defs").begin_object();
    for (; !schema.pending_.empty(); schema.pending_.pop_front()) schema.pending_.front()(json);
    json.end_object().end_object();
    return std::move(json).text();
  }

 private:
  // The name of a type without those around it.
  template <class T>
  static std::string name_of() {
    std::string_view text = __PRETTY_FUNCTION__;
    text.remove_prefix(text.find("T = ") + 4);
    text = text.substr(0, text.find_first_of(";]"));
    return std::string(text.substr(text.rfind(':') + 1));
  }

  template <class T>
  void members(JsonWriter& json) {
    json.member("type", "object").member("description", "@" + name_of<T>());
    json.key("required").begin_array();
    each_field<T>([&](std::string_view name, bool is_later, const auto&) {
      if (!is_later) json.value(written_name(name));
    });
    json.end_array().key("properties").begin_object();
    write_properties<T>(json);
    json.end_object();
  }

  template <class T>
  void write_properties(JsonWriter& json) {
    each_field<T>([&]<class Field>(std::string_view name, bool, const Field&) {
      json.key(written_name(name)).begin_object();
      std::string owner = owner_of<T>(name);
      json.member("description", "@" + owner + "." + std::string(written_name(name)));
      type<Field>(json, lists_name(field_notes<T>().negative, name));
      json.end_object();
    });
  }

  // The struct whose field it is: T, or one that T has inlined.
  template <class T>
  static std::string owner_of(std::string_view asked) {
    std::string owner = name_of<T>();
    visit_fields(std::as_const(example<T>()),
                 [&]<class Field>(std::string_view name, const Field&) {
                   if constexpr (HasFields<Field>)
                     if (lists_name(field_notes<T>().inlined, name))
                       each_field<Field>([&](std::string_view inner, bool, const auto&) {
                         if (inner == asked) owner = name_of<Field>();
                       });
                 });
    return owner;
  }

  template <class T>
  static const T& example() {
    static const T value{};
    return value;
  }

  // Calls visit(name, is_later, field) for the fields that are written.
  template <class T, class Visit>
  static void each_field(const Visit& visit) {
    constexpr FieldNotes kNotes = field_notes<T>();
    visit_fields(example<T>(), [&]<class Field>(std::string_view name, const Field& field) {
      if (lists_name(kNotes.local, name)) return;
      if constexpr (HasFields<Field>)
        if (lists_name(kNotes.inlined, name)) return each_field<Field>(visit);
      visit(name, lists_name(kNotes.later, name), field);
    });
  }

  static void refer(JsonWriter& json, const std::string& name) {
    json.member("$ref", "#/$defs/" + name);
  }

  // The members of a type's schema.
  template <class T>
  void type(JsonWriter& json, bool may_be_negative = false) {
    if constexpr (internal::kIsOptional<T>) {
      json.key("anyOf").begin_array().begin_object().member("type", "null").end_object();
      json.begin_object();
      type<typename T::value_type>(json, may_be_negative);
      json.end_object().end_array();
    } else if constexpr (std::is_same_v<T, AxisList>) {
      refer(json, "axes");
    } else if constexpr (std::is_same_v<T, std::vector<Mesh>>) {
      json.member("type", "array").key("items").begin_object();
      refer(json, "mesh");
      json.end_object();
    } else if constexpr (std::is_same_v<T, Topology>) {
      refer(json, "topology");
    } else if constexpr (std::is_same_v<T, Sharding>) {
      refer(json, "sharding");
    } else if constexpr (std::is_same_v<T, Mesh>) {
      refer(json, "count");
    } else if constexpr (HasFields<T>) {
      refer(json, name_of<T>());
      if (defined_.insert(name_of<T>()).second)
        pending_.push_back([this](JsonWriter& to) {
          to.key(name_of<T>()).begin_object();
          members<T>(to);
          to.end_object();
        });
    } else if constexpr (std::is_enum_v<T>) {
      json.key("enum").begin_array();
      for (const auto& each : EnumNames<T>::kNames) json.value(each.name);
      json.end_array();
    } else if constexpr (std::is_same_v<T, bool>) {
      json.member("type", "boolean");
    } else if constexpr (std::is_integral_v<T>) {
      if (may_be_negative)
        json.member("type", "integer");
      else
        refer(json, "count");
    } else if constexpr (std::is_floating_point_v<T>) {
      refer(json, "number");
    } else if constexpr (std::is_convertible_v<T, std::string_view> ||
                         std::is_same_v<T, TensorType>) {
      json.member("type", "string");
    } else {
      json.member("type", "array").key("items").begin_object();
      type<typename T::value_type>(json);
      json.end_object();
    }
  }

  std::set<std::string> defined_;
  std::deque<std::function<void(JsonWriter&)>> pending_;
};

}  // namespace meshard
