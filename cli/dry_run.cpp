#include "cli/dry_run.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "fedsmooth/base/json.h"

namespace fedsmooth::cli {
namespace {

std::string format_time(double seconds) {
  if (seconds < 100) return fmt::format("{:.1f} s", seconds);
  const auto minutes = static_cast<int64_t>(seconds / 60 + 0.5);
  if (minutes < 100) return fmt::format("{} min", minutes);
  return fmt::format("{} h {:02} min", minutes / 60, minutes % 60);
}

double gigabytes(int64_t bytes) { return static_cast<double>(bytes) / 1e9; }

}  // namespace

void print_dry_run(const jobs::DryRun& found, const std::string& unit,
                   const CommandContext& common) {
  if (common.json) {
    fmt::print("{}\n", dump_json({{"work", found.work},
                                  {"unit", unit},
                                  {"count", found.count},
                                  {"at_most", found.at_most},
                                  {"seconds", found.seconds},
                                  {"per_second", found.per_second},
                                  {"bytes", found.bytes},
                                  {"device_bytes", found.device_bytes},
                                  {"device", found.device}}));
    return;
  }
  const char* most = found.at_most ? "at most " : "";
  fmt::print("{}: {}{} {}\n", found.work, most, found.count, unit);
  fmt::print("{}about {} at {:.{}f} {} a second, on {}\n", most, format_time(found.seconds),
             found.per_second, found.per_second < 100 ? 1 : 0, unit, found.device);
  fmt::print("memory {:.2g} GB", gigabytes(found.bytes));
  if (found.device_bytes > 0) fmt::print(", of the GPU {:.2g} GB", gigabytes(found.device_bytes));
  fmt::print("; nothing was started\n");
}

void print_dry_run(const jobs::SweepDryRun& found, const CommandContext& common) {
  if (common.json) {
    fmt::print("{}\n", dump_json({{"experiments", found.experiments},
                                  {"trainings", found.trainings},
                                  {"rounds", found.rounds},
                                  {"certifications", found.certifications},
                                  {"votes", found.votes},
                                  {"at_most", found.at_most},
                                  {"seconds", found.seconds},
                                  {"disk_bytes", found.disk_bytes},
                                  {"device", found.device}}));
    return;
  }
  const char* most = found.at_most ? "at most " : "";
  fmt::print("experiments: {}\n", found.experiments);
  fmt::print("left: trainings {}, with {} rounds; certifications {}, with {}{} votes\n",
             found.trainings, found.rounds, found.certifications, most, found.votes);
  fmt::print("{}about {}, one after another{}\n", most, format_time(found.seconds),
             found.device.empty() ? "" : ", on " + found.device);
  fmt::print("disk {:.2g} GB; nothing was started\n", gigabytes(found.disk_bytes));
}

}  // namespace fedsmooth::cli
