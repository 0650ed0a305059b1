// Tested in meshard/explain/cost/largest_buffers_test.cc.
#include "meshard/explain/cost/memory_use.h"

#include "meshard/base/cat.h"
#include "meshard/explain/byte_text.h"

namespace meshard {

std::string MemoryUse::to_string() const {
  std::string text = "memory per device: ";
  if (peak > 0 && peak < temporaries)
    append(text, cat("allocated ", byte_text(total()), ", of which at most ", byte_text(peak),
                     " are in use at one time; "));
  else if (peak > 0)
    append(text, cat("peak ", byte_text(peak), "; "));
  append(text,
         cat("arguments ", byte_text(arguments), ", outputs ", byte_text(outputs), ", temporaries ",
             byte_text(temporaries), ", aliased ", byte_text(aliased), ", code ", byte_text(code)));
  if (host_arguments > 0 || host_outputs > 0 || host_temporaries > 0)
    append(text, cat("; on the host: arguments ", byte_text(host_arguments), ", outputs ",
                     byte_text(host_outputs), ", temporaries ", byte_text(host_temporaries)));
  return text;
}

std::string_view to_string(BufferRole role) { return enum_name(role); }

std::string BufferUse::to_string() const {
  return cat(byte_text(bytes), " ", meshard::to_string(role), " ", name, " ", type,
             place.empty() ? "" : ", ", place);
}

}  // namespace meshard
