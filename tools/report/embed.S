// The files that every page contains, byte by byte, in the executable's read-only data. The compiler is given
// the folders (-I). Read by embed.cpp. A rebuild after a change of a file: OBJECT_DEPENDS in CMakeLists.txt.
	.section .rodata, "a", %progbits

	.globl godwit_report_frame, godwit_report_frame_end
	.globl godwit_report_compare_frame, godwit_report_compare_frame_end
	.globl godwit_report_style, godwit_report_style_end
	.globl godwit_report_scripts, godwit_report_scripts_end
	.globl godwit_report_compare_scripts, godwit_report_compare_scripts_end
	.globl godwit_report_echarts, godwit_report_echarts_end

godwit_report_frame:
	.incbin "page/report.html"
godwit_report_frame_end:
godwit_report_compare_frame:
	.incbin "page/compare.html"
godwit_report_compare_frame_end:
godwit_report_style:
	.incbin "page/report.css"
godwit_report_style_end:
godwit_report_scripts:
	.incbin "page/format.js"
	.incbin "page/widgets.js"
	.incbin "page/data.js"
	.incbin "page/time.js"
	.incbin "page/pointer.js"
	.incbin "page/charts.js"
	.incbin "page/tables.js"
	.incbin "page/moves.js"
	.incbin "page/main.js"
godwit_report_scripts_end:
godwit_report_compare_scripts:
	.incbin "page/format.js"
	.incbin "page/widgets.js"
	.incbin "page/compare.js"
godwit_report_compare_scripts_end:
godwit_report_echarts:
	.incbin "vendor/echarts/echarts.min.js"
godwit_report_echarts_end:

	.section .note.GNU-stack, "", %progbits
