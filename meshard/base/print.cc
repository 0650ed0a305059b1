#include "meshard/base/print.h"

#include <ostream>

namespace meshard::internal::printing {

void write(std::ostream& stream, std::string_view text) { stream << text; }

}  // namespace meshard::internal::printing
