# godwit-scale (tools/scale). Included by ../CMakeLists.txt.
find_package(Python3 QUIET COMPONENTS Interpreter)
if(main_build AND Python3_Interpreter_FOUND AND TARGET example_simulate AND NOT CMAKE_CROSSCOMPILING)
  add_test(NAME scale.tool COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/scale_test.py
           ${PROJECT_SOURCE_DIR}/tools/scale/godwit-scale $<TARGET_FILE:example_simulate> $<TARGET_FILE:example_fib>)
  set_tests_properties(scale.tool PROPERTIES LABELS tools TIMEOUT 200)
  add_test(NAME scale.fit COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/fit_test.py ${PROJECT_SOURCE_DIR}/tools/scale/godwit-scale
                                  $<TARGET_FILE:godwit_measure> $<TARGET_FILE:example_simulate>)
  set_tests_properties(scale.fit PROPERTIES LABELS tools TIMEOUT 200)
  if(TARGET bench_scale)
    add_test(NAME scale.real COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/bench/real.py --tiny --build ${PROJECT_BINARY_DIR})
    set_tests_properties(scale.real PROPERTIES LABELS tools TIMEOUT 200 PASS_REGULAR_EXPRESSION "pfor . 1 .*1[.]00.*btc . 2 ")
  endif()
endif()
