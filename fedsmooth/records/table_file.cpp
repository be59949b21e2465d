#include "fedsmooth/records/table_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/json.h"
#include "fedsmooth/base/version.h"

namespace fedsmooth {

using nlohmann::json;

std::string identity_difference(const json& here, const json& there) {
  for (const auto& [key, value] : here.items()) {
    if (!there.contains(key)) return fmt::format("{}: unset there, {} here", key, dump_json(value));
    if (there[key] != value) {
      return fmt::format("{}: {} there, {} here", key, dump_json(there[key]), dump_json(value));
    }
  }
  return "keys that only one of them has";
}

std::filesystem::path sidecar_path(const std::filesystem::path& table) {
  if (table.extension() != ".tsv") throw Error("{}: a table must end in .tsv", table.string());
  return std::filesystem::path(table).replace_extension(".json");
}

json read_sidecar(const std::filesystem::path& table) {
  return parse_sidecar(read_file(sidecar_path(table)), table);
}

json parse_sidecar(std::string_view text, const std::filesystem::path& table) {
  const std::string name = sidecar_path(table).string();
  json sidecar = parse_json_object(text, name);
  if (!sidecar.contains("identity") || !sidecar["identity"].is_object()) {
    throw Error("{}: does not say what {} is about", name, table.filename().string());
  }
  return sidecar;
}

json build_provenance() {
  return {{"version", version()}, {"commit", commit()}, {"date", utc_now()}};
}

namespace {

bool is_ours(const std::filesystem::path& sidecar, const std::filesystem::path& table) {
  try {
    return parse_sidecar(read_file(sidecar), table)["identity"].contains("model_sha256");
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

void write_new_table(const std::filesystem::path& table, std::string_view text,
                     const json& sidecar) {
  const std::filesystem::path beside = sidecar_path(table);
  if (std::filesystem::exists(beside) && !is_ours(beside, table)) {
    throw Error("{}: exists and would be overwritten; choose another --out", beside.string());
  }
  write_file(beside, dump_json_lines(sidecar));
  try {
    write_file(table, text);
  } catch (const Error&) {
    std::error_code ignored;
    std::filesystem::remove(beside, ignored);
    throw;
  }
}

TableFile::TableFile(std::filesystem::path table, std::string_view header, const json& sidecar,
                     bool resume, const Keep& keep, const Continues& continues)
    : table_(std::move(table)), lock_(table_) {
  sidecar_path(table_);  // refuses another ending
  if (std::filesystem::exists(table_)) {
    if (!resume) {
      throw Error("{}: exists; continue it with --resume or choose another --out", table_.string());
    }
    const json old = read_sidecar(table_)["identity"];
    const bool same = old == sidecar["identity"];
    if (!same && !(continues && continues(old))) {
      throw Error("{}: holds another measurement, which differs in {}", table_.string(),
                  identity_difference(sidecar["identity"], old));
    }
    const std::string kept = keep(read_file(table_));
    if (!same) write_file(sidecar_path(table_), dump_json_lines(sidecar));
    write_file(table_, kept);
  } else {
    write_new_table(table_, header, sidecar);
  }
  open();
}

void TableFile::open() {
  descriptor_ = ::open(table_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (descriptor_ < 0) {
    throw Error("{}: cannot be written: {}", table_.string(), std::strerror(errno));
  }
}

void TableFile::rewrite(std::string_view text) {
  write_file(table_, text);
  ::close(descriptor_);  // of the old text
  open();
}

TableFile::~TableFile() {
  if (descriptor_ < 0) return;
  ::fsync(descriptor_);
  ::close(descriptor_);
}

void TableFile::append(std::string_view lines) {
  const ssize_t written = ::write(descriptor_, lines.data(), lines.size());
  if (written != static_cast<ssize_t>(lines.size())) {
    throw Error("{}: cannot be written: {}; continue with --resume when there is room",
                table_.string(), written < 0 ? std::strerror(errno) : "the disk is full");
  }
}

}  // namespace fedsmooth
