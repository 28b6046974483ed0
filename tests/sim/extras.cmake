# Suites of tests/api once more in virtual time, each as one whole program. (Others of them are about processes, or policies that are not
# simulated.)
if((main_build OR GODWIT_SANITIZE MATCHES "address") AND NOT CMAKE_CROSSCOMPILING)
  foreach(suite api_spawn api_invoke api_future api_exception api_migration api_codec)
    if(TARGET ${suite})
      add_test(NAME sim.${suite} COMMAND ${CMAKE_COMMAND} -E env ${env} GODWIT_SUBSTRATE=sim GODWIT_QUIET=1
                                         $<TARGET_FILE:${suite}> --gtest_brief=1)
      set_tests_properties(sim.${suite} PROPERTIES LABELS sim TIMEOUT 300)
    endif()
  endforeach()
endif()
