# What readers copy out of README.md and docs/*.md: command lines are executed, programs compiled and run.
# Once, in the build of the other tests that are about users (main_build, ../CMakeLists.txt).
find_package(Python3 QUIET COMPONENTS Interpreter)
if(main_build AND NOT sanitized AND NOT CMAKE_CROSSCOMPILING AND Python3_Interpreter_FOUND)
  add_test(NAME docs.programs COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/programs.py
                                      ${PROJECT_BINARY_DIR} ${CMAKE_CXX_COMPILER})
  add_test(NAME docs.coming_from COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/coming_from.py
                                         ${PROJECT_BINARY_DIR} ${CMAKE_CXX_COMPILER})
  set_tests_properties(docs.coming_from PROPERTIES LABELS docs TIMEOUT 600)
  add_test(NAME docs.readme COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/readme.py
                                    ${PROJECT_BINARY_DIR} ${CMAKE_COMMAND})
  set_tests_properties(docs.programs docs.readme PROPERTIES LABELS docs TIMEOUT 1500)

  # Links lead somewhere; tests/docs/bad has a mistake of each kind. The drawings are what their script draws.
  add_test(NAME docs.links COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/links.py)
  add_test(NAME docs.links.finds_mistakes COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/links.py
                                                  ${CMAKE_CURRENT_LIST_DIR}/bad)
  set_tests_properties(docs.links.finds_mistakes PROPERTIES PASS_REGULAR_EXPRESSION "[^0-9]5 mistakes")
  add_test(NAME docs.drawings COMMAND sh -c "$0 -B $1/docs/images/source/drawings.py . && for n in stack deque join; do \
cmp $n.svg $1/docs/images/$n.svg || exit 1; done" ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR})
  add_test(NAME docs.tutorial COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/tutorial.py
                                      ${CMAKE_CURRENT_BINARY_DIR}/install/prefix)
  # Runs mpirun and two workers: as the tests of ../mpi do.
  set_tests_properties(docs.tutorial PROPERTIES FIXTURES_REQUIRED godwit_prefix TIMEOUT 600 PROCESSORS 2 RESOURCE_LOCK mpi)
  # Installs nothing: skipped where scripts/setup or scripts/site has not.
  add_test(NAME docs.site COMMAND sh -c "[ -x $0/build/tools/site/bin/mkdocs ] || exit 77; exec $0/scripts/site $1"
                                  ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_BINARY_DIR}/site)
  set_tests_properties(docs.site PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 300)
  set_tests_properties(docs.links docs.links.finds_mistakes docs.drawings docs.tutorial docs.site PROPERTIES LABELS docs)
endif()
