// Tested in tests/conformance/complex_test.cc.
#pragma once
#include "meshard/ops/definition/emission.h"

namespace meshard::internal {

// OpDef::emit of the elementary functions. Complex numbers have the values of the array API
// standard, which equal those of C (Annex G), also for infinities and NaN and on both sides of the
// branch cuts. The text of real numbers is one op.
//
// The inverse functions use the formulas of W. Kahan, "Branch Cuts for Complex Elementary
// Functions" (1987), which keep the branch cuts and do not cancel.
void emit_exp(const OpCall& call, OpEmission& out);
void emit_expm1(const OpCall& call, OpEmission& out);
void emit_log(const OpCall& call, OpEmission& out);
void emit_log1p(const OpCall& call, OpEmission& out);
void emit_sqrt(const OpCall& call, OpEmission& out);
void emit_sinh(const OpCall& call, OpEmission& out);
void emit_cosh(const OpCall& call, OpEmission& out);
void emit_tanh(const OpCall& call, OpEmission& out);
void emit_acos(const OpCall& call, OpEmission& out);
void emit_acosh(const OpCall& call, OpEmission& out);
void emit_asin(const OpCall& call, OpEmission& out);
void emit_asinh(const OpCall& call, OpEmission& out);
void emit_atan(const OpCall& call, OpEmission& out);
void emit_atanh(const OpCall& call, OpEmission& out);

}  // namespace meshard::internal
