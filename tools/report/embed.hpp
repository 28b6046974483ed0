// The page's parts as they were built into the executable (embed.S).
#pragma once

#include <string_view>

namespace godwit::report::embedded {

std::string_view frame();            ///< page/report.html, with {{marks}}
std::string_view scripts();          ///< of that page: page/*.js, one after the other
std::string_view compare_frame();    ///< page/compare.html
std::string_view compare_scripts();  ///< of that page
std::string_view style();            ///< page/report.css, of both
std::string_view echarts();          ///< vendor/echarts/echarts.min.js

}  // namespace godwit::report::embedded
