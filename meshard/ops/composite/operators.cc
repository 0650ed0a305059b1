#include "meshard/ops/composite/operators.h"

#include "meshard/graph/leaf.h"
#include "meshard/graph/sharding_mark.h"
#include "meshard/ops/all.h"

namespace meshard {
namespace {

// Gives the new value of a marked tensor the same mark: an updated parameter keeps its sharding.
Tensor& rebind(Tensor& a, Tensor result, const SourceLocation& where) {
  std::optional<Sharding> sharding = specified_sharding(a);
  if (sharding && result.shape() == a.shape())
    result = sharding_constraint(In(result, where), *sharding);
  return a = std::move(result);
}

}  // namespace

Tensor operator+(In a, In b) { return add(a, b); }
Tensor operator-(In a, In b) { return subtract(a, b); }
Tensor operator*(In a, In b) { return multiply(a, b); }
Tensor operator/(In a, In b) { return divide(a, b); }
Tensor operator%(In a, In b) { return remainder(a, b); }
Tensor operator-(In x) { return negative(x); }

Tensor operator<(In a, In b) { return less(a, b); }
Tensor operator<=(In a, In b) { return less_equal(a, b); }
Tensor operator>(In a, In b) { return greater(a, b); }
Tensor operator>=(In a, In b) { return greater_equal(a, b); }

Tensor operator&(In a, In b) { return bitwise_and(a, b); }
Tensor operator|(In a, In b) { return bitwise_or(a, b); }
Tensor operator^(In a, In b) { return bitwise_xor(a, b); }
Tensor operator~(In x) { return bitwise_invert(x); }

Tensor& operator+=(Tensor& a, In b) { return rebind(a, add(In(a, b.where), b), b.where); }
Tensor& operator-=(Tensor& a, In b) { return rebind(a, subtract(In(a, b.where), b), b.where); }
Tensor& operator*=(Tensor& a, In b) { return rebind(a, multiply(In(a, b.where), b), b.where); }
Tensor& operator/=(Tensor& a, In b) { return rebind(a, divide(In(a, b.where), b), b.where); }

void assign(Tensor& x, HostArray&& array, SourceLocation where) {
  if (array.type() != x.type(where))
    throw_invalid(where, "[assign] an array of type ", array.type(),
                  " cannot be assigned to a tensor of type ", x.type(where));
  std::optional<Sharding> sharding = x.sharding();
  Tensor contents = from_host(std::move(array), where);
  x = sharding ? mark_sharding(In(contents, where), *sharding) : contents;
}

void assign(Tensor& x, const HostArray& array, SourceLocation where) {
  assign(x, HostArray(array), where);
}

}  // namespace meshard
