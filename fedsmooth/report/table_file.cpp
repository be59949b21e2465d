#include "fedsmooth/report/table_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/base/version.h"

namespace fedsmooth {

using nlohmann::json;

std::string identity_difference(const json& here, const json& there) {
  for (const auto& [key, value] : here.items()) {
    if (!there.contains(key)) return fmt::format("{}: unset there, {} here", key, value.dump());
    if (there[key] != value) {
      return fmt::format("{}: {} there, {} here", key, there[key].dump(), value.dump());
    }
  }
  return "keys that only one of them has";
}

std::filesystem::path sidecar_path(const std::filesystem::path& table) {
  if (table.extension() != ".tsv") throw Error("{}: a table must end in .tsv", table.string());
  return std::filesystem::path(table).replace_extension(".json");
}

json read_sidecar(const std::filesystem::path& table) {
  const std::filesystem::path path = sidecar_path(table);
  const json sidecar = json::parse(read_file(path), nullptr, /*allow_exceptions=*/false);
  if (!sidecar.is_object() || !sidecar.contains("identity") || !sidecar["identity"].is_object()) {
    throw Error("{}: does not say what {} is about", path.string(), table.filename().string());
  }
  return sidecar;
}

json build_provenance() {
  return {{"version", version()},
          {"commit", commit()},
          {"libtorch", torch_version()},
          {"date", utc_now()}};
}

TableFile::TableFile(std::filesystem::path table, std::string_view header, const json& sidecar,
                     bool resume, const std::function<std::string(const std::string&)>& keep)
    : table_(std::move(table)) {
  if (std::filesystem::exists(table_)) {
    if (!resume) {
      throw Error("{}: exists; go on with it by --resume or choose another --out", table_.string());
    }
    const json old = read_sidecar(table_)["identity"];
    if (old != sidecar["identity"]) {
      throw Error("{}: holds another measurement, which differs in {}", table_.string(),
                  identity_difference(sidecar["identity"], old));
    }
    write_file(table_, keep(read_file(table_)));
  } else {
    write_file(sidecar_path(table_), sidecar.dump(2) + "\n");
    write_file(table_, header);
  }
  descriptor_ = ::open(table_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (descriptor_ < 0) {
    throw Error("{}: cannot be written: {}", table_.string(), std::strerror(errno));
  }
}

TableFile::~TableFile() {
  if (descriptor_ < 0) return;
  ::fsync(descriptor_);
  ::close(descriptor_);
}

void TableFile::append(std::string_view lines) {
  const ssize_t written = ::write(descriptor_, lines.data(), lines.size());
  if (written != static_cast<ssize_t>(lines.size())) {
    throw Error("{}: cannot be written: {}; go on by --resume when there is room", table_.string(),
                written < 0 ? std::strerror(errno) : "the disk is full");
  }
}

}  // namespace fedsmooth
