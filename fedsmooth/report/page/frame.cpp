#include "fedsmooth/report/page/frame.h"

#include <fmt/format.h>

#include "fedsmooth/base/sha256.h"
#include "fedsmooth/base/text.h"
#include "fedsmooth/base/version.h"
#include "fedsmooth/report/page/picture.h"
#include "fedsmooth/report/page/script.h"
#include "fedsmooth/report/page/style.h"

namespace fedsmooth {

namespace {

constexpr double kLeastScale = 0.65;  // at which the text in a figure can be read

/// Lets a browser load nothing, and run this very script alone.
std::string policy(std::string_view script) {
  const std::string digits = sha256(script);
  std::string bytes;
  for (size_t i = 0; i < digits.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  }
  return fmt::format(
      "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{}'",
      base64(bytes));
}

}  // namespace

std::string page(std::string_view title, std::string_view body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{3}\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{0}</title>\n<style>{1}</style>\n</head>\n<body>\n<h1>{0}</h1>\n{2}"
      "<footer>Made by fedsmooth {5}.</footer>\n<script>{4}</script>\n</body>\n</html>\n",
      escape_html(title), kReportStyle, body, policy(kReportScript), kReportScript, version());
}

std::string section(std::string_view title, std::string_view body) {
  return fmt::format("<section>\n<h2>{}</h2>\n{}</section>\n", escape_html(title), body);
}

std::string figure(const Figure& drawn) {
  return fmt::format(
      "<div class=\"scroll\"><div class=\"curves\" style=\"min-width: {:.0f}px; max-width: "
      "{:.0f}px\">\n{}</div></div>\n",
      kLeastScale * drawn.width, drawn.width, figure_svg(drawn));
}

}  // namespace fedsmooth
