// The symbols of embed.S as texts. See embed.hpp.
#include "embed.hpp"

extern "C" {
#define GODWIT_REPORT_PART(name) extern const char godwit_report_##name[], godwit_report_##name##_end[]
GODWIT_REPORT_PART(frame);
GODWIT_REPORT_PART(compare_frame);
GODWIT_REPORT_PART(style);
GODWIT_REPORT_PART(scripts);
GODWIT_REPORT_PART(compare_scripts);
GODWIT_REPORT_PART(echarts);
#undef GODWIT_REPORT_PART
}

namespace godwit::report::embedded {
namespace {
std::string_view between(const char* begin, const char* end) {
  return {begin, static_cast<std::size_t>(end - begin)};
}
}  // namespace

std::string_view frame() { return between(godwit_report_frame, godwit_report_frame_end); }
std::string_view compare_frame() {
  return between(godwit_report_compare_frame, godwit_report_compare_frame_end);
}
std::string_view style() { return between(godwit_report_style, godwit_report_style_end); }
std::string_view scripts() { return between(godwit_report_scripts, godwit_report_scripts_end); }
std::string_view compare_scripts() {
  return between(godwit_report_compare_scripts, godwit_report_compare_scripts_end);
}
std::string_view echarts() { return between(godwit_report_echarts, godwit_report_echarts_end); }

}  // namespace godwit::report::embedded
