#include "fedsmooth/records/table_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/json.h"
#include "fedsmooth/base/sha256.h"
#include "fedsmooth/base/version.h"

namespace fedsmooth {

using nlohmann::json;

constexpr const char* kSeal = "table_sha256";  // key in the JSON beside a finished table

namespace {

// Returns JSON as messages show it: of a SHA-256, the first digits.
std::string shorten_digest(const std::string& text) {
  const bool is_digest = text.size() == 66 && text.find_first_not_of("0123456789abcdef", 1) == 65;
  return is_digest ? text.substr(0, 13) + "...\"" : text;
}

// Returns what a table that differs in `key` is about; empty where the key itself says it.
std::string_view other_subject(std::string_view key) {
  if (key == "model_sha256" || key == "fingerprint") return "of another model, ";
  if (key == "data") return "of another data set, ";
  if (key == "data_sha256") return "of other images or labels, ";
  return {};
}

}  // namespace

std::string identity_difference(const json& here, const json& there) {
  json both = here;  // every key of either
  both.update(there);
  for (const auto& [key, value] : both.items()) {
    const auto text_in = [&key](const json& object) {
      return object.contains(key) ? dump_json(object[key]) : "unset";
    };
    const std::string a = text_in(there), b = text_in(here);
    if (a != b) {
      return fmt::format("{}: {} there, {} here", key, shorten_digest(a), shorten_digest(b));
    }
  }
  return {};
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
    const json identity = parse_sidecar(read_file(sidecar), table)["identity"];
    return find_string(identity, "model_sha256", sidecar.string()).has_value();
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

void remove_unfinished_table(const std::filesystem::path& table, const FileLock& lock) {
  if (!lock.held()) return;
  const std::string name = table.filename(), beside = sidecar_path(table).filename();
  remove_unfinished(std::filesystem::absolute(table).parent_path(), {name, beside});
}

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

void seal_table(const std::filesystem::path& table) {
  json sidecar = read_sidecar(table);
  sidecar[kSeal] = sha256(read_file(table));
  write_file(sidecar_path(table), dump_json_lines(sidecar));
}

void check_seal(const std::filesystem::path& table, std::string_view text) {
  if (!std::filesystem::exists(sidecar_path(table))) return;
  const auto seal = find_string(read_sidecar(table), kSeal, sidecar_path(table).string());
  if (!seal || *seal == sha256(text)) return;
  throw Error("{}: its rows are not those that {} was written for", table.string(),
              sidecar_path(table).filename().string());
}

void refuse_difference(const std::string& difference, const std::filesystem::path& table) {
  if (difference.empty()) return;
  throw Error(
      "{}: holds another measurement, {}which differs in {}; choose another --out, or delete "
      "it",
      table.string(), other_subject(difference.substr(0, difference.find(':'))), difference);
}

TableFile::TableFile(std::filesystem::path table, std::string_view header, const json& sidecar,
                     bool resume, const Keep& keep, const CheckContinues& check_continues)
    : table_(std::move(table)), lock_(table_) {
  sidecar_path(table_);  // refuses another ending
  remove_unfinished_table(table_, lock_);
  if (std::filesystem::exists(table_)) {
    continue_table(sidecar, resume, keep, check_continues);
  } else {
    write_new_table(table_, header, sidecar);
  }
  open();
}

void TableFile::continue_table(const json& sidecar, bool resume, const Keep& keep,
                               const CheckContinues& check_continues) {
  if (!resume && !std::filesystem::exists(sidecar_path(table_))) {
    throw Error("{}: exists; choose another --out", table_.string());
  }
  const json beside = read_sidecar(table_);
  const json& old = beside["identity"];
  check_continues(old);
  const std::string text = read_file(table_);
  check_seal(table_, text);
  const std::string kept = keep(text);
  // Only now --resume is known to work.
  if (!resume) {
    throw Error("{}: exists; continue it with --resume or choose another --out", table_.string());
  }
  if (old != sidecar["identity"] || beside.contains(kSeal)) {
    write_file(sidecar_path(table_), dump_json_lines(sidecar));
  }
  write_file(table_, kept);
}

void TableFile::open() {
  descriptor_ = ::open(table_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (descriptor_ < 0) {
    throw Error("{}: cannot be written: {}", table_.string(), std::strerror(errno));
  }
}

void TableFile::rewrite(std::string_view text) {
  write_file(table_, text);
  ::close(descriptor_);  // refers to the replaced file
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
