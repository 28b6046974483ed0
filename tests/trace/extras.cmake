# What tests of this folder need beyond one source file each. Included by ../CMakeLists.txt.
if(NOT GODWIT_SANITIZE MATCHES "thread" AND NOT CMAKE_CROSSCOMPILING)
  add_executable(trace_sample ${CMAKE_CURRENT_LIST_DIR}/sample.cpp)
  target_link_libraries(trace_sample PRIVATE godwit godwit_build)
  target_include_directories(trace_sample PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  # godwit_add_perfetto_check(NAME name COMMAND program [argument...]): the last argument is the file it
  # writes.
  function(godwit_add_perfetto_check name)
    add_test(NAME trace.perfetto.${name}
             COMMAND ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/perfetto_check.sh ${ARGN}
                     ${CMAKE_CURRENT_BINARY_DIR}/perfetto_${name}.trace)
    set_tests_properties(trace.perfetto.${name} PROPERTIES LABELS trace TIMEOUT 300 SKIP_RETURN_CODE 77
                         ENVIRONMENT "${env};${on_processes}")
  endfunction()
  godwit_add_perfetto_check(simulated $<TARGET_FILE:trace_sample> 20000)
  godwit_add_perfetto_check(simulated_with_losses $<TARGET_FILE:trace_sample> 20000 lost)
  if(TARGET example_fib)
    godwit_add_perfetto_check(fib env GODWIT_WORKERS=3
                              GODWIT_TRACE=${CMAKE_CURRENT_BINARY_DIR}/perfetto_fib.trace
                              sh -c "$<TARGET_FILE:example_fib> 30")
  endif()
  if(TARGET report_faults)
    foreach(fault lock sleep named)
      godwit_add_perfetto_check(${fault} env GODWIT_WORKERS=3 GODWIT_SUBSTRATE=threads
                                GODWIT_TRACE=${CMAKE_CURRENT_BINARY_DIR}/perfetto_${fault}.trace
                                sh -c "$<TARGET_FILE:report_faults> ${fault}")
    endforeach()
  endif()
endif()
