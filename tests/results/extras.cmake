# scripts/results with sizes that take seconds: does it write pages, heads and the summary, and count commits? And are the
# pages in docs/results all made by it?
find_package(Python3 QUIET COMPONENTS Interpreter)
if(TARGET bench_uts AND Python3_Interpreter_FOUND AND NOT sanitized AND NOT CMAKE_CROSSCOMPILING)
  add_test(NAME results COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/results_test.py
                                ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  set_tests_properties(results PROPERTIES LABELS bench TIMEOUT 300)
endif()
