// Prints the examples of all ops as C++, so that the build can compile them.
#include <cstdio>

#include "meshard/ops/definition/op_table.h"

int main() {
  for (const meshard::OpDef* op : meshard::all_ops()) {
    if (op->example.empty()) {
      std::fprintf(stderr, "the op %.*s has no example\n", static_cast<int>(op->name.size()),
                   op->name.data());
      return 1;
    }
    std::printf(
        "{\"%.*s\", [](const Tensor& x, const Tensor& y) -> Tensor { (void)x; (void)y; return "
        "%.*s; }},\n",
        static_cast<int>(op->name.size()), op->name.data(), static_cast<int>(op->example.size()),
        op->example.data());
  }
}
