// Defines element-wise ops: promotion, NumPy broadcasting, inference, sharding rule, derivatives.
#pragma once
#include <span>

#include "meshard/graph/op_def.h"
#include "meshard/graph/record.h"
#include "meshard/graph/tensor.h"

namespace meshard::element_wise {

// How an element-wise op is called, inferred, written and batched.

/// Records `op(x)`; integers and bools become f32 if the op computes on floats.
/// @error invalid argument if the dtype is outside the op's domain.
Tensor unary(const OpDef& op, const In& x);

/// Records `op(a, b)` after promoting dtypes and broadcasting shapes as NumPy does (right-aligned;
/// size 1 is repeated). C++ numbers are weakly typed; see also weak_number.h.
/// @error invalid argument naming both types and the source lines that created the operands.
Tensor binary(const OpDef& op, const In& a, const In& b);

/// OpDef::infer: checks that operand types are equal and in the op's domain; adds one result, of
/// the operands' type or of bools.
void infer(const OpCall& call, ResultTypes& results);
/// The checks of infer, for another domain than the op's.
void check_operands(const OpCall& call, DTypeDomain domain);

/// OpDef::sharding_rule: every dimension is a factor that passes through all operands and the
/// result.
ShardingRule rule(const OpCall& call);

/// OpDef::emit: writes the op's mnemonic.
void emit(const OpCall& call, OpEmission& out);

/// OpDef::batch: the same op on larger operands.
void batch(const BatchCall& call, std::span<Tensor> results);

/// The definition of an element-wise op: `op`, where infer, sharding_rule, emit, batch and
/// traits.recomputation default to the values of all element-wise ops.
/// @pre op.domain or op.infer is set; op.mnemonic or op.emit. Otherwise the constant does not
/// compile.
constexpr OpDef define(OpDef op) {
  if (op.domain == DTypeDomain::kNone && !op.infer) throw "an op needs a domain or infer";
  if (op.mnemonic.empty() && !op.emit) throw "an op needs a mnemonic or emit";
  if (!op.infer) op.infer = infer;
  if (!op.sharding_rule) op.sharding_rule = rule;
  if (!op.emit) op.emit = emit;
  if (!op.batch) op.batch = batch;
  if (op.traits.recomputation == Recomputation::kNever)
    op.traits.recomputation = Recomputation::kArithmetic;
  return op;
}

/// The definition of a function of floats of one operand `x`: as define(), where the domain
/// defaults to floats and complex numbers, and the cost to the cost of a function.
constexpr OpDef define_function(OpDef op) {
  op.operands = "x";
  if (op.domain == DTypeDomain::kNone) op.domain = DTypeDomain::kFloatOrComplex;
  if (op.traits.recomputation == Recomputation::kNever)
    op.traits.recomputation = Recomputation::kFunction;
  return define(op);
}

// Parts of the above, for ops that are element-wise in some of their operands.

/// The operand as a tensor; a C++ number becomes a tensor of rank 0 and `dtype`. Inside a trace the
/// number is a constant of the program; so are whole numbers, bools, 0.0 and 1.0 outside of one.
/// Another floating-point number that is recorded lazily is an argument, so that a new number does
/// not make a new program. Equal numbers share one value, which is transferred to its devices once.
/// @error invalid argument naming both, for a number that `dtype` cannot represent; see
/// scalar_array().
Tensor to_tensor(const In& x, DType dtype);

/// A constant of rank 0 in the dtype of `like`. For numbers in a formula, which are constants
/// outside a trace too.
/// @error as to_tensor()
Tensor literal(double value, const Tensor& like);

/// The dtype of a single operand; a number has the default dtype of its kind.
/// @error invalid argument for a tensor without a value.
DType dtype_of_operand(const OpDef& op, const In& x);

/// The dtype to which the operands of one op are promoted. A weakly typed one contributes only its
/// kind.
DType common_dtype(const OpDef& op, const In& a, const In& b);

/// The dtype in which an op computes on operands of `dtype`: f32 for integers where floats are
/// required.
/// @error invalid argument if `dtype` is outside the op's domain.
DType enter_domain(const OpDef& op, DType dtype, SourceLocation where);

/// The shape that two shapes broadcast to. @error invalid argument naming both.
Shape broadcast_shapes(const OpDef& op, const Shape& a, const Shape& b, SourceLocation where);

/// Broadcasts all operands to one shape. @error as broadcast_shapes, with the source lines that
/// created the operands.
void broadcast_together(const OpDef& op, std::span<Tensor> operands, SourceLocation where);

/// True if the domain contains `dtype`.
bool accepts(DTypeDomain domain, DType dtype);

// Derivatives.

/// The vjp of ops whose derivative is zero wherever it exists.
inline void zero_vjp(const VjpCall&, std::span<Tensor>) {}

/// out[0] = the cotangent times `slope`.
void multiply_by_slope(const VjpCall& call, std::span<Tensor> out, const Tensor& slope);

/// The vjp of an op of one operand whose derivative is `slope(call)`.
template <class Slope>
constexpr auto by_slope(Slope) {
  return +[](const VjpCall& call, std::span<Tensor> out) {
    multiply_by_slope(call, out, Slope()(call));
  };
}

/// The vjp of ops that select one of two operands: the selected one receives the cotangent; equal
/// ones receive half each.
void chosen_vjp(const VjpCall& call, std::span<Tensor> out);

}  // namespace meshard::element_wise
