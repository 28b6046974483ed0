# scripts/reproduce with sizes that take seconds: does it run, resume, stop and write what it measured?
find_package(Python3 QUIET COMPONENTS Interpreter)
if(TARGET bench_pfor AND Python3_Interpreter_FOUND AND NOT sanitized AND NOT CMAKE_CROSSCOMPILING)
  add_test(NAME reproduce COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/reproduce_test.py
                                  ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  add_test(NAME reproduce.table COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/table_test.py
                                        ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  set_tests_properties(reproduce reproduce.table PROPERTIES LABELS bench TIMEOUT 300)
endif()
if(Python3_Interpreter_FOUND AND NOT sanitized AND NOT CMAKE_CROSSCOMPILING)
  add_test(NAME reproduce.page COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/page_test.py ${PROJECT_SOURCE_DIR})
  set_tests_properties(reproduce.page PROPERTIES LABELS once TIMEOUT 120)
endif()
