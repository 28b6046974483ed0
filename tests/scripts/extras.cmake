# Scripts that build say what they are before they do. Included by ../CMakeLists.txt.
if(main_build AND NOT CMAKE_CROSSCOMPILING)
  foreach(script run setup test package_test seeds stress stress_moves stress_mpi hosts)
    add_test(NAME scripts.help.${script} COMMAND ${PROJECT_SOURCE_DIR}/scripts/${script} --help)
    set_tests_properties(scripts.help.${script} PROPERTIES LABELS tools TIMEOUT 20 PASS_REGULAR_EXPRESSION "scripts/${script}"
                         FAIL_REGULAR_EXPRESSION "Building|Preset CMake|^#")
  endforeach()
endif()
