# godwit-report's tests: all of them link what it is made of, without main, and the writer of trace files for tests.
# The page itself is tried in a headless Chromium (browser_test.py; skipped with a message where there is none).
# Included by ../CMakeLists.txt, which leaves the folder out where the tool is not built.
set(here ${CMAKE_CURRENT_LIST_DIR})
if(TARGET report_core)
  add_library(report_test_support STATIC ${here}/trace_builder.cpp ${here}/simulate.cpp)
  target_link_libraries(report_test_support PUBLIC report_core godwit_build)
  foreach(name input analysis summary page)
    if(TARGET report_${name})
      target_link_libraries(report_${name} PRIVATE report_test_support)
    endif()
  endforeach()
  add_executable(report_generate ${here}/generate.cpp)
  target_link_libraries(report_generate PRIVATE report_test_support)
endif()
