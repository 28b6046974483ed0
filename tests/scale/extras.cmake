# godwit-scale (tools/scale). Included by ../CMakeLists.txt.
find_package(Python3 QUIET COMPONENTS Interpreter)
if(main_build AND Python3_Interpreter_FOUND AND TARGET example_simulate AND NOT CMAKE_CROSSCOMPILING)
  add_test(NAME scale.tool COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/scale_test.py
           ${PROJECT_SOURCE_DIR}/tools/scale/godwit-scale $<TARGET_FILE:example_simulate> $<TARGET_FILE:example_fib>)
  set_tests_properties(scale.tool PROPERTIES LABELS tools TIMEOUT 200)
endif()
