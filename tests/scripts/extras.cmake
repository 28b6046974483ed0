# Scripts that build say what they are before they do. Included by ../CMakeLists.txt.
if(main_build AND NOT CMAKE_CROSSCOMPILING)
  foreach(script run setup test package_test seeds stress stress_moves stress_mpi hosts site reproduce results)
    add_test(NAME scripts.help.${script} COMMAND ${PROJECT_SOURCE_DIR}/scripts/${script} --help)
    set_tests_properties(scripts.help.${script} PROPERTIES LABELS tools TIMEOUT 20 PASS_REGULAR_EXPRESSION "scripts/${script}"
                         FAIL_REGULAR_EXPRESSION "Building|Preset CMake|^#")
  endforeach()
  add_test(NAME scripts.seeds_ends COMMAND ${CMAKE_CURRENT_LIST_DIR}/seeds_test.sh ${PROJECT_SOURCE_DIR}/scripts/seeds)
  set_tests_properties(scripts.seeds_ends PROPERTIES LABELS tools TIMEOUT 60)
  set(root ${PROJECT_SOURCE_DIR})
  foreach(tool ${root}/models/check.sh ${root}/integrations/chapel/install.sh ${root}/tools/scale/godwit-scale options_doc
               godwit-report godwit_measure godwit_pthread_launcher godwit_openmp_launcher)
    if(IS_ABSOLUTE ${tool} OR TARGET ${tool})
      cmake_path(GET tool FILENAME name)
      add_test(NAME tools.help.${name} COMMAND ${tool} --help)
      set_tests_properties(tools.help.${name} PROPERTIES LABELS tools TIMEOUT 20 FAIL_REGULAR_EXPRESSION "^#"
                           PASS_REGULAR_EXPRESSION "[Uu]sage: |check.sh --full|install.sh CHPL_HOME")
    endif()
  endforeach()
endif()
