# What readers copy out of README.md and docs/*.md: command lines are executed, programs compiled and run.
# Once, in the build of the other tests that are about users (main_build, ../CMakeLists.txt).
find_package(Python3 QUIET COMPONENTS Interpreter)
if(main_build AND NOT sanitized AND NOT CMAKE_CROSSCOMPILING AND Python3_Interpreter_FOUND)
  add_test(NAME docs.programs COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/programs.py
                                      ${PROJECT_BINARY_DIR} ${CMAKE_CXX_COMPILER})
  add_test(NAME docs.readme COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/readme.py
                                    ${PROJECT_BINARY_DIR} ${CMAKE_COMMAND})
  set_tests_properties(docs.programs docs.readme PROPERTIES LABELS docs TIMEOUT 1500)
endif()
