// What the definition of an op uses: its attributes, its inference, text, derivative and batches.
#pragma once
#include "meshard/graph/op_def.h"
#include "meshard/graph/record.h"
#include "meshard/ops/batching/batch_rule.h"
#include "meshard/ops/definition/attributes.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/definition/emission.h"
#include "meshard/ops/definition/op_text.h"
#include "meshard/ops/definition/operand.h"
