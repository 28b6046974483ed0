# The form of the sources: form_check.py. tests/form/bad is a tree with one violation of each kind.
find_package(Python3 QUIET COMPONENTS Interpreter)
if(main_build AND NOT sanitized AND NOT CMAKE_CROSSCOMPILING AND Python3_Interpreter_FOUND)
  set(form_check ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/form_check.py)
  add_test(NAME form COMMAND ${form_check} ${PROJECT_SOURCE_DIR})
  add_test(NAME form.finds_violations COMMAND ${form_check} ${CMAKE_CURRENT_LIST_DIR}/bad)
  set_tests_properties(form form.finds_violations PROPERTIES LABELS layers TIMEOUT 300)
  # One of each kind; the formatter's only where it is installed.
  set_tests_properties(form.finds_violations PROPERTIES
                       PASS_REGULAR_EXPRESSION "[^0-9]18 violations|is not checked.*[^0-9]17 violations")
endif()

# What a program that only spawns and joins has its compiler read: not more than 52,000 lines with the C++ library of gcc 12.
if(main_build AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION MATCHES "^12\\.")
  add_test(NAME form.task_header_is_small
           COMMAND sh -c "n=$(echo '#include <godwit/task.hpp>' | $0 -std=c++20 -I$1/include -E -x c++ - | wc -l); echo $n lines; \
test $n -gt 1000 && test $n -le 52000" ${CMAKE_CXX_COMPILER} ${PROJECT_SOURCE_DIR})
  set_tests_properties(form.task_header_is_small PROPERTIES LABELS form TIMEOUT 60)
endif()
