// How unlike the clients are: their label shares as stacked bars.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "fedsmooth/records/clients.h"

namespace fedsmooth {

/// One bar per client, for 50 spread over all of them if there are more; classes without a name go
/// by number. Formats as in canvas.h. Refuses an empty list, and clients with different numbers of
/// classes.
void draw_clients(const std::vector<ClientRow>& clients,
                  const std::vector<std::string>& class_names, const std::filesystem::path& out);

}  // namespace fedsmooth
