#include "tools/conformance/jax/calls/call_table.h"

#include "meshard/base/cat.h"

namespace meshard::conformance {

const Json& Attributes::at(const char* name) const {
  if (!has(name)) throw Unreadable(cat("no attribute ", name));
  return fields_->at(name);
}

std::int64_t Attributes::integer(const char* name) const {
  if (!at(name).is_number_integer()) throw Unreadable(cat(name, " is not an integer"));
  return at(name).get<std::int64_t>();
}

double Attributes::number(const char* name) const {
  const Json& value = at(name);
  if (value == "inf") return HUGE_VAL;
  if (value == "-inf") return -HUGE_VAL;
  if (!value.is_number()) throw Unreadable(cat(name, " is not a number"));
  return value.get<double>();
}

bool Attributes::flag(const char* name) const {
  if (!at(name).is_boolean()) throw Unreadable(cat(name, " is not a bool"));
  return at(name).get<bool>();
}

std::string Attributes::text(const char* name) const {
  if (!at(name).is_string()) throw Unreadable(cat(name, " is not a string"));
  return at(name).get<std::string>();
}

DType Attributes::dtype(const char* name) const {
  Result<DType> dtype = parse_dtype(text(name));
  if (!dtype.ok()) throw Unreadable(dtype.error().message());
  return dtype.value();
}

Dimensions Attributes::list(const char* name) const {
  Dimensions dimensions;
  if (!at(name).is_array()) throw Unreadable(cat(name, " is not a list"));
  for (const Json& each : at(name)) {
    if (!each.is_number_integer()) throw Unreadable(cat(name, " is not a list of integers"));
    dimensions.push_back(each.get<std::int64_t>());
  }
  return dimensions;
}

std::optional<std::int64_t> Attributes::maybe_integer(const char* name) const {
  return has(name) ? std::optional(integer(name)) : std::nullopt;
}

DimensionList Attributes::dimensions(const char* name) const {
  return has(name) ? DimensionList(list(name)) : DimensionList();
}

std::size_t Attributes::one_of(const char* name,
                               std::initializer_list<std::string_view> words) const {
  std::string said = text(name);
  std::size_t place = 0;
  for (std::string_view word : words) {
    if (word == said) return place;
    ++place;
  }
  throw Unreadable(cat(name, " is ", said));
}

const CallFunction* find_call(std::string_view op) {
  for (const CallTable* table :
       {&element_wise_calls(), &reduction_calls(), &movement_calls(), &contraction_calls(),
        &indexing_calls(), &window_calls(), &network_calls(), &optimizer_calls()})
    if (auto found = table->find(op); found != table->end()) return &found->second;
  return nullptr;
}

}  // namespace meshard::conformance
