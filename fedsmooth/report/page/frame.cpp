#include "fedsmooth/report/page/frame.h"

#include <fmt/format.h>

#include "fedsmooth/base/text.h"
#include "fedsmooth/report/page/style.h"

namespace fedsmooth {

std::string page(std::string_view title, std::string_view body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{0}</title>\n<style>{1}</style>\n</head>\n<body>\n<h1>{0}</h1>\n{2}"
      "<footer>Made by fedsmooth.</footer>\n</body>\n</html>\n",
      escape_html(title), kReportStyle, body);
}

std::string section(std::string_view title, std::string_view body) {
  return fmt::format("<section>\n<h2>{}</h2>\n{}</section>\n", escape_html(title), body);
}

std::string figure(const Figure& drawn) {
  return fmt::format("<div class=\"curves\">\n{}</div>\n", figure_svg(drawn));
}

}  // namespace fedsmooth
